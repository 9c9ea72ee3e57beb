"""A cluster's stack that Cluster API carries out, on a hub.

settings    the settings as the objects on the hub contain them: pure functions
refused     what the providers cannot do
program     declares the objects, and waits for the cluster
"""
