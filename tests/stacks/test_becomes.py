"""What the settings page says of install-config.yaml is what the program renders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from metal_ipi.components.install.install_config import RENDERED
from metal_ipi.stacks import becomes
from metal_ipi.stacks.assets import config
from metal_ipi.stacks.platforms.registry import facility
from metal_ipi.stacks.settings import parse
from tests.conformance.facilities import ARBITER, BOTH_FAMILIES, OWN_FIELDS
from tests.mocks import config_text
from tests.stacks.answers import PUBLIC_KEY, settings
from tests.stacks.rack import SERVERS, rack
from tools.settings_reference import paths

_BAREMETAL = {
    f"{name}Address": {"type": "platform", "address": f"192.0.2.{last}"} for name, last in (("api", 8), ("ingress", 9))
}
_NONE = {"platform__bootstrap": {"type": "none"}, "platform__servers": [SERVERS[2]]}
_BOTH_FAMILIES: dict[str, Any] = {
    "platform__ipv6": {"network": "2001:db8:64::/64"},
    "platform__servers": [{**each, "ipv6Address": f"2001:db8:64::1{each['mac'][-1]}"} for each in SERVERS],
    "installConfig": {"networking": BOTH_FAMILIES},
}
_CHANGES: dict[str, dict[str, Any]] = {
    "clusterName": {"clusterName": "other"},
    "baseDomain": {"baseDomain": "example.org"},
    "platform.gateway": {"platform__gateway": None},
    "platform.prefix": {"platform__prefix": 25},
    "platform.ipv6.network": {"platform__ipv6": {"network": "2001:db8:64::/63"}},
    "platform.bootstrap": _NONE,
    "platform.servers": {"platform__servers": SERVERS[1:]},
    "boot.architecture": {"boot__architecture": "aarch64"},
    "install.pullSecret": {"install__pullSecret": '{"auths":{"quay.io":{"auth":"eDp6"}}}'},
    "install.fips": {"install__fips": True},
    "apiAddress: platform.address": {"apiAddress": {"type": "platform", "address": "192.0.2.7"}},
    "ingressAddress: platform.address": {"ingressAddress": {"type": "platform", "address": "192.0.2.7"}},
    "ssh.authorizedKeys": {"ssh__authorizedKeys": [f"{PUBLIC_KEY} somebody"]},
}


def _leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(each, f"{where}.{name}".lstrip("."))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, each in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from _leaves(each, f"{where}[{number}]")
    else:
        yield where, value


def _rendered(values: dict[str, str]) -> dict[str, Any]:
    found = parse(values, "s")
    return dict(_leaves(yaml.safe_load(config(found, facility(found), PUBLIC_KEY))))


def _changed(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {
        re.sub(r"\[\d+\]", "[]", where) for where in one.keys() | other.keys() if one.get(where) != other.get(where)
    }


@pytest.mark.parametrize("setting", becomes.FIELDS)
def test_a_setting_changes_the_fields_that_it_is_said_to_become(setting: str) -> None:
    if setting == "arbiter.count":
        without, with_one = (_rendered(config_text(rack(**each))) for each in (_BAREMETAL, ARBITER))
        assert with_one["arbiter.replicas"] == 1 and "arbiter.replicas" not in without
        return
    if setting.endswith(".count"):  # where machines are ordered; else the servers say how many there are
        one, other = ({"workers": {"count": 3}}, {"workers": {"count": 4}})
        if setting.startswith("controlPlane"):
            one, other = ({"workers": {"count": 0}, "controlPlane": {"count": count}} for count in (1, 3))
        before, after = (_rendered(settings("da11", **each)) for each in (one, other))
    else:
        base = _BAREMETAL if ": platform" in setting or setting == "platform.servers" else {}
        base = _BOTH_FAMILIES if "ipv6" in setting else base
        base = ARBITER if setting == "boot.architecture" else base
        before, after = (_rendered(config_text(rack(**{**base, **each}))) for each in ({}, _CHANGES[setting]))
    changed = _changed(before, after)
    if setting == "platform.bootstrap":  # which needs a single server
        changed -= set(becomes.of("platform.servers")[:3])
        assert changed == {"bootstrapInPlace.installationDisk"}
    elif setting == "platform.servers":
        assert {re.sub(r"\[\].+", "[]", field) for field in changed} == {"compute[]", "platform.baremetal.hosts[]"}
    else:
        assert changed == set(becomes.FIELDS[setting])


def test_every_field_that_is_rendered_is_some_settings() -> None:
    given = {name: value for name, value in OWN_FIELDS.items() if name != "other"}
    rendered = {re.sub(r"\[\d+\]", "[]", where) for where in _rendered(config_text(rack(installConfig=given)))}
    said = {field for setting in paths() for field in becomes.of(setting)}
    said |= {field for fields in becomes.FIELDS.values() for field in fields}
    assert rendered - said == {"apiVersion", "controlPlane.name", "compute[].name", "platform.none"}
    assert {field.split(".")[0].removesuffix("[]") for field in said} >= RENDERED.keys() - {"apiVersion", "platform"}
