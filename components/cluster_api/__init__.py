"""A cluster through Cluster API: the objects of a management cluster that say what the settings of a stack say.

objects     what is applied, and clusterctl's template of it: pure functions
cluster     the component: applies them, and waits until the cluster is available
"""
