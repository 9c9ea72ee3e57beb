"""What dns-lexicon offers only under private names: its services, their options, and their classes.

Its public `Client` cannot be used: it first looks for the zone, with a list from the internet or with questions to this
machine's resolver. Here the zone is known, and a preview has no network.
"""

from __future__ import annotations

import argparse
from functools import cache
from importlib import import_module
from typing import Any


@cache
def services() -> dict[str, bool]:
    """The services of the installed dns-lexicon: name → whether the packages that it needs are installed."""
    from lexicon._private.discovery import find_providers

    return {name: available for name, available in find_providers().items() if name not in ("auto", "base")}


@cache
def options(service: str) -> frozenset[str]:
    """The options that a service declares; empty if it declares none."""
    parser = argparse.ArgumentParser(add_help=False)
    service_class(service).configure_parser(parser)
    return frozenset(vars(parser.parse_args([])))


def service_class(service: str) -> Any:
    """lexicon's class for a service."""
    return import_module(f"lexicon._private.providers.{service}").Provider
