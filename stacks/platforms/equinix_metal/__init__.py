"""Servers that are ordered in a project of Equinix Metal."""
