"""The Equinix Metal API and metadata service, emulated as far as this project's slice needs.

    exceptions   the error tree, which is also what the API answers
    catalog      metros, facilities, plans and operating systems: what does not change
    addresses    allocation of /31 pairs
    models       plain records: projects, keys, devices, events, faults
    state        the account: records by id, the rules of changing them, saved in one file
    provisioning the life of a device, and of the machine behind it
    responses    records as the API's JSON; include, exclude, pages; `network_responses` addresses and ports
    urls, views  the API over HTTP; `control` the lab's own routes; `middleware` authentication, counting, faults
    metadata     what machines ask: iPXE script, metadata, userdata, phone home
    sos          serial consoles over SSH
    server       all of it on the lab's addresses

It is an emulation: prices, hardware reservations, VLANs, BGP, spot markets and more are absent and answer 501.
"""
