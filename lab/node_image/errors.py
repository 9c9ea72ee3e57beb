"""What making the node image raises: one kind of error, a `SetupFailed` of the lab."""

from __future__ import annotations

from lab.errors import SetupFailed


class ImageError(SetupFailed):
    """The node image cannot be built here; the message says what was missing and which command asked for it."""
