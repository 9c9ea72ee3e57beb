"""What can be found out before anything is ordered, is: all problems of a stack at once, each with its remedy.

findings    what a check says, and the report
plan        what is to be looked at, as plain data
inputs      reads that back from a resource's inputs
lasting     what a cluster keeps as it was ordered
subject     what a check works with
account     what the Metal API tells, each part asked for once
checks/     one module per question
running     runs them all
resource    the resource Preflight, on which what is ordered depends
__main__    the same for the command line
"""
