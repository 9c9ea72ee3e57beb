"""The policy pack, as `--policy-pack policy` runs it."""

from rules.pack import serve

serve()
