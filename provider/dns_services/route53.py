"""AWS Route 53, through boto3: each batch of changes is applied as a whole or not at all.

Not through dns-lexicon's provider (3.25.2): it reads the whole zone for each record, sends each value separately,
treats a refused change as a success, and supports neither endpoints nor session tokens. Here a set is replaced in one
batch: it is deleted exactly as it was read, and created again. If it was changed in between, Route 53 refuses the whole
batch, and the set is read again.

Sources: Route 53 API reference, ChangeResourceRecordSets (limits of a batch), GetChange (INSYNC: all of Route 53's
authoritative servers have it).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.dns_services import Change, Found, Key, Throttled, canonical, spelled
from metal_ipi.provider.dns_settings import Route53Settings
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.web import retry_after

if TYPE_CHECKING:
    from mypy_boto3_route53 import Route53Client
    from mypy_boto3_route53.type_defs import ChangeTypeDef, ResourceRecordSetUnionTypeDef

_VALUES_PER_BATCH = 400
"""The limits of a batch are 1,000 values and 32,000 characters; a replaced value counts twice."""
_THROTTLED = ("Throttling", "ThrottlingException", "PriorRequestNotComplete", "RequestLimitExceeded")
_CREDENTIALS = {
    "ExpiredToken": "have expired; set dns.sessionToken (and the keys) anew",
    "InvalidClientTokenId": "are not known; correct dns.accessKeyId",
    "UnrecognizedClientException": "are not known; correct dns.accessKeyId",
    "InvalidAccessKeyId": "are not known; correct dns.accessKeyId",
    "SignatureDoesNotMatch": "do not match; correct dns.secretAccessKey",
    "AccessDenied": "may not do this; check the IAM policy of the user of dns.accessKeyId",
    "AccessDeniedException": "may not do this; check the IAM policy of the user of dns.accessKeyId",
}
Result = TypeVar("Result")


class Route53Service:
    """A hosted zone."""

    def __init__(self, settings: Route53Settings, zone: str) -> None:
        self._settings = settings
        self._zone = zone
        self._opened: tuple[Route53Client, str] | None = None

    @property
    def where(self) -> str:
        return "Route 53"

    async def read(self, keys: Iterable[Key]) -> Found:
        wanted = set(keys)
        return await asyncio.to_thread(self._call, self._read, wanted)

    async def change(self, changes: Sequence[Change], ttl: int, now: Found) -> None:
        pending = [
            await asyncio.to_thread(self._call, self._send, batch) for batch in _batches(changes, ttl, now) if batch
        ]
        for change_id in pending:
            await self._in_sync(change_id)

    async def prove_writable(self, name: str) -> None:
        """Ask for the removal of a missing record: the answer differs, depending on whether the account may change the
        zone."""
        import botocore.exceptions

        def work() -> None:
            try:
                self._send([{"Action": "DELETE", "ResourceRecordSet": _set((name, "TXT"), ["metal-ipi"], 60)}])
            except botocore.exceptions.ClientError as error:
                if error.response.get("Error", {}).get("Code") != "InvalidChangeBatch":
                    raise

        await asyncio.to_thread(self._call, work)

    async def views(self, keys: Sequence[Key]) -> list[tuple[str, Found]]:
        # `change` waits for INSYNC, after which all of Route 53's servers have the change; so they need not be asked.
        return [(self.where, await self.read(keys))]

    def _call(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run `work`, and turn its errors into RemoteError."""
        import botocore.exceptions

        try:
            return work(*arguments)
        except botocore.exceptions.ClientError as error:
            raise self._worded(error) from None
        except botocore.exceptions.BotoCoreError as error:
            raise RemoteError(f"{self.where} does not answer: {error}", passing=True) from None

    def _worded(self, error: Any) -> RemoteError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        message = str(error.response.get("Error", {}).get("Message", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        if code in _THROTTLED or status == 429:
            return Throttled(f"{self.where} limits requests: {code} {message}", retry_after=retry_after(headers))
        if code in _CREDENTIALS:
            return RemoteError(f"the credentials for {self.where} {_CREDENTIALS[code]} ({code})")
        if code == "NoSuchHostedZone":
            return RemoteError(f"{self.where} has no hosted zone {self._settings.zone_id}; correct dns.zoneId")
        passing = status >= 500 or code == "InvalidChangeBatch"
        return RemoteError(f"{self.where} refuses, zone {self._zone}: {code} {message}", passing=passing)

    def _open(self) -> tuple[Route53Client, str]:
        """The client and the zone's id, which is looked up once."""
        if self._opened is None:
            import boto3
            from botocore.config import Config

            settings = self._settings
            client = boto3.client(
                "route53",
                region_name=settings.region,
                aws_access_key_id=settings.access_key_id,
                aws_secret_access_key=settings.secret_access_key,
                aws_session_token=settings.session_token,
                endpoint_url=settings.endpoint,
                # The caller decides about retries, because it must read again first.
                config=Config(connect_timeout=10, read_timeout=30, retries={"total_max_attempts": 1}),
            )
            self._opened = client, self._zone_id(client)
        return self._opened

    def _zone_id(self, client: Route53Client) -> str:
        known = self._settings.zone_id
        if known is not None:
            name = client.get_hosted_zone(Id=known)["HostedZone"]["Name"].rstrip(".").lower()
            if name == self._zone:
                return known
        zones = client.list_hosted_zones_by_name(DNSName=self._zone + ".", MaxItems="10")["HostedZones"]
        ids = [zone["Id"].rpartition("/")[2] for zone in zones if zone["Name"].rstrip(".").lower() == self._zone]
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise RemoteError(f"{self.where} has {len(ids)} zones {self._zone} ({', '.join(ids)}): set dns.zoneId")
        raise RemoteError(
            f"{self.where} has no hosted zone {self._zone}; check dns.zone, and the account of the access key"
        )

    def _read(self, wanted: set[Key]) -> dict[Key, dict[str, int]]:
        client, zone_id = self._open()
        names = {name for name, _ in wanted}
        found: dict[Key, dict[str, int]] = {}
        for page in client.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone_id):
            for item in page["ResourceRecordSets"]:
                key = (item["Name"].rstrip(".").replace("\\052", "*").lower(), str(item["Type"]))
                if key not in wanted and not (key[1] == "CNAME" and key[0] in names):
                    continue
                if "AliasTarget" in item:
                    found[key] = {"alias of " + item["AliasTarget"]["DNSName"]: 0}
                elif "SetIdentifier" in item:
                    found[key] = {"routed by policy " + item["SetIdentifier"]: 0}
                else:
                    values = item.get("ResourceRecords", [])
                    found[key] = {canonical(key[1], value["Value"]): int(item.get("TTL", 0)) for value in values}
        return found

    def _send(self, batch: list[ChangeTypeDef]) -> str:
        client, zone_id = self._open()
        answer = client.change_resource_record_sets(HostedZoneId=zone_id, ChangeBatch={"Changes": batch})
        return answer["ChangeInfo"]["Id"]

    def _status(self, change_id: str) -> str:
        client, _ = self._open()
        return client.get_change(Id=change_id)["ChangeInfo"]["Status"]

    async def _in_sync(self, change_id: str) -> None:
        timeout = self._settings.propagation.timeout
        backoff = Backoff(timeout=timeout, first=1.0)
        while True:
            try:
                if await asyncio.to_thread(self._call, self._status, change_id) == "INSYNC":
                    return
                wait = 0.0
            except Throttled as error:
                wait = error.retry_after
            if backoff.over:
                raise RemoteError(
                    f"{self.where} has not distributed the change of zone {self._zone} within {timeout:g} s"
                )
            await backoff.pause(wait)


def _batches(changes: Sequence[Change], ttl: int, now: Found) -> Iterator[list[ChangeTypeDef]]:
    """One batch if everything fits. Otherwise several, in the order of the changes."""
    if len(changes) <= _VALUES_PER_BATCH:
        yield _batch(changes, ttl, dict(now))
        return
    state: dict[Key, dict[str, int]] = {key: dict(values) for key, values in now.items()}
    for start in range(0, len(changes), _VALUES_PER_BATCH):
        yield _batch(changes[start : start + _VALUES_PER_BATCH], ttl, state)


def _batch(changes: Sequence[Change], ttl: int, state: dict[Key, Any]) -> list[ChangeTypeDef]:
    """The changes of one batch. `state` is the sets before the batch, and is updated to those after it."""
    after: dict[Key, dict[str, int]] = {}
    for change in changes:
        values = after.setdefault(change.key, dict(state.get(change.key, {})))
        if change.remove:
            values.pop(change.value, None)
        else:
            values[change.value] = ttl
    batch: list[ChangeTypeDef] = []
    for key, values in after.items():
        before = state.get(key, {})
        if before and before != values:
            batch.append({"Action": "DELETE", "ResourceRecordSet": _set(key, before, min(before.values()))})
        if values and before != values:
            batch.append({"Action": "CREATE", "ResourceRecordSet": _set(key, values, ttl)})
        state[key] = dict.fromkeys(values, ttl) if before != values else values
    return batch


def _set(key: Key, values: Iterable[str], ttl: int) -> ResourceRecordSetUnionTypeDef:
    name, kind = key
    records = [{"Value": spelled(kind, value)} for value in sorted(values)]
    result: Any = {"Name": name + ".", "Type": kind, "TTL": ttl, "ResourceRecords": records}
    return result
