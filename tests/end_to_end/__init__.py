"""Whole installations on simulated machines, by the commands a user types, in a copy of the project."""
