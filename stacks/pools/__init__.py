"""Workers in stacks of their own: a facility is the cluster's stack, and one for each pool.

splitting  which workers are in which stack: pure
conflicts  what contradicts in the settings of pools
told       what the cluster's stack tells the pools', as outputs
cluster    the same, as a pool's stack reads it
program    what a pool's stack declares

A pool's stack has the settings of the cluster's, and `pool` besides. It is called `<the cluster's stack>-<pool>`.
"""
