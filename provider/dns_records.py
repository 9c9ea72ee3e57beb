"""DnsRecords: values in DNS record sets of one zone.

Each value has an owner, which is written beside it (provider/dns_ownership.py). Values of other resources, stacks or
people in the same set are never changed.

Life cycle:

- create first refuses sets with values that this stack does not own; then it adds the values, and waits until the
  zone's servers answer with them;
- update adds and removes only what differs;
- read reports which of our values exist, so that the next up adds missing ones. Missing values of an `ephemeral`
  resource count as existing;
- delete removes our values and the markers; missing ones are no error.

Killed at any moment: a marker is added before its values and removed after them. So the next run knows the owner of
each value, even if the state was not written or is lost; completed steps are not repeated.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.dns_delegation import await_delegation
from metal_ipi.provider.dns_inputs import Spec, as_given, record_changes, records_of, spec_of
from metal_ipi.provider.dns_ownership import Claims, Owner, digest, digests, is_place, place_of, places
from metal_ipi.provider.dns_patience import Patience
from metal_ipi.provider.dns_services import Change, DnsService, Found, Key, RecordSet, Throttled
from metal_ipi.provider.dns_services.opening import open_service
from metal_ipi.provider.errors import DnsConflict, InitFailed, RemoteError
from metal_ipi.provider.per_loop import PerLoop
from metal_ipi.provider.resource import Changes, Context, Kind, Made, ResourceType, Values
from metal_ipi.provider.resources.dns_records import DnsRecordsArgs, within

_Value = tuple[Key, str]
_locks = PerLoop[defaultdict[str, asyncio.Lock]](lambda: defaultdict(asyncio.Lock))
"""Locks by zone."""
_CONFLICT_STAYS = 3.0
"""Seconds."""

__all__ = ["DnsRecords", "records_of", "withdraw"]


class DnsRecords(ResourceType):
    """Values in DNS record sets of one zone."""

    token = "metal-ipi:index:DnsRecords"  # noqa: S105 - a type token
    inputs = DnsRecordsArgs
    found_by_inputs = True

    def diff(self, context: Context, old: Values, new: Values) -> Changes:
        changes: dict[str, Kind] = {}
        for key in ("zone", "domain", "ttl"):
            if old.get(key) != new.get(key):
                changes[key] = "update"
        if bool(old.get("ephemeral")) != bool(new.get("ephemeral")):
            changes["ephemeral"] = "update"
        if not old.get("marked"):
            changes["marked"] = "update"
        changes.update(record_changes(old.get("records"), new.get("records")))
        return Changes(changes=changes, replaces=frozenset({"zone"}) & changes.keys())

    def preview(self, context: Context, old: Values | None, new: Values) -> Values:
        return {"marked": True}

    async def create(self, context: Context, inputs: Values) -> Made:
        spec = spec_of(inputs)
        resource_id = f"{spec.zone}/{context.name}"
        await _Work(context, spec.zone).apply(spec, (), inputs, resource_id)
        return Made(id=resource_id, outputs={"marked": True})

    async def update(self, context: Context, resource_id: str, old: Values, new: Values) -> Values:
        spec = spec_of(new)
        before = [record for record in records_of(old.get("records") or []) if within(record.name, spec.zone)]
        await _Work(context, spec.zone).apply(spec, before, new, resource_id)
        return {"marked": True}

    async def read(self, context: Context, resource_id: str, old: Values) -> Values | None:
        if old.get("ephemeral"):
            return {}
        zone = str(old["zone"]).lower()
        records = records_of(old["records"])
        inside = [record for record in records if within(record.name, zone)]
        now = await _Work(context, zone).read(inside, str(old.get("domain") or zone))
        held = Claims(now).held_by(Owner.of(context.urn))
        marked = {"marked": digests(inside) <= held}
        if all(record.values <= now.get(record.key, {}).keys() for record in inside):
            return marked
        seen = [replace(record, values=record.values.intersection(now.get(record.key, {}))) for record in inside]
        outside = [record for record in records if not within(record.name, zone)]
        return {**marked, "records": as_given(old["records"], [*seen, *outside])}

    async def delete(self, context: Context, resource_id: str, old: Values) -> None:
        zone = str(old["zone"]).lower()
        domain = str(old.get("domain") or zone)
        await _Work(context, zone).withdraw(records_of(old.get("records") or []), domain, of=Owner.of(context.urn))


async def withdraw(context: Context, zone: str, records: Sequence[RecordSet]) -> None:
    """Remove this stack's values, of any of its resources, and wait until no server answers with them."""
    await _Work(context, zone).withdraw(records, zone)


