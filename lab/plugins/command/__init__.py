"""The stand-in for `command`: commands that run here.

resource     what the resource type takes, and its life: when a command runs
outcome      what a run leaves behind, and how its output is shown while it runs
local        runs a command here
main         the executable
"""
