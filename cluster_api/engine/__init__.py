"""Carries out the program of a cluster step by step, without Pulumi's engine: for controllers.

monitor     runs the program as a preview, and records the resources that it declares
plan        compares them with the state: the steps to do, and their dependencies
carrying    does one step by the provider's own resource types
state       the created resources, one entry for each
engine      one cluster: its plan, its running and its failed steps
"""
