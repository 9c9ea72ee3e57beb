"""A cluster through Cluster API: objects of a management cluster that contain the settings of a stack.

objects     the objects, and clusterctl's template of them: pure functions
cluster     the component: applies them, and waits until the cluster is available
"""
