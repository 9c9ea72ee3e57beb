"""Each rule lets good resources pass, and says of bad ones what to change."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from policy.rules import document, pack
from policy.rules.base import UNKNOWN, Given, Resource, Rule, SecretText
from policy.rules.machines import (
    DEVICE,
    EPHEMERAL,
    INSTALLATION,
    IRONIC,
    PREFLIGHT,
    PROVIDER,
    REDFISH,
    SPOT_REQUEST,
    STACK,
)

RECORDS = "metal-ipi:index:DnsRecords"
GATE = "metal-ipi:index:Gate"
KEYS = "metal-ipi:index:ClusterKeys"
_RULES = {rule.name: rule for rule in pack.RULES}
_MARKS = ["metal-ipi", "metal-ipi:stack=lab", "metal-ipi:cluster=lab.test", "metal-ipi:run=1f"]
_SHA = "a" * 64


def _ignition(**more: Any) -> str:
    return json.dumps({"ignition": {"version": "3.4.0"}, **more})


def _file(data: bytes, *, packed: bool = False) -> dict[str, Any]:
    body = base64.b64encode(gzip.compress(data) if packed else data).decode()
    source = {"source": f"data:;base64,{body}", **({"compression": "gzip"} if packed else {})}
    return {"storage": {"files": [{"path": "/etc/x", "contents": source}]}}


def resource(type_: str, name: str = "thing", *, protected: bool = False, **properties: Any) -> Resource:
    return Resource(
        urn=f"urn:pulumi:lab::metal-ipi::{type_}::{name}",
        type=type_,
        name=name,
        properties=properties,
        protected=protected,
    )


def device(hostname: str = "lab-worker-0", role: str = "worker", **properties: Any) -> Resource:
    tags = [*_MARKS, f"metal-ipi:role={role}"]
    standard: dict[str, Any] = {
        "hostname": hostname,
        "plan": "c3.medium.x86",
        "metro": "da",
        "tags": tags,
        "alwaysPxe": False,
    }
    return resource(DEVICE, f"{hostname}-device", **{**standard, **properties})


def request(role: str) -> Resource:
    parameters = {"hostname": "x", "plan": "c3.medium.x86", "tags": [*_MARKS, f"metal-ipi:role={role}"]}
    return resource(SPOT_REQUEST, "x-request", metro="da", instanceParameters=parameters)


def orders(*machines: Mapping[str, Any], **place: Any) -> Resource:
    return resource(PREFLIGHT, "preflight", orders={"machines": list(machines), **place})


def boot(url: str, sha256: str | None = _SHA, release: str | None = None) -> Resource:
    file = {"name": "kernel", "url": url, "sha256": sha256}
    return resource(PREFLIGHT, "preflight", boot=[file], release=release)


def records(*entries: Mapping[str, Any], domain: str = "lab.test") -> Resource:
    return resource(RECORDS, "dns", domain=domain, records={str(number): each for number, each in enumerate(entries)})


def bmcs(*, secret: bool = True, **own: Any) -> Resource:
    one: dict[str, Any] = {
        "address": "https://10.0.0.11",
        "username": "u",
        "password": "long enough",
        "ca": "PEM",
        **own,
    }
    text = json.dumps({"worker-0": one})
    return resource(PROVIDER, "metal-ipi", bmcs=SecretText(text) if secret else text)


def enrolled(*, secret: bool = True, **own: Any) -> Resource:
    one = {"driver": "redfish", "address": "https://10.0.0.11", "username": "u", "password": "long enough", **own}
    text = json.dumps({"endpoint": "https://ironic.test", "servers": {"worker-0": one, "worker-1": {"node": "u7"}}})
    return resource(PROVIDER, "metal-ipi", ironic=SecretText(text) if secret else text)


def gate(*networks: str) -> Resource:
    return resource(GATE, "machine-config-access", kind="machine-config-access", spec={"networks": list(networks)})


def settings(**sections: Any) -> dict[str, str]:
    return {f"metal-ipi:{name}": json.dumps(value) for name, value in sections.items()}


def found(rule: Rule, resources: Sequence[Resource], given: Given) -> list[str]:
    if rule.resource is not None:
        return [message for each in resources for message in rule.resource(each, given)]
    assert rule.stack is not None
    return [each.message for each in rule.stack(resources, given)]


_PASS: list[tuple[str, list[Resource], Given]] = [
    ("allowed-places", [device()], Given()),
    ("allowed-places", [device()], Given(parameters={"metros": ["da"], "facilities": ["da11"]})),
    ("allowed-places", [device(metro=UNKNOWN)], Given(parameters={"metros": ["ny"]})),
    ("allowed-places", [orders(facilities=["da11"])], Given(parameters={"facilities": ["da11"]})),
    ("allowed-plans", [device()], Given(parameters={"worker": ["c3.medium.x86"], "control-plane": []})),
    ("allowed-plans", [resource(EPHEMERAL, platform="redfish", hostname="b")], Given(parameters={"bootstrap": []})),
    ("no-spot-control-plane", [request("worker"), device(role="control-plane")], Given()),
    ("plain-user-data", [device(userData=_ignition(**_file(b"ssh-ed25519 AAAA")))], Given()),
    ("plain-user-data", [device(userData=UNKNOWN), device(), resource(REDFISH)], Given()),
    ("boot-artifacts", [boot("https://mirror.test/9.8/kernel", release="9.8")], Given()),
    ("boot-artifacts", [boot("http://boot.test/9.8/kernel")], Given(parameters={"httpHosts": ["boot.test"]})),
    ("no-always-pxe-when-installed", [device(alwaysPxe=True)], Given()),
    ("no-always-pxe-when-installed", [device(), resource(INSTALLATION, hostname="lab-worker-0")], Given()),
    ("secrets-marked", [resource("x:y:Z", password=SecretText("p"), plan="c3")], Given()),
    ("secrets-marked", [resource(STACK)], Given(configuration=settings(platform={"authToken": "rehearsal"}))),
    ("secrets-marked", [resource(STACK)],
     Given(configuration=settings(platform={"authToken": "t"}), secret_keys=frozenset({"metal-ipi:platform"}))),
    ("secret-outputs", [resource(STACK, kubeconfig=SecretText("k"), kubeadminPassword=UNKNOWN)], Given()),
    ("open-ports", [resource(PROVIDER, dns=SecretText('{"port": 53}')), gate("10.0.0.0/8", "fd00::/16")], Given()),
    ("open-ports", [resource(INSTALLATION, port=2222)], Given(parameters={"allowed": [2222]})),
    ("required-tags", [device(tags=["metal-ipi:role=worker", "cost=7", *_MARKS])],
     Given(parameters={"required": ["cost="]})),
    ("required-tags", [device(tags=["metal-ipi:role=worker", *_MARKS[:3], UNKNOWN])], Given()),
    ("required-tags", [resource("equinix-metal:index/reservedIpBlock:ReservedIpBlock", tags=_MARKS)], Given()),
    ("hourly-budget", [resource(STACK, cost={"hourly": 9.0, "currency": "USD"})], Given(parameters={"maxHourly": 9})),
    ("hourly-budget", [resource(STACK, cost={"unknown": ["everything"]})], Given(parameters={"maxHourly": 9})),
    ("hourly-budget", [resource(STACK, cost={"hourly": 99.0})], Given()),
    ("dns-below-cluster", [records({"name": "*.apps.lab.test", "type": "A", "values": [UNKNOWN]})], Given()),
    ("dns-below-cluster", [records({"name": UNKNOWN, "type": "PTR", "values": ["n.lab.test"]})], Given()),
    ("dns-below-cluster", [records({"name": "9.2.0.192.in-addr.arpa", "type": "PTR", "values": ["n.lab.test."]})],
     Given()),
    ("protect-stateful", [device(), resource("x:y:Z")], Given()),
    ("protect-stateful", [resource(KEYS, protected=True)], Given()),
    # It is ordered again, when the installer's assets are made anew: there is no cluster yet.
    ("protect-stateful", [device(role="control-plane")], Given(before=lambda: [resource(KEYS)])),
    ("verified-bmcs", [bmcs()], Given()),
    ("verified-bmcs", [enrolled(), enrolled(verifyCa="/etc/pki/bmc.pem")], Given()),
    ("verified-bmcs", [enrolled(driver="ipmi", address="ipmi://10.0.0.11")], Given()),
    ("verified-bmcs", [bmcs(ca=None)], Given()),
]  # fmt: skip

_REFUSED: list[tuple[str, list[Resource], Given, str]] = [
    ("allowed-places", [device()], Given(parameters={"metros": ["ny"]}), "set `metal-ipi:platform.metro` to one of ny"),
    ("allowed-places", [orders({"role": "worker"}, facilities=["da11"])], Given(parameters={"facilities": []}), "da11"),
    ("allowed-plans", [device()], Given(parameters={"worker": ["m3"]}), "platform.workerPlan` to one of m3"),
    ("allowed-plans", [orders({"role": "control-plane", "plan": "c3"})], Given(parameters={"control-plane": []}),
     "not allowed for the role control-plane"),
    ("no-spot-control-plane", [request("control-plane")], Given(), "order it on demand"),
    ("no-spot-control-plane", [orders({"role": "bootstrap", "spotMaxPrice": 1.0})], Given(), "spot market"),
    ("plain-user-data", [device(userData="#!ipxe\nboot")], Given(), "not plain Ignition"),
    ("plain-user-data", [device(userData='{"ignition": {"version": "2.3.0"}}')], Given(), "version 3"),
    ("plain-user-data", [device(userData=_ignition(x="y" * 70000))], Given(), "the limit is 65536"),
    ("plain-user-data", [device(userData=_ignition(**_file(b"-----BEGIN OPENSSH PRIVATE KEY-----", packed=True)))],
     Given(), "a private key"),
    ("plain-user-data", [device(userData=_ignition(**_file(b'{"auths": {"q": 1}}')))], Given(), "a pull secret"),
    ("plain-user-data", [device(userData=_ignition(passwd={"users": [{"name": "core", "passwordHash": "$6$x"}]}))],
     Given(), "a password"),
    ("plain-user-data", [device(userData=_ignition(**_file(b"client-key-data: QQ==")))], Given(), "a kubeconfig"),
    ("boot-artifacts", [boot("http://mirror.test/kernel")], Given(), "use an https mirror"),
    ("boot-artifacts", [boot("https://mirror.test/kernel", sha256=None)], Given(), "has no SHA-256"),
    ("boot-artifacts", [boot("https://m.test/9.7/kernel", release="9.8")], Given(), "is not of release 9.8"),
    ("no-always-pxe-when-installed", [device(alwaysPxe=True), resource(INSTALLATION, hostname="lab-worker-0")], Given(),
     "Order it with alwaysPxe false"),
    ("secrets-marked", [resource("x:y:Z", "z", nested=[{"privateKey": "PEM"}])], Given(), "z: nested[0].privateKey"),
    ("secrets-marked", [resource(PROVIDER, "p", dns='{"tsig": {"secret": "s"}}')], Given(), "dns.tsig.secret"),
    ("secrets-marked", [resource(STACK)], Given(configuration=settings(platform={"authToken": "t"})),
     "pulumi config set --secret --path 'metal-ipi:platform.authToken'"),
    ("secret-outputs", [resource(STACK, kubeconfig="k")], Given(), "the output kubeconfig is a secret"),
    ("open-ports", [resource(PROVIDER, artifacts='{"port": 2222}')], Given(), "metal-ipi:artifacts uses port 2222"),
    ("open-ports", [bmcs(address="https://10.0.0.1:8443")], Given(), "the BMC of worker-0 uses port 8443"),
    ("open-ports", [gate("0.0.0.0/0")], Given(), "machineConfigServer.allowedNetworks"),
    ("open-ports", [gate("10.0.0.0/8")], Given(parameters={"widest": 16}), "none wider than /16"),
    ("required-tags", [device(tags=["metal-ipi"])], Given(), "lacks the tags metal-ipi:stack="),
    ("required-tags", [device()], Given(parameters={"required": ["costcentre="]}), "lacks the tag costcentre="),
    ("hourly-budget", [resource(STACK, cost={"hourly": 9.5, "hourlyAtMost": 12.0})],
     Given(parameters={"maxHourly": 10}), "12.00 USD an hour, and its budget is 10"),
    ("hourly-budget", [resource(STACK, cost={"unknown": ["everything"], "source": "a rehearsal"})],
     Given(parameters={"maxHourly": 9, "unknown": "refuse"}), "metal-ipi:cost.priceFile"),
    ("dns-below-cluster", [records({"name": "www.test", "type": "A", "values": []})], Given(), "not below lab.test"),
    ("dns-below-cluster", [records({"name": UNKNOWN, "type": "PTR", "values": ["x.test"]})], Given(), "not below lab"),
    ("dns-below-cluster", [records({"name": "xlab.test", "type": "A", "values": []})], Given(), "not below lab.test"),
    ("dns-below-cluster", [records({"name": "a.lab.test", "type": "A", "values": []})],
     Given(configuration={"metal-ipi:clusterName": "ny", "metal-ipi:baseDomain": "test"}), "not below ny.test"),
    ("dns-below-cluster", [records({"name": "9.2.0.192.in-addr.arpa", "type": "PTR", "values": ["www.test."]})],
     Given(), "www.test. is not below"),
    ("protect-stateful", [device(role="control-plane")], Given(), "set `metal-ipi:protect` to true"),
    ("protect-stateful", [resource(REDFISH, hostname="r-control-plane-0")], Given(), "is not protected"),
    ("protect-stateful", [resource(IRONIC, hostname="r-control-plane-0")], Given(), "is not protected"),
    ("protect-stateful", [resource(KEYS)], Given(), "is not protected"),
    ("protect-stateful", [resource(KEYS)], Given(before=lambda: [resource(KEYS)]), "is not protected"),
    ("protect-stateful", [resource(REDFISH, hostname="r-control-plane-0")], Given(before=lambda: [resource(KEYS)]),
     "is not protected"),
    ("protect-stateful", [device(role="control-plane")],
     Given(before=lambda: [resource(KEYS), resource(GATE, kind="bootstrap-complete")]), "is not protected"),
    ("verified-bmcs", [enrolled(secret=False)], Given(), "a password that is not marked as secret"),
    ("verified-bmcs", [enrolled(address="http://10.0.0.11")], Given(), "use https"),
    ("verified-bmcs", [enrolled(address="ipmi://10.0.0.11")], Given(), "use https"),
    ("verified-bmcs", [enrolled(driver="ipmi", address="ipmi://10.0.0.11")],
     Given(parameters={"ipmi": False}), "is reached by IPMI, which gives a hash of its password"),
    ("verified-bmcs", [enrolled(verifyCa="false")], Given(), "is not verified by Ironic"),
    ("verified-bmcs", [bmcs(secret=False)], Given(), "a password that is not marked as secret"),
    ("verified-bmcs", [bmcs(address="http://10.0.0.11")], Given(), "use https"),
    ("verified-bmcs", [bmcs(address="https://u:p@10.0.0.11")], Given(), "has its account in its address"),
    ("verified-bmcs", [bmcs(verify=False)], Given(), "is not verified"),
    ("verified-bmcs", [bmcs(insecure=True)], Given(), "is not verified"),
    ("verified-bmcs", [bmcs(ca=None)], Given(parameters={"systemAuthorities": False}), "a fingerprint"),
    ("verified-bmcs", [bmcs()],
     Given(configuration=settings(platform={"servers": [{"bmc": {"password": "in clear"}}]})),
     "metal-ipi:platform.servers[0].bmc.password"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "resources", "given"), _PASS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_is_as_it_should_be_passes(name: str, resources: list[Resource], given: Given) -> None:
    assert found(_RULES[name], resources, given) == []


@pytest.mark.parametrize(
    ("name", "resources", "given", "fragment"), _REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_is_not_is_refused(name: str, resources: list[Resource], given: Given, fragment: str) -> None:
    messages = found(_RULES[name], resources, given)
    assert messages and fragment in messages[0], messages
    assert not any("long enough" in message or "in clear}" in message for message in messages), "it repeats a secret"


def test_every_rule_has_both_kinds_of_example() -> None:
    quorum = "control-plane-quorum"  # test_quorum.py
    assert {name for name, *_ in _PASS} == {name for name, *_ in _REFUSED} == set(_RULES) - {quorum}


def test_names_and_descriptions_are_fit_for_people() -> None:
    assert len(_RULES) == len(pack.RULES)
    for rule in pack.RULES:
        assert rule.description.endswith(".") and (rule.resource is None) != (rule.stack is None)
        assert all(parameter["description"].endswith(".") for parameter in rule.parameters.values())


def test_the_documentation_is_what_the_rules_say() -> None:
    assert (Path(__file__).parents[2] / document.DOCUMENT).read_text() == document.text(), (
        "run python -m policy.rules.document"
    )
