"""The program behind `make`: finds or builds the engine, starts the lab if the stack needs it, and runs the stack.

    python -m tools setup|up|down|preview|refresh|output --stack NAME

Each run has two processes. The outer one (`commands.py`) sets things up and starts the inner one (`inner.py`) in
the lab's namespaces and a PID namespace of its own, so that engine and plug-ins die with it.
"""
