"""Interconnections with networks outside, their ports and virtual circuits."""
