"""A cluster's stack that is carried out by Cluster API, on a hub.

settings    what the objects on the hub say of the settings: pure functions
refused     what the providers cannot do
program     declares the objects, and the wait
"""
