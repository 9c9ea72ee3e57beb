"""Starts the policy pack; the engine runs this for `--policy-pack policy`."""

from rules.pack import serve

serve()
