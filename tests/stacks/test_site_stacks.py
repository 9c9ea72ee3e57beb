"""Stacks of single sites: what a preview has the installer told, names be kept, and nodes be."""

from __future__ import annotations

import json
import shlex

import pytest

from tests import golden
from tests.mocks import plain
from tests.stacks.answers import checked, declared, settings

_CHECKED = ("EXPECTED_FIPS", "EXPECTED_KERNEL_ARGUMENTS", "EXPECTED_PLATFORM")


@pytest.mark.parametrize("stack", ["arbiter", "baremetal", "fips", "proxy"])
def test_a_preview_of_the_stack(stack: str) -> None:
    recorder = declared(stack, values=settings(stack), preview=True)
    asked = json.loads(plain(recorder.one("install-assets-create").inputs["stdin"]))
    lines = sorted(
        f"{record['name']} {record['type']} {', '.join(record['values'])}"
        for name in ("dns-api-records", "dns-ingress-records")
        for record in plain(recorder.one(name).inputs["records"]).values()
    )
    node = checked(recorder, f"{stack}-control-plane-0")
    wanted = [f"{name}={shlex.quote(text)}" for name, text in node.items() if name in _CHECKED]
    golden.check(f"preview-{stack}.txt", "\n".join([asked["installConfig"], *lines, "", *wanted, ""]))
