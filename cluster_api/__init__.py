"""Cluster API providers: what one `up` does, driven by objects of a management cluster."""
