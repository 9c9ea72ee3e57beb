"""What dns-lexicon has under no public name: its services, their options, and the class of each.

Its public `Client` is no way round: before it does anything it looks for the zone, with a list that it fetches from the
internet or with questions to this machine's resolver. The zone is known here, and a preview has no network.
"""

from __future__ import annotations

import argparse
from functools import cache
from importlib import import_module
from typing import Any


@cache
def services() -> dict[str, bool]:
    """The services of the installed dns-lexicon, and whether the packages that each needs are there."""
    from lexicon._private.discovery import find_providers

    return {name: available for name, available in find_providers().items() if name not in ("auto", "base")}


@cache
def options(service: str) -> frozenset[str]:
    """The options that a service declares; empty where it declares none."""
    parser = argparse.ArgumentParser(add_help=False)
    service_class(service).configure_parser(parser)
    return frozenset(vars(parser.parse_args([])))


def service_class(service: str) -> Any:
    """The class that speaks to a service."""
    return import_module(f"lexicon._private.providers.{service}").Provider
