"""A real Kubernetes API for the lab: kube-apiserver and etcd, and the definitions of what the program puts there.

    build        kube-apiserver of the version that go.mod beside this file pins: on PATH, downloaded, or built
    crds         resource definitions of MetalLB and OpenShift, out of their own Go modules
    programs     all of that, or why there is none
    __main__     the lab's service: machines ask it for an API server
    cluster      one cluster: etcd, an API server for each machine that asks, what every cluster has
    etcd, server the two programs, and how they are started
    small        a small API server of ours, where there is no kube-apiserver
    process      a process, from its start until it does not run any more
    access       the lab's own requests, and kubeconfigs for others
    namespaces   empties and ends namespaces that are being deleted

etcd is a room of its own (lab/etcd). There is no kube-controller-manager and no kubelet:
objects are checked, defaulted, owned by field managers and stored as on any cluster. What acts on nodes and their
certificates are the stand-in's loops on the machines (lab/openshift); what stands in for the rest is the end of
namespaces, without which none could ever be deleted.
"""
