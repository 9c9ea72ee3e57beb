"""Machine platforms, a folder for each. Every folder has the same files:

driver     makes, boots and removes machines: see `contract.MachineDriver`
ids        what its machines are called in the state, where the platform gives no ids

A folder has more of its own, such as `redfish/quirks`. `contract` is what all drivers answer, `registry` lists them.
"""
