"""`make import`: a stack file from what a user of openshift-install has, install-config.yaml and agent-config.yaml.

    documents   the files, with the line of every value
    fields      every field that they can have, and what becomes of it
    taking      what was taken over, from where, and what was not, and why
    cluster     what is of the cluster: networks, sizes, addresses, keys
    hosts       what is of single machines
    network     what of a machine's networkConfig there is a setting for
    command     reads, converts, writes, and tells

No field is dropped without a word: what nothing takes is told.
"""
