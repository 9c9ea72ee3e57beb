"""The resource: its inputs, when it asks, and what it says; and the command that prints the report."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.provider.preflight.__main__ import main
from metal_ipi.provider.preflight.findings import Finding, Report, error, ok, warning
from metal_ipi.provider.preflight.resource import PreflightFailed
from tests.provider.harness import Harness, Resource
from tests.provider.preflight.asking import NOTHING_ORDERED, inputs


def rack(installer: str, **more: Any) -> dict[str, Any]:
    return {**NOTHING_ORDERED, "installer": installer, "version": "4.21.3", **more}


@pytest.fixture
def installer(tmp_path: Path) -> str:
    program = tmp_path / "openshift-install"
    program.write_text('#!/bin/sh\necho x >> "$0.calls"\necho openshift-install 4.21.3\n')
    program.chmod(0o755)
    return str(program)


async def test_inputs_that_cannot_be() -> None:
    it = Resource(Harness(), "Preflight")
    assert await it.check(inputs()) == []
    wrong = inputs(
        architecture="sparc", networks={"pods": "10.128.0.0"}, projectName="also", orders={"facilities": ["da11"]}
    )
    assert await it.check(wrong) == [
        "architecture must be one of x86_64, aarch64",
        "orders.metro or `facilities` must be given, and not both",
        "networks.pods must be a CIDR such as 10.128.0.0/14",
        "projectId or `projectName` must be given, and not both",
        "organizationId is required with `projectName`",
    ]
    assert "boots is not known; did you mean `boot`?" in await it.check({**inputs(), "boots": []})


async def test_it_asks_when_it_is_made_and_when_something_changes_and_never_in_a_preview(installer: str) -> None:
    def calls() -> int:
        log = Path(f"{installer}.calls")
        return log.read_text().count("x") if log.exists() else 0

    harness = Harness()
    it = Resource(harness, "Preflight")
    await it.preview(rack(installer))
    assert calls() == 0
    state = await it.up(rack(installer))
    assert calls() == 1 and set(state) == set(rack(installer))
    assert harness.log.messages[-1] == "3 checks, 1 warning"
    assert harness.log.warnings[0].startswith("warning  clock: no server reported the time")
    assert await it.changes(rack(installer)) == []
    assert await it.changes(rack(installer, zones=["facility.test"])) == ["zones"]
    await it.preview(rack(installer, version="4.22.0"))
    assert calls() == 1
    wrong = rack(installer, networks={"a": "10.0.0.0/8", "b": "10.1.0.0/16"})
    with pytest.raises(PreflightFailed, match=r"(?s)nothing was ordered.*overlaps.*remedy: choose another range"):
        await it.up(wrong)
    # It failed, so the state is what it was, and the next run asks again.
    assert "networks" not in it.state
    # It passed once, so the installer may have done its work.
    await it.up(rack(installer, version="4.22.0"))
    assert any("not 4.22.0" in told for told in harness.log.warnings)
    await it.delete()


def test_the_command_prints_the_same_report(
    installer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(**changes: str) -> tuple[int, str, str]:
        request = json.dumps({"config": {}, "inputs": rack(installer, **changes)})
        monkeypatch.setattr(sys, "stdin", io.StringIO(request))
        status, (printed, told) = main(), capsys.readouterr()
        return status, printed, told

    status, printed, _ = command()
    assert status == 0 and "\n3 checks, 1 warning\n" in printed
    status, printed, _ = command(version="4.22.0")
    assert status == 1 and "error    installer: " in printed
    status, _, told = command(stack="")
    assert status == 2 and "stack must be a non-empty string" in told


def test_a_finding_names_its_remedy_and_good_news_have_none() -> None:
    with pytest.raises(ValueError, match="have a remedy"):
        error("bad", "")
    with pytest.raises(ValueError, match="have a remedy"):
        Finding(level="ok", what="good", remedy="none")


def test_errors_come_first() -> None:
    findings = [ok("fine"), warning("hm", "look"), error("bad", "mend"), error("worse", "mend")]
    assert str(Report(findings=findings)).splitlines() == [
        "error    : bad",
        "         remedy: mend",
        "error    : worse",
        "         remedy: mend",
        "warning  : hm",
        "         remedy: look",
        "ok       : fine",
        "1 checks, 2 errors and 1 warning",
    ]
