"""Programs that this project runs and does not contain: the Pulumi engine, kube-apiserver, etcd and others.

    program     one program: from the cache, else downloaded, else built
    publisher   a download from the program's publisher, checked against the publisher's SHA-256 sum
    go_tool     a program that is built from Go modules
    crate       a program that is built from a crate with cargo
    golang      Go itself: on PATH, or from the Python package index
    cache       the directory of the user that all of them are kept in, and its locks

Whoever needs a program looks for it on PATH first, because only the caller knows which version fits.
"""
