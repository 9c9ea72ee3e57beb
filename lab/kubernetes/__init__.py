"""A real Kubernetes API for the lab: kube-apiserver and etcd, and the definitions of what the program puts there.

    build        kube-apiserver, an ordinary Go tool that go.mod beside this file pins; built once per user
    crds         MetalLB's resource definitions, out of its own Go module
    server       both processes, from the start until nothing runs any more
    pki          the keys that only they need
    access       the lab's own requests, and kubeconfigs for others
    namespaces   empties and ends namespaces that are being deleted

etcd is Debian's (package etcd-server, 3.4). There is no controller and no kubelet: objects are checked, defaulted,
owned by field managers and stored as on any cluster, but nothing acts on them. What stands in for a controller is the
end of namespaces, without which none could ever be deleted.
"""
