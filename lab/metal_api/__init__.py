"""The Equinix Metal API and metadata service, emulated.

Each service of the API is a package of its own, and the same inside: `models` (records and rules; no HTTP), `responses`
(operations), `documents` where the records' JSON is asked for by others, `urls` (path → method → operation).

    organizations  organizations, the user, API keys        projects   projects
    ssh_keys       SSH keys                                 devices    orders, lives, lists, batches
    ips            devices' own and elastic addresses       bgp        configurations and sessions
    catalog        metros, plans, prices, capacity          events     what happened
    virtual_networks  VLANs                                 ports      bonds, layers, VLANs on ports, batches of these
    gateways       metal gateways                           spot_market  prices, requests
    hardware_reservations  reserved servers

What they share:

    exceptions   the error tree, which is also what the API answers
    records      the saved tables; `store` keeps them in a file, `state` is the account that has them
    body         reads the fields of a request; `listing` pages, include, exclude, search
    operations   finds what a request names, answers it; `access` whose request it is, and what that opens
    application  the services' routes in one application
    middleware   around every request: token, counting, `limits`, `faults`, errors
    routing      what follows for the facility's router, which is told of every change
    settling     what happens by itself when its time has come: batches, deletions, ends of devices
    control      the lab's own routes: faults, capacity, inventory; services have some in their `urls` as well
    metadata     what machines ask: iPXE script, metadata, userdata, phone home
    sos          serial consoles over SSH
    server       all of it on the lab's addresses
    coverage     lists what of the official `description` is here

What the real API can do and this one cannot is answered with 501; docs/emulated-api.md lists it by path. Within paths
that are here, 501 is answered to reservations of addresses other than public_ipv4, to devices without a public and a
private IPv4 address, to operating systems other than custom_ipxe, to rescue, and to global BGP. Refused with 422 are
IPv6 sessions of BGP, for devices of the lab have no IPv6 address. The API has no operation that disables a project's
BGP, so there is none here.

VLANs and gateways carry no traffic: they are what the API says of them. A device whose bond is in
layer 2 has no addresses in documents and metadata, and the facility's router does not speak to it; its machine goes on
with the network that it had.
"""
