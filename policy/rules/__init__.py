"""The rules for changes of a facility, one module per rule.

base        the types of rules and of their input
machines    the machines that a resource orders or claims
library     the adapter to pulumi-policy
state       the state of the stack before a change
pack        all rules, in the order of the documentation

This pack imports nothing else of the project: it judges the resources that the engine shows, whoever declared them.
"""
