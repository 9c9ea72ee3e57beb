"""The Equinix Metal API and metadata service, emulated: what the program and its commands ask for.

Each service is a module. It has the records that are kept, the documents that show them, and operations, which register
themselves with `operations` by method and path:

    accounts     organizations, projects, API keys          device_operations  devices and their events
    ssh_keys     SSH keys                                   ips          devices' own and elastic addresses
    bgp          configurations and sessions                vlans        VLANs, ports, batches of assignments
    gateways     metal gateways                             spot_market  prices, requests
    offers       the catalogue                              capacity     how much of it there is
    control      the lab's own routes                       hardware_reservations  reserved servers

Beneath them:

    devices      devices and events; `ordering` makes one of an order, `provisioning` is its life
    addresses    which addresses are free, and the blocks of projects; `networks` VLANs and what is in them
    catalog      metros, facilities, plans, operating systems
    access       who asks, and what that opens: projects, and their API keys
    records      the saved tables; `store` keeps them in a file, `state` is the account that has them
    body         reads requests; `listing` pages lists, and expands references (`include`)
    exceptions   the error tree, which is also what the API answers

Around them:

    application  all operations in one application; `middleware` is around every request: token, counting, `faults`
    routing      what follows for the facility's router, which is told of every change
    settling     what happens by itself when its time has come: batches, deletions, ends of devices
    metadata     what machines ask: iPXE script, metadata, userdata, phone home
    sos          serial consoles over SSH
    server       all of it on the lab's addresses

What the real API can do and this one cannot is answered with 501; docs/emulated-api.md lists it by path. Within paths
that are here, so are fields and query parameters that nobody sends, reservations of addresses other than public_ipv4,
operating systems other than custom_ipxe, rescue, global BGP, and devices without a public and a private IPv4 address.
Refused with 422 are IPv6 sessions of BGP, for devices of the lab have no IPv6 address. VLANs and gateways carry no
traffic: they are what the API says of them.
"""
