"""Machine platforms, a folder for each. Every folder has the same files:

driver     makes, boots and removes machines: see `contract.MachineDriver`
inputs     what is asked of a machine (redfish: `lending`, for a server is asked for only to be lent)

A folder has more of its own, such as `redfish/quirks`. `contract` is what all drivers answer, `registry` lists them.
"""
