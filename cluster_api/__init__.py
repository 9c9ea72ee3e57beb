"""Cluster API providers: they do the work of an `up`, controlled by objects of a management cluster (hub)."""
