"""The stacks `baremetal`, `fips` and `proxy`: what a preview has the installer told, names be kept, and nodes be."""

from __future__ import annotations

import json

import pytest

from tests import golden
from tests.mocks import plain
from tests.stacks.answers import declared, settings

_CHECKED = ("EXPECTED_FIPS", "EXPECTED_KERNEL_ARGUMENTS", "EXPECTED_PLATFORM")


@pytest.mark.parametrize("stack", ["baremetal", "fips", "proxy"])
def test_a_preview_of_the_stack(stack: str) -> None:
    recorder = declared(stack, values=settings(stack), preview=True)
    asked = json.loads(plain(recorder.one("install-assets-create").inputs["stdin"]))
    lines = sorted(
        f"{record['name']} {record['type']} {', '.join(record['values'])}"
        for name in ("dns-api-records", "dns-ingress-records")
        for record in plain(recorder.one(name).inputs["records"]).values()
    )
    (check, *_) = (args for args in recorder.of("command:remote:Command") if args.name.endswith("-check"))
    wanted = [line for line in plain(check.inputs["create"]).splitlines() if line.startswith(_CHECKED)]
    golden.check(f"preview-{stack}.txt", "\n".join([asked["installConfig"], *lines, "", *wanted, ""]))
