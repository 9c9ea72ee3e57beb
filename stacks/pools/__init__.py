"""Workers in stacks of their own: a facility is the cluster's stack, and one stack for each pool.

splitting  which workers are in which stack: pure functions
conflicts  settings of pools that contradict each other
told       the outputs of the cluster's stack for the pools' stacks
cluster    reads these outputs in a pool's stack
program    what a pool's stack declares

A pool's stack has the settings of the cluster's stack, and also `pool`. Its name is `<the cluster's stack>-<pool>`.
"""
