"""Ironic as a service on a hub: any Kubernetes that manages machines from outside of their clusters.

service      the component: declares all objects on the hub, in order
contract     its arguments: plain data
configuration, files   what Ironic and the web servers read
conductors, database, image_cache, dhcp, certificates   the objects of each part
objects      what all objects have in common
alive, fetch_images, ramdisk_logs, reach_database, renew_certificates   programs that run on the hub
operator     the same settings as resources of Metal3's ironic-standalone-operator

All but `service` are pure functions of plain data. That one alone loads the SDK of pulumi-kubernetes, which takes
0.3 s: nothing here imports it.
"""
