"""Our program, and the lab's stand-in, against OpenShift's own programs: what these accept, make and merge.

The real openshift-install makes the assets from the install-config.yaml that our program renders, and our program
renders the rest from these assets (`facilities`). The real machine config programs render what nodes get
(`machine_config`), and Ignition's own code merges (`ignition`). `make conformance` builds all of them and runs this.
"""
