"""The lab: an emulated facility, for trying installations where nothing can be billed or broken.

It runs in namespaces of its own, owns the real names (api.equinix.com, metadata.packet.net) inside them, and knows
protocols only: nothing in here imports the program that it rehearses. `python -m lab --help` is its command line.
"""
