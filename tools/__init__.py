"""The driver behind `make`: finds or builds the engine, starts the lab where a stack wants it, runs the program.

    python -m tools setup|up|down|preview|refresh|output --stack NAME

Two processes take part in a run. The outer one (`commands.py`) sets things up and starts the inner one (`inner.py`) in
the lab's namespaces and a PID namespace of its own, so that engine and plug-ins die with it.
"""
