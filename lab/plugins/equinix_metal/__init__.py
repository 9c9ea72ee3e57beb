"""The stand-in for `equinix-metal`, v3.2.1: devices, projects, SSH keys, addresses and BGP over the Metal API.

    inputs       what the resource types take, and the rules between inputs
    client       the API: authentication, retries, orders whose outcome is not known
    bridged      what the Terraform bridge does around every resource: names, defaults, comparison, previews
    documents    pure functions between the API's device and the resource's properties
    device       devices: ordered, waited for, changed, reinstalled, released
    project      projects and their BGP configuration
    ssh_key      keys of a project and of the user
    reserved_ip_block, ip_attachment, bgp_session
                 elastic addresses, what is assigned to devices, BGP sessions: never changed, only replaced
    bgp_neighbors
                 the function that tells whom a device may announce addresses to
    main         the executable

Like the official plug-in it always talks to https://api.equinix.com/metal/v1 and trusts what SSL_CERT_FILE names; the
variable METAL_API_URL, which only the stand-in knows, is for tests against a server on loopback.
"""
