"""What stacks of ours have in projects of Equinix Metal, found by its marks, and its removal.

`python -m metal_ipi.provider.leftovers` is how the command line asks for it: which of it is to go, is decided there.

inventory      lists everything that carries our marks, and nothing else
removal        deletes it in the order in which one thing needs another, and waits until it is gone
"""
