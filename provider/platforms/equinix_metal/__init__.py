"""Machines of an Equinix Metal project, through its HTTP API. Machines have Metal's own ids (UUIDs).

driver     the machines: orders, deletions, reinstallations
documents  requests and answers, as pure functions
"""
