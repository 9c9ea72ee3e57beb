"""The stack of a hub: what runs on a Kubernetes cluster that manages machines of other clusters."""
