"""The lab's stand-in for OpenShift: its installer and the services of its nodes, one Go program.

What it stands for and where it differs is told in README.md beside this file.
"""
