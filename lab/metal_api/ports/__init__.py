"""Ports of devices: bonds, layers, and the VLANs on them."""
