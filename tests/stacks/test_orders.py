"""What settings order, what of it is checked beforehand, and what it costs."""

from __future__ import annotations

import dataclasses
import json
import typing
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.boot.stream import Artifact, PxeArtifacts
from metal_ipi.provider.preflight import running
from metal_ipi.provider.preflight.plan import Plan
from metal_ipi.stacks import cost, preflight
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.sections.base import REHEARSAL
from metal_ipi.stacks.sections.preflight import Check
from metal_ipi.stacks.settings import Settings, parse
from tests.mocks import Recorder, plain
from tests.stacks.answers import ANSWERS, declared, rehearsed, settings, stack_file
from tests.stacks.rack import rack7

_FILE = Artifact(url="https://boot.test/x", sha256="0" * 64)
_BOOT = PxeArtifacts(release="r", kernel=_FILE, initramfs=_FILE, rootfs=_FILE, disk=_FILE)
_COST = "metal-ipi:index:cost"


def _settings(stack: str = "da11", **changes: Any) -> Settings:
    return parse(settings(stack, **changes), stack)


def _platform(**changes: Any) -> dict[str, Any]:
    return {**stack_file("da11")["platform"], **changes}


def test_orders_of_a_stack() -> None:
    ordered = facility(_settings()).orders
    assert ordered is not None and ordered.place == "da11"
    assert [(order.role, order.plan, order.count) for order in ordered.machines] == [
        ("bootstrap", "c3.small.x86", 1),
        ("control-plane", "c3.medium.x86", 3),
        ("worker", "m3.large.x86", 3),
    ]
    assert ordered.machines[1].hostnames == tuple(f"da11-control-plane-{number}" for number in range(3))
    assert (ordered.addresses, ordered.networks) == ((), ())
    assert facility(_settings("rack7")).orders is None


def test_orders_of_everything_that_can_be_ordered() -> None:
    ordered = facility(
        _settings(
            platform=_platform(
                metro="da",
                facilities=[],
                reservations={"controlPlane": "next-available"},
                spot={"maxPrice": 0.4},
                machineSubnets={"controlPlane": 29},
                networks=[{"name": "storage", "vlan": 1000, "roles": ["worker"], "gateway": {"size": 16}}],
            ),
            apiAddress={"type": "kube-vip"},
            serviceAddresses={"type": "metallb-bgp", "pools": [{"name": "elastic", "reserve": 8}]},
        )
    ).orders
    assert ordered is not None
    bootstrap, control_plane, worker = ordered.machines
    assert (bootstrap.reservations, control_plane.reservations) == ((), ("next-available",))
    assert (worker.spot_max_price, worker.subnet_length, control_plane.subnet_length) == (0.4, None, 29)
    assert [(each.name, each.quantity) for each in ordered.addresses] == [
        ("api-address", 1),
        ("service-addresses-elastic", 8),
    ]
    (network,) = ordered.networks
    assert (network.vlan, network.gateway_size) == (1000, 16)


@pytest.mark.parametrize("stack", ["da11", "lab", "rack7"])
def test_the_provider_takes_the_plan_of_every_committed_stack(stack: str) -> None:
    wanted = preflight.plan(_settings(stack), _BOOT, stack)
    found = Plan.read(wanted.to_wire())
    assert found == wanted
    files = ["kernel", "initramfs", "rootfs", *(["disk"] if stack == "rack7" else [])]
    assert [file.name for file in found.boot] == files


def test_what_settings_name_is_looked_at() -> None:
    section = {
        "type": "metallb-bgp",
        "pools": [{"name": "own", "addresses": ["192.0.2.0/28", "192.0.2.64-192.0.2.70"]}],
    }
    dns = {**stack_file("da11")["dns"], "reverseZones": ["100.51.198.in-addr.arpa"]}
    api = {"type": "kube-vip", "address": "192.0.2.99"}
    found = preflight.plan(_settings(serviceAddresses=section, dns=dns, apiAddress=api), _BOOT, "da11")
    assert found.networks["service addresses own"] == "192.0.2.0/28"
    assert found.zones == ("metal.example.com", "100.51.198.in-addr.arpa") and found.api_address == "192.0.2.99"
    assert (found.installer, found.version) == ("openshift-install", "4.21.3")


def test_the_settings_know_the_names_of_all_checks() -> None:
    # What another run ordered is no matter of opinion.
    assert typing.get_args(Check) == tuple(name for name in running.NAMES if name != "runs")


def test_the_stream_and_fips_mode_are_looked_at() -> None:
    boot = dataclasses.replace(_BOOT, stream="rhcos-4.21")
    install = {**json.loads(settings()["install"]), "fips": True}
    found = preflight.plan(_settings(install=install, ssh={}), boot, "da11")
    assert (found.stream, found.release, found.fips) == ("rhcos-4.21", "r", True)
    unknown = preflight.plan(_settings(), dataclasses.replace(boot, release=REHEARSAL), "da11")
    assert (unknown.stream, unknown.release, unknown.fips) == (None, None, False)


