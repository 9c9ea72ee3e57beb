"""The stand-in for `command`: commands run here or over SSH.

resource     what the resource types take, and their life: when a command runs
outcome      what a run leaves behind, and how its output is shown while it runs
local        runs a command here
remote       runs a command over SSH
main         the executable
"""
