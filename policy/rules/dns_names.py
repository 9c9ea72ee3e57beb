"""Rule: which DNS names a stack may write."""

from __future__ import annotations

from collections.abc import Iterator

from .base import UNKNOWN, Given, Resource, Rule, mapping

_RECORDS = "metal-ipi:index:DnsRecords"
_REVERSE = (".in-addr.arpa", ".ip6.arpa")


def _check(resource: Resource, given: Given) -> Iterator[str]:
    if resource.type != _RECORDS:
        return
    configuration = given.configuration
    name, base = (configuration.get(f"metal-ipi:{key}", "") for key in ("clusterName", "baseDomain"))
    domain = f"{name}.{base}" if name and base else resource.text("domain")
    for record in map(mapping, mapping(resource.properties.get("records")).values()):
        owner = str(record.get("name", "")).rstrip(".")
        # Before the machines exist, their addresses and therefore the names of their reverse records are unknown.
        reverse = record.get("type") == "PTR" and (owner.endswith(_REVERSE) or record.get("name") is UNKNOWN)
        names = [each for each in record.get("values") or [] if isinstance(each, str)] if reverse else [owner]
        for each in names:
            if not f".{each.rstrip('.')}".endswith(f".{domain}"):
                yield (
                    f"{record.get('type')} record of {owner}: {each} is not below {domain}: a cluster writes only its "
                    "own names; the owner of another domain must write names there"
                )


RULE = Rule(
    name="dns-below-cluster",
    description="DNS records are written below the cluster's name only; reverse records point below it.",
    resource=_check,
)
