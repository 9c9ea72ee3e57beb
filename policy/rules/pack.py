"""All rules, in the order of the documentation."""

from __future__ import annotations

from . import (
    always_pxe,
    bmcs,
    boot_artifacts,
    budget,
    dns_names,
    places,
    plans,
    ports,
    protection,
    quorum,
    secret_outputs,
    secret_values,
    spot,
    tags,
    user_data,
)

NAME = "metal-ipi"
RULES = (
    places.RULE,
    plans.RULE,
    spot.RULE,
    quorum.RULE,
    user_data.RULE,
    boot_artifacts.RULE,
    always_pxe.RULE,
    secret_values.RULE,
    secret_outputs.RULE,
    ports.RULE,
    tags.RULE,
    budget.RULE,
    dns_names.RULE,
    protection.RULE,
    bmcs.RULE,
)


def serve() -> None:
    """Serves the engine that started this process."""
    from . import library

    library.serve(NAME, RULES)
