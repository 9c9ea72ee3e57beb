"""The hub: a real one-node Kubernetes in the lab's network, for what manages machines from outside of their clusters.

    programs     what it is made of: Kubernetes' own programs, Debian's containerd, runc, CNI plug-ins and registry
    images       its container images, by what they are made of; nothing is pulled from outside
    recipe       how an image is made, and its layers in the user's cache
    layers       what a layer is made of: Debian packages, Python packages, programs, files
    oci          images and layers as a registry has them
    layout       its files, below the lab's state directory
    credentials  its certificates and kubeconfigs
    configs      what its programs are told: pure functions
    objects      what its API is given first: DNS for Services, storage; pure functions
    cgroups      its part of each cgroup hierarchy
    node         process 1 of its namespaces: starts the programs, watches them, ends them
    __main__     the lab's service `hub`: makes the namespaces and the cable, and lives as long as they do
    control      starting and stopping it, from outside of the lab

It has a network, mount and pid namespace of its own below the lab's. It is one more host of the facility, with the
address `plan.HUB`: its pods reach machines and BMCs behind that address, and Services publish them there.
"""
