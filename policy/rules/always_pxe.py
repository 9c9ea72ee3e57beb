"""Rule: installed machines boot from their disks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .base import Found, Given, Resource, Rule
from .machines import DEVICE, INSTALLATION, SPOT_REQUEST, ordered


def _check(resources: Sequence[Resource], given: Given) -> Iterator[Found]:
    del given
    installed = {each.text("hostname") for each in resources if each.type == INSTALLATION}
    for resource in resources:
        if resource.type not in {DEVICE, SPOT_REQUEST}:
            continue
        for machine in ordered(resource):
            hostname = resource.text("hostname") or str(
                resource.properties.get("instanceParameters", {}).get("hostname")
            )
            if machine.always_pxe and hostname in installed:
                yield Found(
                    f"{hostname} is installed to its disk and would boot from the network every time (alwaysPxe): each"
                    " restart would install it again. Order it with alwaysPxe false",
                    resource.urn,
                )


RULE = Rule(
    name="no-always-pxe-when-installed",
    description="A machine that is installed to its disk does not boot from the network every time.",
    stack=_check,
)
