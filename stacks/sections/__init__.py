"""The sections of a stack's settings, a module each: pydantic models that validate what stands in them, and do no I/O.
The section `platform` is in `stacks/platforms`.

base         what all sections share
machines     how many machines there are, and how they are installed anew
boot         what they boot
devices      which disk they are installed to
dns          where the cluster's names are kept
api_address  how the API is reached
artifacts    where Ignition and boot scripts are uploaded
install      the installer, who may log in, how long gates wait
service_addresses  where services of type LoadBalancer get addresses; no stack can set it yet
"""
