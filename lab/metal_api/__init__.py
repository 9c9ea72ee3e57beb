"""The Equinix Metal API and metadata service, emulated as far as this project's slice needs.

    exceptions   the error tree, which is also what the API answers
    catalog      metros, facilities, plans and operating systems: what does not change
    addresses    allocation of /31 pairs and of elastic blocks
    models       plain records: projects, keys, devices, events, elastic addresses, BGP, faults
    state        the account: records by id, the rules of changing them, saved in one file
    provisioning the life of a device, and of the machine behind it
    elastic, bgp the rules of elastic addresses, of BGP configurations and sessions
    routing      what follows from these for the facility's router, which is told of every change
    responses    records as the API's JSON; include, exclude, pages; `network_responses` addresses, ports and BGP
    urls, views  the API over HTTP (`network_views` addresses and BGP, `operations` what they share)
    control      the lab's own routes; `middleware` authentication, counting, faults
    metadata     what machines ask: iPXE script, metadata, userdata, phone home
    sos          serial consoles over SSH
    server       all of it on the lab's addresses

It is an emulation: prices, hardware reservations, VLANs, spot markets and more are absent and answer 501. So do, of
addresses and BGP: reservations other than public_ipv4, free subnets of a block (/ips/{id}/available), customdata as a
document of its own, global BGP; refused with 422 are IPv6 sessions, for devices of the lab have no IPv6 address. The
API has no operation that disables a project's BGP, so there is none here.
"""
