"""The BMCs of a rack: one per server, each at an address of its own, with a certificate and credentials of its own.

    identity     who the servers are
    server       one server: power, what it boots next, its firmware's settings
    driver       sushy-tools' systems driver, over a server
    application  sushy-tools' Redfish application, one per BMC
    redfish      what real BMCs say beside it, added around the application
    told         what it tells of the server's parts
    inventory    what of that is the server's hardware
    sessions     logins
    names        what can be asked of it
    faults       misbehaviour by request
    wire         HTTPS
    ipmi         IPMI over LAN
    control      the lab's own door: power, faults, inventory
    rack         all of it

sushy-tools is what OpenStack tests its bare metal drivers against: its HTTP behaviour is not ours. What a server does
comes from the machine back end, libvirt's or the simulated one.
"""
