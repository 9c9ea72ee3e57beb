"""The sections of a stack's settings, one module each: pydantic models that validate them, without I/O.

The section `platform` is in `stacks/platforms`.

base         what all sections share
machines     the number of machines, and how they are installed again
boot         what they boot
devices      the disk to which they are installed
dns          where the cluster's DNS names are kept
api_address  how the API and ingress are reached
artifacts    where Ignition and boot scripts are uploaded
install      the installer, SSH keys for logins, timeouts of gates
service_addresses  where services of type LoadBalancer get addresses
"""
