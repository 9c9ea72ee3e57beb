"""Carries out the program of a cluster step by step, without Pulumi's engine: for controllers.

monitor     runs the program as a preview, and records what it declares
plan        compares that with the state: what is to be done, and what each step waits for
carrying    does one step by the provider's own resource types
state       what was made, one entry for each resource
engine      one cluster: its plan, what runs just now, what failed
"""
