"""Metros, facilities, operating systems, and what plans cost at the spot market."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.client import Client
from lab.plugins.equinix_metal.documents import part
from lab.plugins.equinix_metal.functions.base import (
    CAPACITIES,
    REQUIRED,
    STRING,
    Arguments,
    Function,
    everything,
    one_of,
    the_only,
)
from lab.plugins.fields import Field
from lab.plugins.values import Json


async def _metro(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    await _has_capacity(client, "/capacity/metros", "metro", arguments)
    code = arguments["code"]
    metros = await everything(client, "/locations/metros", "metros")
    found = the_only([metro for metro in metros if metro.get("code") == code], f"metro {code}")
    return {"id": found["id"], "name": found.get("name") or "", "country": found.get("country") or ""}


async def _facility(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    await _has_capacity(client, "/capacity", "facility", arguments)
    code = arguments["code"]
    facilities = await everything(client, "/facilities", "facilities", include="metro")
    found = the_only([facility for facility in facilities if facility.get("code") == code], f"facility {code}")
    features: list[str] = found.get("features") or []
    missing = sorted(set(arguments.get("featuresRequireds") or []) - set(features))
    if missing:
        raise PluginError(f"facility {code} does not have {', '.join(missing)}, only {', '.join(features)}")
    metro = part(found, "metro", "code")
    return {
        "id": found["id"],
        "name": found.get("name") or "",
        "features": features,
        "metro": str(metro).lower() if metro else None,
    }


async def _has_capacity(client: Client, path: str, kind: str, arguments: dict[str, Json]) -> None:
    """Asking changes nothing."""
    code, wanted = arguments["code"], arguments.get("capacities") or []
    if not wanted:
        return
    servers = [{kind: code, "plan": each["plan"], "quantity": int(each["quantity"])} for each in wanted]
    answer = (await client.act(path, {"servers": servers})).document
    for server in answer.get("servers") or []:
        if not server.get("available"):
            raise PluginError(f"{kind} {code} has no capacity for {server.get('quantity')} of {server.get('plan')}")


async def _operating_system(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    name, on = str(arguments.get("name") or "").lower(), arguments.get("provisionableOn")

    def fits(system: Mapping[str, Json]) -> bool:
        exact = all(system.get(key) == arguments[key] for key in ("distro", "version") if arguments.get(key))
        return (
            exact
            and name in str(system.get("name")).lower()
            and (not on or on in (system.get("provisionable_on") or []))
        )

    systems = await everything(client, "/operating-systems", "operating_systems")
    looked_for = ", ".join(f"{key} {value}" for key, value in sorted(arguments.items()))
    found = the_only([system for system in systems if fits(system)], f"operating system with {looked_for}")
    told = {key: found.get(key) or "" for key in ("name", "distro", "version", "slug")}
    return {"id": told["slug"], **told}


def _something(arguments: Arguments) -> Iterator[CheckFailure]:
    if not any(arguments.values()):
        yield CheckFailure("name", "one of name, distro, version and provisionableOn is required")


async def _spot_price(client: Client, arguments: dict[str, Json]) -> dict[str, Json]:
    plan, metro = arguments["plan"], str(arguments.get("metro") or "").lower()
    kind, place = ("metro", metro) if metro else ("facility", str(arguments["facility"]))
    path = f"/market/spot/prices{'/metros' if metro else ''}"
    prices: Json = (await client.get(path)).document.get("spot_market_prices") or {}
    price = (prices.get(place) or {}).get(plan)
    if price is None:
        raise PluginError(f"{plan} has no price at the spot market in {kind} {place}")
    return {"id": f"{kind}-{place}-{plan}", "price": price.get("price") or 0, **({"metro": metro} if metro else {})}


METRO = Function(arguments={"code": REQUIRED, "capacities": CAPACITIES}, look=_metro)
FACILITY = Function(
    arguments={
        "code": REQUIRED,
        "capacities": CAPACITIES,
        "featuresRequireds": Field(kind="list", element=STRING),
    },
    look=_facility,
)
OPERATING_SYSTEM = Function(
    arguments=dict.fromkeys(("name", "distro", "version", "provisionableOn"), STRING),
    look=_operating_system,
    rules=_something,
)
SPOT_MARKET_PRICE = Function(
    arguments={"plan": REQUIRED, "metro": STRING, "facility": STRING},
    look=_spot_price,
    rules=one_of("metro", "facility"),
)
