"""The emulated Metal API."""
