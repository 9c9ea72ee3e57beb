"""Ignition 2.14's behaviour for simulated machines: specs 3.0 to 3.4.

schema   keys and types of the specs; unknown keys are refused (the real one warns: the lab is stricter)
merge    how a child configuration is merged into its parent
resource one URL: fetched, decompressed, verified
render   configurations referred to, recursively
apply    the result, written to a directory
"""

from __future__ import annotations


class IgnitionError(Exception):
    """A fatal error of Ignition; the text is what Ignition prints after «Ignition failed: »."""
