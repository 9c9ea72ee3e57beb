"""Addresses: those of devices, and elastic ones."""
