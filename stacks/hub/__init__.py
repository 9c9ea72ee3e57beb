"""The stack of a hub: what runs on a Kubernetes that manages machines from outside of their clusters."""
