"""Finds what our stacks have left in projects of Equinix Metal, by its marks, and removes it.

The command line starts it as `python -m metal_ipi.provider.leftovers`, and decides what is removed.

inventory      lists everything with our marks, and nothing else
removal        deletes it in the order of dependencies, and waits until it is gone
"""
