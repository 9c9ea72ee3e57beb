"""Metal gateways: layer 3 for a VLAN."""
