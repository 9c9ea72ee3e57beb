"""Ironic as a service on a hub: a Kubernetes cluster that manages machines of other clusters.

service      the component: declares all objects on the hub, in order
contract     its arguments: plain data
configuration, files   configuration files of Ironic and of the web servers
conductors, database, image_cache, dhcp, certificates   the objects of each part
objects      what all objects share
alive, fetch_images, ramdisk_logs, reach_database, renew_certificates   programs that run on the hub
operator_resource   the same settings as resources of Metal3's ironic-standalone-operator

All modules except `service` are pure functions of plain data. Only `service` loads the SDK of pulumi-kubernetes, which
takes 0.3 s; nothing here imports it.
"""
