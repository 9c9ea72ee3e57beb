"""Machines of an Equinix Metal project, by its HTTP API. Ids of machines are Metal's own: UUIDs.

driver     the machines: orders, deletions, reinstallations
documents  what is sent and what answers say, as pure functions
"""
