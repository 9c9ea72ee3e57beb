"""Preflight finds all problems that can be found before anything is ordered, and reports them together, with remedies.

findings    the results of checks, and the report
plan        what is checked, as plain data
inputs      reads the plan from a resource's inputs
lasting     settings that cannot change after the order
subject     what checks work with
account     data from the Metal API, each part requested once
checks/     one module per question
running     runs all checks
resource    the resource Preflight, on which all orders depend
__main__    the same for the command line
"""
