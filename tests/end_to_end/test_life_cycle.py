"""One stack from nothing to nothing: what the commands say, and that they touch nothing they need not."""

from __future__ import annotations

import json
import re

import pytest

from tests.end_to_end import secrets
from tests.end_to_end.cluster import CHECKS, DOMAIN, assert_finished
from tests.end_to_end.project import Project
from tools.engine import ensure

pytestmark = [pytest.mark.lab, pytest.mark.engine]


def _devices(project: Project) -> dict[str, tuple[str, str]]:
    return {d["hostname"]: (d["id"], d["updated_at"]) for d in project.holdings()["devices"]}


def test_outputs_have_exactly_the_promised_shape(installed: Project) -> None:
    output = assert_finished(installed)

    assert set(output) == {"cluster", "api", "bootstrap", "nodes", "kubeconfig", "kubeadminPassword", "cost"}
    assert output["cluster"] == {"name": "lab", "domain": DOMAIN, "version": "4.21.0-lab"}
    assert output["api"] == {"url": f"https://api.{DOMAIN}:6443"}
    assert output["kubeconfig"] == output["kubeadminPassword"] == "[secret]"
    for node in output["nodes"]:
        assert set(node) == {"name", "role", "public_ipv4", "private_ipv4", "checks"}
        read = {check["name"]: check["observed"] for check in node["checks"]}
        assert set(read) == CHECKS
        assert all(set(check) == {"name", "status", "observed"} for check in node["checks"])
        assert read["hostname"] == node["name"]
        assert read["afterburn-public-ipv4"] == node["public_ipv4"]
        assert read["afterburn-private-ipv4"] == node["private_ipv4"]


def test_the_cost_is_the_price_lists_sum(installed: Project) -> None:
    prices = {
        plan["slug"]: plan["pricing"]["hour"] for plan in json.loads(installed.inside("call", "GET", "/plans"))["plans"]
    }
    hourly = sum(prices[device["plan"]["slug"]] for device in installed.holdings()["devices"])
    cost = installed.output()["cost"]
    assert (cost["hourly"], cost["monthly"], cost["unknown"]) == (hourly, hourly * 730, [])
    assert cost["installing"] == hourly + prices["c3.small.x86"]


def test_a_second_up_and_one_after_refresh_change_nothing(installed: Project) -> None:
    before = _devices(installed)

    again = installed.make("up").out
    assert "up: no changes" in again and "preflight" not in again, "what orders nothing asks nobody"
    installed.assert_unchanged("preview", "refresh", "up")
    assert _devices(installed) == before
    assert_finished(installed)


def test_one_worker_more_and_one_less_touch_no_other_machine(installed: Project) -> None:
    before = _devices(installed)

    installed.configure(workers={"count": 3})
    preview = installed.make("preview")
    assert _devices(installed) == before, "a preview changes nothing"
    cost = "cost: 7.50 → 9.00 (+1.50) USD per hour, 5,475 → 6,570 (+1,095) per month"
    assert cost in preview.out, preview.out
    more = installed.make("up")
    after = _devices(installed)
    assert_finished(installed, workers=3)
    assert cost in more.out, more.out
    # One fewer than at first: which CoreOS the installer is made for is of no use once its assets are at work.
    assert "preflight (Preflight): 13 checks, all is well" in more.out, more.out
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"lab-worker-2"}
    created = re.findall(r"(\S+-device) \(Device\): (\S+)", more.out)
    assert created == [("lab-worker-2-device", "created")], more.out
    assert "lab-worker-2-device" in preview.out and "lab-worker-1-device" not in preview.out

    installed.configure()
    less = installed.make("up")
    assert _devices(installed) == before
    assert_finished(installed)
    assert re.findall(r"(\S+-device) \(Device\): (\S+)", less.out) == [("lab-worker-2-device", "deleted")]


def test_no_secret_is_shown_or_kept_in_clear(installed: Project) -> None:
    found = secrets.collect(installed, str(ensure(print).path))
    origins = set(found.values())
    assert origins >= {"API token", "TSIG key", "upload key", "passphrase"}, origins
    assert origins >= {"keys hostKeySeed", "install-assets-create stdout"}, origins
    assert any(origin.endswith("-check connection") for origin in origins), origins

    installed.configure(workers={"count": 1})  # so that preview and up have something to tell
    leaks: list[str] = []
    for target in ("output", "preview", "up", "refresh"):
        leaks += secrets.leaks(found, f"make {target}", installed.make(target).text)
    installed.configure()
    leaks += secrets.leaks(found, "make up", installed.make("up").text)
    for path in secrets.files(installed):
        leaks += secrets.leaks(found, str(path.relative_to(installed.root)), path.read_text(errors="replace"))
    for device in installed.holdings()["devices"]:
        assert device["userdata"], device
        leaks += secrets.leaks(found, f"userdata of {device['hostname']}", device["userdata"])
    assert not leaks, "\n".join(leaks)


def test_down_leaves_nothing_and_may_be_repeated(installed: Project) -> None:
    supervisor = installed.supervisor()
    assert supervisor is not None
    assert re.search(r"down: \d+ deleted", installed.assert_down().out)
    assert not supervisor.alive()
    installed.assert_down()
