"""`python -m tests.bench`: what the project costs, beside what can be had for less on the same machine in the same run.

figures     the figures, one function each
project     a copy of the project to measure on, so that nobody's stack or lab is touched
measure     running processes, pairs of runs, the lines printed
spent       what the lab has cost
bare/       the yardstick for the engine: a program of trivial resources with a trivial plug-in
"""
