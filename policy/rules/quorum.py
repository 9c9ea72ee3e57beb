"""Rule: how many machines with a member of etcd (control plane machines and arbiters) a change may remove."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from .base import Found, Given, Resource, Rule, mapping, strings
from .machines import DEVICE, ETCD, INSTALLATION, IRONIC, REDFISH, has_etcd, is_formed

_IDENTITY = {DEVICE: "created", REDFISH: "machineId", IRONIC: "machineId"}
"""The output of each resource type that identifies the machine: updates never change it, and another machine has
another value."""


def _check(resources: Sequence[Resource], given: Given) -> Iterator[Found]:
    after = {each.urn: each for each in resources}
    held = given.before()
    if not is_formed(held):
        return
    before = [each for each in held if has_etcd(each) or (each.type == INSTALLATION and each.text("role") in ETCD)]
    stay = {_machine(each) for each in resources if each.type in _IDENTITY}
    lost = {_hostname(each): each.urn for each in before if each.type in _IDENTITY and _machine(each) not in stay}
    again = {_hostname(each): each.urn for each in before if each.type == INSTALLATION and _is_other(each, after)}
    consent = _consent(given)
    for hostname, urn in sorted({**again, **lost}.items()):
        if not consent & {hostname, _short(hostname, given)}:
            way = "deleted, or replaced by another machine" if hostname in lost else "installed again"
            yield Found(
                f"{hostname} would be {way}, and its etcd member with it: leave it as it is, or name it in"
                " `metal-ipi:reprovision.consent`",
                urn if urn in after else None,
            )
    members = {_hostname(each) for each in before}
    survives = max(0, len(members) - 1) // 2
    if len(lost) > survives:
        yield Found(
            f"{len(lost)} of {len(members)} machines with etcd would be lost at once ({', '.join(sorted(lost))}), and "
            f"etcd survives the loss of {survives}: change one, wait until `oc get etcd` shows all members, then the"
            " next one"
            if survives
            else f"the only etcd member would be lost ({', '.join(sorted(lost))}): back it up, `destroy` and install "
            "anew"
        )


def _machine(resource: Resource) -> tuple[str, str, object]:
    """Identifies a machine. The URN does not: a resource can get another parent by an alias."""
    return resource.type, resource.name, resource.properties.get(_IDENTITY[resource.type])


def _is_other(old: Resource, after: dict[str, Resource]) -> bool:
    """Whether a machine that stays is to be installed with something else."""
    new = after.get(old.urn)
    return new is not None and new.properties.get("generation") != old.properties.get("generation")


def _hostname(resource: Resource) -> str:
    return resource.text("hostname") or resource.name


def _consent(given: Given) -> set[str]:
    section = mapping(json.loads(given.configuration.get("metal-ipi:reprovision") or "{}"))
    return set(strings(section.get("consent")))


def _short(hostname: str, given: Given) -> str:
    return hostname.removeprefix(f"{given.configuration.get('metal-ipi:clusterName', '')}-")


RULE = Rule(
    name="control-plane-quorum",
    description="A change removes no control plane machine or arbiter of a cluster without consent, and never more "
    "than etcd survives.",
    stack=_check,
)
