"""The official provider's SDK, imported in one place, without its deprecation warning."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # The SDK imports pkg_resources. Users of `up` can do nothing about its deprecation.
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
    import pulumi_equinix_metal as metal

__all__ = ["metal"]
