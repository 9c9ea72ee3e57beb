"""The stand-in for `command`: commands run here or over SSH.

inputs       what the resource types take
resource     their life: when which command runs, with what left over from before
outcome      what a run leaves behind, and how its output is shown while it runs
local        runs a command here
remote       runs a command over SSH
main         the executable
"""
