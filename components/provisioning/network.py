"""NetworkPolicies on the hub: all other connections are refused, if the hub's network supports them."""

from __future__ import annotations

from typing import Any

from metal_ipi.components.provisioning import conductors, database, objects
from metal_ipi.components.provisioning.configuration import IMAGES
from metal_ipi.components.provisioning.contract import (
    API_PORT,
    DATABASE_PORT,
    FILES_PORT,
    IMAGES_PORT,
    METRICS_PORT,
    RPC_PORT,
    IronicArgs,
    OwnDatabase,
)
from metal_ipi.components.provisioning.objects import Object


def policies(args: IronicArgs) -> list[Object]:
    """The policies for incoming connections."""
    among = [_from(conductors.NAME)]
    open_ = (API_PORT, FILES_PORT, *([METRICS_PORT] if args.metrics else []))
    found = [
        _policy(
            args,
            conductors.NAME,
            [{"ports": _ports(*open_)}, {"ports": _ports(RPC_PORT), "from": among}],
        )
    ]
    if isinstance(args.database, OwnDatabase):
        asking = [
            *among,
            *(_from(f"{conductors.NAME}-{job}") for job in ("schema", "migrations")),
            _from(f"{database.NAME}-accounts"),
        ]
        found.append(_policy(args, database.NAME, [{"ports": _ports(DATABASE_PORT), "from": asking}]))
    if args.image_cache is not None:
        found.append(_policy(args, IMAGES, [{"ports": _ports(IMAGES_PORT)}]))
    return found


def _policy(args: IronicArgs, component: str, ingress: list[dict[str, Any]]) -> Object:
    spec = {
        "podSelector": {"matchLabels": objects.selector(component)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    }
    return objects.manifest("NetworkPolicy", component, args.namespace, component, spec=spec)


def _from(component: str) -> dict[str, Any]:
    return {"podSelector": {"matchLabels": objects.selector(component)}}


def _ports(*numbers: int) -> list[dict[str, Any]]:
    return [{"protocol": "TCP", "port": number} for number in numbers]
