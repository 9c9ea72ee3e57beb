"""The stand-in for `equinix-metal`, v3.2.1: the resource types that the program uses, over the Metal API.

    table        the resource types, a row for each property: inputs, outputs, what replaces, names in the API
    documents    values in the API's documents that are not just under a name
    bridged      what the Terraform bridge does around each of them: names, defaults, comparison, previews
    device       devices: ordered, waited for, changed, released
    special      what projects, virtual networks, ports and spot market requests do beside their tables
    client       the API: authentication, retries, orders whose outcome is not known
    functions    what programs can ask
    main         the executable

What it does otherwise than the official plug-in is listed in docs/stand-ins.md. Like that one it always talks to
https://api.equinix.com/metal/v1 and trusts what SSL_CERT_FILE names; the variable METAL_API_URL, which only the
stand-in knows, is for tests against a server on loopback.
"""