class _Work:
    """One operation on one zone."""

    def __init__(self, context: Context, zone: str) -> None:
        self._context = context
        self._zone = zone
        self._settings = context.settings.need_dns()
        self._service: DnsService = open_service(self._settings, zone)
        self._owner = Owner.of(context.urn)

    async def apply(self, spec: Spec, before: Sequence[RecordSet], inputs: Values, resource_id: str) -> None:
        """Change the zone from the old values to the new ones. An error after the change keeps the new state."""
        changed = {"records": inputs["records"], "marked": True}
        async with self._alone():
            added, removed = await self._bring(spec, before)
            with self._keeping(resource_id, changed):
                await self._await_views(present=[], absent=removed)
        with self._keeping(resource_id, changed):
            await self._await_views(present=added, absent=[])
            await await_delegation(self._context, self._settings, spec.zone)

    @contextmanager
    def _keeping(self, resource_id: str, outputs: dict[str, Any]) -> Generator[None]:
        """Turn an error after the change into InitFailed, so that the state contains the change."""
        try:
            yield
        except RemoteError as error:
            message = f"zone {self._zone} was changed, but {error}"
            raise InitFailed(message, resource_id, outputs) from None

    def _alone(self) -> asyncio.Lock:
        """A lock from reading a zone until its servers no longer have the removed values.

        One resource of a stack may take over a value that another one removes, for example an address that a machine
        takes over. Neither may read or change the zone while the other is not finished.
        """
        return _locks.get()[self._zone]

    async def _bring(self, spec: Spec, before: Sequence[RecordSet]) -> tuple[list[_Value], list[_Value]]:
        """Make the changes; returns the values that must exist afterwards, and the removed ones."""
        now, claims = await self._read_without_conflicts(spec, before)
        wanted = {record.key: record.values for record in spec.records}
        ours = {record.key: record.values for record in before}
        held = claims.held_by(self._owner)
        gone: list[_Value] = []
        for key in {**ours, **wanted}:
            left = {value for value in now.get(key, {}) if digest(key, value) in held} | ours.get(key, frozenset())
            gone += [(key, value) for value in sorted(left - wanted.get(key, frozenset()))]
        removed = frozenset(digest(key, value) for key, value in gone)
        added = [(key, value) for key, values in wanted.items() for value in sorted(values)]
        if spec.ephemeral:  # What was withdrawn in between stays withdrawn.
            added = [
                (key, value)
                for key, value in added
                if value not in ours.get(key, frozenset()) or value in now.get(key, {}) or digest(key, value) in held
            ]
        kept = held | frozenset(digest(key, value) for key, value in added)
        marking = claims.rewritten(self._owner, kept - removed, place_of(spec.domain))
        removing = [
            Change(key=key, value=value, remove=True)
            for key, value in gone
            if not claims.is_others(key, value, self._owner.stack) and not self._held_beside(claims, key, value)
        ]
        changes = [
            *(change for change in marking if not change.remove),
            *(Change(key=key, value=value) for key, value in added),
            *removing,
            *(change for change in marking if change.remove),
        ]
        await self._change(changes, spec.ttl, now)
        return added, [(change.key, change.value) for change in removing]

    async def withdraw(self, records: Sequence[RecordSet], domain: str, of: Owner | None = None) -> None:
        """Remove values: with all markers of the resource `of`; or, if None, from the markers of all resources of the
        stack."""
        async with self._alone():
            await self._take(records, domain, of)

    async def _take(self, records: Sequence[RecordSet], domain: str, of: Owner | None) -> None:
        inside = [record for record in records if within(record.name, self._zone)]
        now = await self.read(inside, domain)
        claims = Claims(now)
        gone = [
            (record.key, value)
            for record in inside
            for value in sorted(record.values & now.get(record.key, {}).keys())
            if not claims.is_others(record.key, value, self._owner.stack)
            and not (of and self._held_beside(claims, record.key, value))
        ]
        removing = [Change(key=key, value=value, remove=True) for key, value in gone]
        unmarking = (
            claims.without(self._owner.stack, digests(inside))
            if of is None
            else claims.rewritten(of, frozenset(), place_of(self._zone))
        )
        marking = [change for change in unmarking if not change.remove]
        unmarking = [change for change in unmarking if change.remove]
        await self._change([*marking, *removing, *unmarking], None, now)
        await self._await_views(present=[], absent=gone)

    def _held_beside(self, claims: Claims, key: Key, value: str) -> bool:
        """Whether another resource of the stack holds the same value, which must stay then."""
        return any(holder.stack == self._owner.stack and holder != self._owner for holder in claims.holders(key, value))

    async def _read_without_conflicts(self, spec: Spec, before: Sequence[RecordSet]) -> tuple[Found, Claims]:
        """Read the sets and their markers. Raises DnsConflict.

        A service answers for one set after the other. Another stack of the cluster may write in between: its values are
        seen then, and its markers are not. So only a conflict that stays for a while is one.
        """
        backoff = Backoff(timeout=_CONFLICT_STAYS, first=0.1)
        while True:
            now = await self.read([*spec.records, *before], spec.domain)
            claims = Claims(now)
            try:
                self._refuse_conflicts(spec, before, now, claims)
            except DnsConflict:
                if backoff.over:
                    raise
                await backoff.pause()
            else:
                return now, claims

    def _refuse_conflicts(self, spec: Spec, before: Sequence[RecordSet], now: Found, claims: Claims) -> None:
        """Raise DnsConflict if a set that we are about to own has values of others: another cluster may use the name.

        In a set that is ours already, values of others are allowed, except the same value.
        """
        ours = {record.key: record.values for record in before}
        problems: list[str] = []
        for record in spec.records:
            mine = ours.get(record.key)
            for value in sorted(now.get(record.key, {})):
                holders = claims.holders(record.key, value)
                if any(holder.stack == self._owner.stack for holder in holders):
                    continue
                if mine is not None and not holders and value in mine:
                    continue
                if value not in record.values and any(_is_of(holder, spec.beside) for holder in holders):
                    continue
                if mine is None or value in record.values:
                    problems.append(f"{record.name} {record.type} is {value} ({_owners_text(holders)})")
            aliases = now.get((record.name, "CNAME"), {}) if record.type != "CNAME" else {}
            problems += [f"{record.name} is an alias, CNAME {target}" for target in sorted(aliases)]
        if problems:
            raise DnsConflict(
                f"zone {spec.zone} already has values that this stack did not set; nothing was changed: "
                f"{'; '.join(problems)}. Remove them, or choose another cluster name or domain"
            )

    async def read(self, records: Sequence[RecordSet], domain: str) -> Found:
        """Read the sets, and the markers that may tell their owners. Retries while the service does not answer."""
        names = [place_of(domain), *(record.name for record in records)]
        keys = {record.key for record in records} | places(names, self._zone)
        patience = Patience(self._context, self._settings.propagation.timeout)
        while True:
            try:
                return await self._service.read(keys)
            except RemoteError as error:
                await patience.bear(error)

    async def _change(self, changes: Sequence[Change], ttl: int | None, now: Found) -> None:
        """Make changes, and repeat those that are left while the service does not answer or throttles.

        Without a TTL, markers keep that of the set they are in.
        """
        patience = Patience(self._context, self._settings.propagation.timeout)
        left: list[Change] = [change for change in changes if _is_left(change, now, ttl)]
        while left:
            try:
                await self._service.change(left, _ttl(ttl, left, now), now)
                break
            except RemoteError as error:
                await patience.bear(error)
            try:
                now = await self._service.read({change.key for change in changes})
            except RemoteError as error:
                await patience.bear(error)
                continue
            still = [change for change in changes if _is_left(change, now, ttl)]
            if len(still) < len(left):
                patience = Patience(self._context, self._settings.propagation.timeout)
            left = still

    async def _await_views(self, *, present: Sequence[tuple[Key, str]], absent: Sequence[tuple[Key, str]]) -> None:
        """Wait until every asked server has all added values and none of the removed ones."""
        timeout = self._settings.propagation.timeout
        backoff, last = Backoff(timeout=timeout, first=0.1, longest=2.0), "nothing"
        keys = sorted({key for key, _ in (*present, *absent)})
        while keys:
            wait = 0.0
            try:
                problems = [
                    f"{where}: {problem}"
                    for where, seen in await self._service.views(keys)
                    if (problem := _difference(seen, present, absent))
                ]
                if not problems:
                    return
                last = "; ".join(problems)
            except Throttled as error:
                last, wait = str(error), error.retry_after
            except RemoteError as error:
                last = str(error)
            if backoff.over:
                raise RemoteError(f"not all name servers have the change within {timeout:g} s; {last}")
            await self._context.status.live(f"waiting for {last}, {backoff.elapsed:.0f} s")
            await backoff.pause(wait)


