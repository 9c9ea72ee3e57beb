"""Servers of your own that Ironic has, or is given."""
