"""The hardware of servers, as BMCs or Ironic report it before the servers are switched on, and checks of it.

facts   the hardware of one server, from any source
disks   which disks a machine may be installed to, as far as that is known
rules   checks of servers for their roles, which give findings: pure functions
table   the same facts for people
"""
