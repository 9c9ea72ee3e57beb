"""The rules that a change to a facility has to keep, each in a module of its own.

base        what a rule is, and what it is asked about
machines    machines as rules see them, whatever they were ordered as
library     the bridge to pulumi-policy
state       what the stack holds before a change
pack        all rules, in the order in which they are documented

This pack imports nothing else of the project: it judges what it is shown, whoever declared it.
"""
