"""DNS under the real engine, against a real Knot: what a preview shows of each record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pulumi
import pytest
from pulumi import automation

from metal_ipi.provider import types
from tests.provider import knot
from tests.real_engine import make_stack, needs_engine

pytestmark = [
    *needs_engine,
    pytest.mark.skipif(not knot.installed(), reason="knotd is not installed (apt: knot)"),
]


def _record(name: str, *values: str) -> types.DnsRecordArgs:
    return types.DnsRecordArgs(name=f"{name}.lab.facility.test", type="A", values=list(values))


def test_previews_tell_each_record_by_its_name(tmp_path: Path) -> None:
    records: list[types.DnsRecordArgs] = []

    with knot.running(tmp_path) as settings:

        def program() -> None:
            opts = pulumi.ResourceOptions(provider=types.Provider("p", types.ProviderArgs(dns=settings)))
            args = types.DnsRecordsArgs(zone="facility.test", domain="lab.facility.test", ttl=30, records=records)
            types.DnsRecords("dns", args, opts)

        def wanted(new: Sequence[types.DnsRecordArgs]) -> automation.Stack:
            records[:] = new
            return stack

        stack = make_stack(tmp_path, program)
        wanted([_record("api", "198.51.100.1", "198.51.100.3"), _record("gone", "198.51.100.5")]).up()
        assert dict(stack.preview().change_summary) == {automation.OpType.SAME: 3}
        printed: list[str] = []
        new = [_record("fresh", "198.51.100.7"), _record("api", "198.51.100.1", "198.51.100.9")]
        wanted(new).preview(diff=True, on_output=printed.append, color="never")
        shown = " ".join(" ".join(printed).split()).replace(" : {", ": {")
        for words in (
            "~ api.lab.facility.test A: {",
            '~ [1]: "198.51.100.3" => "198.51.100.9"',
            "+ fresh.lab.facility.test A: {",
            "- gone.lab.facility.test A: {",
        ):
            assert words in shown, shown
        stack.up()
        assert dict(stack.refresh().summary.resource_changes or {}) == {"same": 3}
        stack.destroy()
