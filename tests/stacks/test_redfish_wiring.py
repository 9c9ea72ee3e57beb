"""What a rack's settings become: installations, and the checks of what they leave."""

from __future__ import annotations

import itertools
from typing import Any

import pulumi
import pytest

from stacks.problems import SettingsError
from stacks.program import main
from stacks.settings import parse
from tests.mocks import Recorder, plain, run
from tests.stacks.answers import ANSWERS
from tests.stacks.rack import rack_text

_INSTALLATION = "metal-ipi:index:Installation"


def _run(runs: dict[str, str] | None = None, **changes: Any) -> Recorder:
    """`runs`: the generations of machines, by name of their Installation, that stay what they are."""
    kept = runs or {}

    def installed(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
        return {"generation": kept.get(args.name, plain(args.inputs["generation"]))}

    recorder = Recorder({**ANSWERS, _INSTALLATION: installed})
    run(main, recorder, rack_text(**changes), stack="rack")
    return recorder


def _generations(recorder: Recorder) -> dict[str, str]:
    return {args.name: plain(args.inputs["generation"]) for args in recorder.of(_INSTALLATION)}


def test_a_number_that_is_raised_installs_one_machine_once_more() -> None:
    before, after = _generations(_run()), _generations(_run(platform__servers__0__installation=1))
    assert [name for name, found in after.items() if found != before[name]] == ["rack-worker-4-installation"]


def test_an_installation_is_told_the_rules() -> None:
    (first, *_) = _run(boot__install__validHours=7).of(_INSTALLATION)
    assert (first.inputs["validHours"], first.inputs["keep"], first.inputs["consent"]) == (7, False, False)
    recorder = _run(reprovision={"controlPlane": "keep", "consent": ["control-plane-1"]})
    told = {args.name: (args.inputs["keep"], args.inputs["consent"]) for args in recorder.of(_INSTALLATION)}
    assert told["rack-control-plane-0-installation"] == (True, False)
    assert told["rack-control-plane-1-installation"] == (True, True)


def test_a_machine_that_is_kept_is_checked_for_what_it_runs() -> None:
    runs = {"rack-control-plane-0-installation": "a" * 16, "rack-worker-0-installation": "b" * 16}
    for rule in ("keep", "refuse"):
        recorder = _run(
            runs,
            reprovision={"controlPlane": rule},
            controlPlane={"kernelArguments": ["nosmt"]},
            workers={"kernelArguments": ["nosmt"]},
        )
        for name in ("control-plane-0", "control-plane-1", "worker-0"):
            script = plain(recorder.one(f"rack-{name}-check").inputs["create"])
            kept = (rule, name) == ("keep", "control-plane-0")
            wanted = runs if kept else _generations(recorder)
            assert f"EXPECTED_GENERATION={wanted[f'rack-{name}-installation']}\n" in script
            assert ("EXPECTED_RELEASE=''\n" in script) == ("EXPECTED_KERNEL_ARGUMENTS=''\n" in script) == kept


_APIS: tuple[dict[str, Any], ...] = (
    {"type": "dns-round-robin"},
    {"type": "external", "address": "192.0.2.77"},
    *(
        {"type": "kube-vip", **mode, **address}
        for mode in ({}, {"mode": "arp"}, {"mode": "bgp"})
        for address in ({}, {"address": "192.0.2.200"})
    ),
)
_SERVICES: tuple[dict[str, Any], ...] = (
    {"type": "none"},
    {"type": "cloud-controller"},
    *(
        {"type": kind, "pools": [pool], "install": False}
        for kind in ("metallb-l2", "metallb-bgp")
        for pool in ({"name": "own", "addresses": ["192.0.2.240/28"]}, {"name": "elastic", "reserve": 4})
    ),
)


def test_what_settings_accept_a_rack_can_do() -> None:
    """Nobody gives out addresses or peers here: settings say so, before the platform would have to."""
    taken: list[tuple[str, str, str]] = []
    for api, services in itertools.product(_APIS, _SERVICES):
        changes = {"apiAddress": api, "serviceAddresses": services}
        if api["type"] == "external":
            changes["machineConfigServer"] = {"allowedNetworks": ["192.0.2.0/24"]}
        try:
            parse(rack_text(**changes), "rack")
        except SettingsError:
            continue
        _run(**changes)
        taken.append((api["type"], api.get("mode", ""), services["type"]))
    apis = [("dns-round-robin", ""), ("external", ""), ("kube-vip", "arp")]
    assert taken == [(*found, kind) for found in apis for kind in ("none", "metallb-l2")]


def test_an_address_that_nobody_could_reserve_is_asked_for() -> None:
    with pytest.raises(
        SettingsError, match=r"apiAddress\.mode[\s\S]*no addresses to reserve[\s\S]*set it to arp, and api"
    ):
        parse(rack_text(apiAddress={"type": "kube-vip"}), "rack")
