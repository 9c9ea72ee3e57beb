"""The facility's network: namespaces, addresses, DNS, certificates, boot file server, BGP router."""
