"""The policy pack as a plug-in of the plug-in host; see `policy/pulumi-analyzer-policy-python`."""

from __future__ import annotations

import io
import runpy
import sys
from importlib import import_module

import_module("pulumi_policy")  # loaded before the engine asks for the pack


def main() -> None:
    """Serve the engine, as `python -u -m pulumi.policy` does with the arguments of this process."""
    # The port that it prints must not wait in a buffer.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
    runpy.run_module("pulumi.policy", run_name="__main__", alter_sys=True)
