"""Runs all checks of a stack."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from metal_ipi.provider.configuration import Settings, secret_values
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.inventory import rules
from metal_ipi.provider.metal_client import MetalClient
from metal_ipi.provider.platforms.ironic import Ironic
from metal_ipi.provider.platforms.redfish import Redfish
from metal_ipi.provider.preflight.account import Account
from metal_ipi.provider.preflight.checks import (
    addresses,
    artifact_host,
    bmcs,
    boot_files,
    capacity,
    clock,
    dns,
    hardware,
    images,
    installer,
    inventory,
    ironic,
    limits,
    names,
    plans,
    reservations,
    runs,
    secure_boot,
    spot,
    stream,
    token,
)
from metal_ipi.provider.preflight.findings import Finding, Report, error, overridden, warning
from metal_ipi.provider.preflight.plan import Plan
from metal_ipi.provider.preflight.rack import Rack
from metal_ipi.provider.preflight.subject import Subject
from metal_ipi.provider.status import Redactor

if TYPE_CHECKING:
    import httpx


class Check(Protocol):
    """A module of `checks`: its name, and its function."""

    @property
    def NAME(self) -> str: ...
    @property
    def check(self) -> Callable[[Subject], Awaitable[list[Finding]]]: ...


_OF_METAL: Sequence[Check] = (plans, capacity, reservations, spot, limits, runs, names, hardware)
"""Checks that need a valid API token."""
_OF_RACK: Sequence[Check] = (bmcs, hardware, inventory, secure_boot)
"""Checks of servers with BMCs."""
_OF_IRONIC: Sequence[Check] = (ironic, hardware, inventory)
"""Checks of Ironic and of the servers that come from it."""
_OF_ALL: Sequence[Check] = (addresses, dns, boot_files, artifact_host, installer, images, stream)
_MODULES = (token, *_OF_METAL, *_OF_RACK, *_OF_IRONIC, *_OF_ALL, clock)
NAMES = tuple(
    dict.fromkeys(name for each in _MODULES for name in (rules.NAMES if each.NAME == inventory.NAME else (each.NAME,)))
)
"""The names of all checks. The rules of the check `inventory` count as checks with their own names."""
_NOT_ASKED = warning("not checked: the API token gives no access to the project", "correct the token first (above)")
_TIMEOUT, _PATIENCE = 60, 15
"""Seconds to wait for one answer, and seconds to retry a failing call: the user waits for the report."""


async def run(
    plan: Plan, settings: Settings, *, again: bool = False, transport: httpx.AsyncBaseTransport | None = None
) -> Report:
    """Runs all checks and returns their findings, in the order of the checks. Changes nothing that lasts.

    `again`: the stack has passed the checks before.
    """
    async with AsyncExitStack() as stack:
        account = rack = None
        if plan.orders is not None:
            client = MetalClient(settings.need_metal(), timeout=_TIMEOUT, patience=_PATIENCE, transport=transport)
            account = Account(await stack.enter_async_context(client), plan.project_id)
        if servers := tuple(server for server in plan.servers if server.bmc is not None):
            driver = await stack.enter_async_context(Redfish(settings, timeout=_TIMEOUT))
            rack = Rack(servers, lambda server: driver.survey(str(server.bmc), server.macs))
        lender = lent = None
        if servers := tuple(server for server in plan.servers if server.ironic is not None):
            lender = ironic_driver = await stack.enter_async_context(Ironic(settings, timeout=_TIMEOUT))
            lent = Rack(servers, lambda server: ironic_driver.seen(str(server.ironic)))
        subject = Subject(
            plan=plan, settings=settings, account=account, servers=rack, lender=lender, lent=lent, again=again
        )
        findings = await _one(token, subject) if account else []
        is_let_in = account is not None and not any(finding.level == "error" for finding in findings)
        if account is not None and is_let_in and account.project is None:
            account.project = await _made_before(subject)
        asked = (
            *(_OF_METAL if is_let_in else ()),
            *(_OF_RACK if rack else ()),
            *(_OF_IRONIC if lent else ()),
            *_OF_ALL,
        )
        if account is not None and not is_let_in:
            subject = replace(subject, account=None)
            findings += [replace(_NOT_ASKED, check=each.NAME) for each in _OF_METAL]
        for found in await asyncio.gather(*(_one(each, subject) for each in asked)):
            findings += found
        if account is not None and account.client.clock is not None:
            subject.clocks["the Metal API"] = account.client.clock
        findings += await _one(clock, subject)
        redact = Redactor()
        redact.learn(secret_values(settings))
        findings = [replace(each, what=redact(each.what), remedy=redact(each.remedy)) for each in findings]
        told = {name: redact(text) for name, text in subject.told.items()}
        return Report(findings=overridden(findings, plan.overrides, plan.excused), told=told)


async def _made_before(subject: Subject) -> str | None:
    """The id of the project that an earlier run created for this stack; None if there is none."""
    try:
        for account in await subject.projects_of_its_name():
            if await subject.is_our_project(account):
                return account.project
    except ProviderError:
        return None  # the check `names` makes the same request, and reports the error
    return None


async def _one(check: Check, subject: Subject) -> list[Finding]:
    try:
        found = await check.check(subject)
    except ProviderError as failure:
        found = [error(str(failure), "correct that, or check that the service works, and run the same command again")]
    return [replace(finding, check=finding.check or check.NAME) for finding in found]
