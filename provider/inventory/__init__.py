"""The hardware of servers, as BMCs or Ironic tell it before they are switched on, and what follows from it.

facts   what is told of one server, whoever tells it
disks   which disks a machine may be installed to, as far as that can be told
rules   what follows for the machines that servers are to be: findings. Pure
table   the same facts for people
"""
