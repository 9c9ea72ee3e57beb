"""The stand-in for `equinix-metal`, v3.2.1: the resource types that the program uses, over the Metal API.

    inputs, network_inputs
                 what the resource types take, and the rules between inputs
    client       the API: authentication, retries, orders whose outcome is not known
    bridged      what all resource types have in common, and what the Terraform bridge does around them: names,
                 defaults, comparison, previews
    documents, network_documents, spot_documents
                 pure functions between the API's documents and the resources' properties
    device       devices: ordered, waited for, changed, reinstalled, released; `watch` looks at all that are waited for
    spot_market_request
                 devices as long as the market's price is below a maximum
    project, ssh_key
                 projects, and the SSH keys of their devices
    reserved_ip_block, bgp_session
                 elastic addresses and BGP sessions: never changed, only replaced
    vlan, port, gateway
                 virtual networks and how devices are in them; `ports` does what can be done to a port
    main         the executable

What it does otherwise than the official plug-in is listed in docs/stand-ins.md. Like that one it always talks to
https://api.equinix.com/metal/v1 and trusts what SSL_CERT_FILE names; the variable METAL_API_URL, which only the
stand-in knows, is for tests against a server on loopback.
"""
