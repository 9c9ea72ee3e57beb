"""Machine platforms, one folder each. Every folder has the same files:

driver     makes, boots and removes machines: see `contract.MachineDriver`
ids        the ids of its machines in the state, if the platform itself gives none

A folder may have more files, such as `redfish/quirks`. `contract` has the interface of all drivers, `registry` lists
them.
"""
