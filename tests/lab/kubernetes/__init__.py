"""The real Kubernetes API of the lab."""
