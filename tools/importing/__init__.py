"""`make import`: creates a stack file from the files of openshift-install, install-config.yaml and agent-config.yaml.

    documents   the files, with the line number of every value
    fields      all fields that they can have, and what each is converted to
    taking      which values were converted, from where, and which were not, and why
    cluster     the fields of the whole cluster: networks, sizes, addresses, keys
    hosts       the fields of single machines
    network     the parts of a machine's networkConfig that have a setting
    command     reads, converts, writes, and reports

No field is dropped silently: a field that nothing converts is reported.
"""
