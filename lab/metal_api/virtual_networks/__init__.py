"""Virtual networks: the VLANs of a project."""
