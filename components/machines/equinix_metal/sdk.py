"""The official provider's SDK, imported once and quietly."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # The SDK imports pkg_resources, whose deprecation is its authors' business and not that of whoever runs `up`.
    warnings.filterwarnings("ignore", message="pkg_resources is deprecated")
    import pulumi_equinix_metal as metal

__all__ = ["metal"]