def _is_of(holder: Owner, cluster: str | None) -> bool:
    """Whether values belong to this cluster's stack, or to a stack of its pools."""
    return cluster is not None and (holder.stack == cluster or holder.stack.startswith(f"{cluster}-"))


def _is_left(change: Change, now: Found, ttl: int | None) -> bool:
    there = now.get(change.key, {}).get(change.value)
    if change.remove:
        return there is not None
    return there is None or (ttl is not None and there != ttl and not is_place(change.key))


def _ttl(ttl: int | None, changes: Sequence[Change], now: Found) -> int:
    if ttl is not None:
        return ttl
    return max((seconds for change in changes for seconds in now.get(change.key, {}).values()), default=60)


def _owners_text(holders: Iterable[Owner]) -> str:
    stacks = sorted({holder.stack for holder in holders})
    return "of stack " + ", ".join(stacks) if stacks else "its owner is not known"


def _difference(seen: Found, present: Sequence[tuple[Key, str]], absent: Sequence[tuple[Key, str]]) -> str:
    missing = {f"{key[0]} {key[1]}" for key, value in present if value not in seen.get(key, {})}
    stale = {f"{key[0]} {key[1]}" for key, value in absent if value in seen.get(key, {})}
    parts = [
        f"{what} {', '.join(sorted(names)[:5])}{' and more' if len(names) > 5 else ''}"
        for what, names in (("missing", missing), ("still there", stale))
        if names
    ]
    return ", ".join(parts)