def test_everything_that_is_ordered_waits_for_the_checks() -> None:
    recorder = declared()
    ordered = [
        name
        for name, request in recorder.requests.items()
        if (request.custom and request.type.startswith("equinix-metal:")) or request.type.endswith(":EphemeralMachine")
    ]
    assert len(ordered) == 8
    assert [name for name in ordered if "preflight" not in recorder.after(name)] == []
    assert recorder.after("preflight") == {"keys"}, "it waits for the run's id alone"
    assert all("preflight" in rack7().after(name) for name in ("rack7-worker-0-server", "rack7-bootstrap"))


def test_no_secret_is_among_what_is_checked() -> None:
    recorder = declared()
    text = json.dumps(recorder.inputs("preflight"))
    values = {key: json.loads(value) for key, value in settings().items() if value[:1] == "{"}
    secrets = [
        values["platform"]["authToken"],
        values["dns"]["tsig"]["secret"],
        values["artifacts"]["privateKey"],
        values["install"]["pullSecret"],
    ]
    assert all(secrets) and not [value for value in secrets if value in text]


# --- cost


def _asked(answers: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], Recorder]:
    """What is asked of the platform about the cost, and what was declared."""
    asked: list[dict[str, Any]] = []

    def answer(args: Any) -> dict[str, Any]:
        asked.append(plain(args.args))
        return {"hourly": 13.8, "unknown": []}

    recorder = declared(answers={**ANSWERS, **answers, _COST: answer}, **changes)
    (found,) = asked
    return found, recorder


def test_the_cost_is_an_output_and_asked_of_the_platform() -> None:
    asked, recorder = _asked({})
    ordered = facility(_settings()).orders
    assert ordered is not None and asked == {"orders": ordered.to_wire()}
    assert recorder.outputs["cost"] == {"hourly": 13.8, "unknown": []}


def test_machines_cost_what_they_were_ordered_as_until_they_are_replaced() -> None:
    device = "equinix-metal:index/device:Device"

    def kept(args: Any) -> dict[str, Any]:
        own = ANSWERS[device](args)
        was: dict[str, dict[str, Any]] = {
            "da11-worker-0": {"plan": "c3.small.x86"},
            "da11-worker-1": {"hardwareReservationId": "next-available"},
            "da11-worker-2": {"ipAddresses": [{"type": "public_ipv4", "cidr": 29}, {"type": "private_ipv4"}]},
        }
        return {**own, **was.get(args.inputs["hostname"], {})}

    found = [
        (order["role"], order["hostnames"], order["plan"], order.get("reservations"), order.get("subnetLength"))
        for order in _asked({device: kept})[0]["orders"]["machines"]
    ]
    assert found[2:] == [
        ("worker", ["da11-worker-0"], "c3.small.x86", None, None),
        ("worker", ["da11-worker-1"], "m3.large.x86", ["next-available"], None),
        ("worker", ["da11-worker-2"], "m3.large.x86", None, 29),
    ]
    assert [(role, plan) for role, _, plan, *_ in found[:2]] == [
        ("bootstrap", "c3.small.x86"), ("control-plane", "c3.medium.x86"),
    ]  # fmt: skip


def test_spot_machines_cost_what_was_bid_for_them() -> None:
    request = "equinix-metal:index/spotMarketRequest:SpotMarketRequest"

    def kept(args: Any) -> dict[str, Any]:
        return {"maxBidPrice": 0.2, "instanceParameters": {"plan": "c3.small.x86"}}

    (workers,) = [
        order
        for order in _asked({request: kept}, platform=_platform(spot={"maxPrice": 0.4}))[0]["orders"]["machines"]
        if order["role"] == "worker"
    ]
    assert (workers["plan"], workers["spotMaxPrice"], len(workers["hostnames"])) == ("c3.small.x86", 0.2, 3)


def test_a_rehearsal_asks_nobody_and_says_so() -> None:
    answers = {token: answer for token, answer in ANSWERS.items() if token != _COST}
    cost_of_it = declared(answers=answers, values=rehearsed(), preview=True).outputs["cost"]
    assert cost_of_it["unknown"] == ["everything"] and "cost.priceFile" in cost_of_it["source"]


def test_a_rehearsal_takes_prices_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "PROJECT", tmp_path)
    document = {"plans": [{"slug": "c3.small.x86", "pricing": {"hour": 0.75}}]}
    (tmp_path / "prices.json").write_text(json.dumps(document))
    values = {**rehearsed(), "cost": json.dumps({"priceFile": "prices.json"})}
    asked, recorder = _asked({}, values=values, preview=True)
    assert recorder.outputs["cost"]["hourly"] == 13.8
    assert (asked["prices"], asked["source"]) == (document, "prices.json")


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "cannot be read"), ("{", "is not a JSON document"), ('{"plan": []}', "has no list `plans`")],
)
def test_a_file_of_prices_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, why: str
) -> None:
    monkeypatch.setattr(cost, "PROJECT", tmp_path)
    if text is not None:
        (tmp_path / "prices.json").write_text(text)
    with pytest.raises(cost.PriceFileError, match=f"cost.priceFile 'prices.json' {why}"):
        declared(cost={"priceFile": "prices.json"})
