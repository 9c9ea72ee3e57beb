"""Devices: ordering, their lives, what they look like."""
