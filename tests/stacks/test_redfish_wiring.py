"""What a rack's settings become: installations, and the checks of what they leave."""

from __future__ import annotations

from typing import Any

import pulumi

from stacks.program import main
from tests.mocks import Recorder, plain, run
from tests.stacks.answers import ANSWERS
from tests.stacks.rack import rack_text

_INSTALLATION = "metal-ipi:index:Installation"


def _run(runs: dict[str, str] | None = None, **changes: Any) -> Recorder:
    """`runs`: the generations of machines, by name of their Installation, that stay what they are."""
    kept = runs or {}

    def installed(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
        return {"generation": kept.get(args.name, plain(args.inputs["generation"]))}

    recorder = Recorder({**ANSWERS, _INSTALLATION: installed})
    run(main, recorder, rack_text(**changes), stack="rack")
    return recorder


def _generations(recorder: Recorder) -> dict[str, str]:
    return {args.name: plain(args.inputs["generation"]) for args in recorder.of(_INSTALLATION)}


def test_a_number_that_is_raised_installs_one_machine_once_more() -> None:
    before, after = _generations(_run()), _generations(_run(platform__servers__0__installation=1))
    assert [name for name, found in after.items() if found != before[name]] == ["rack-worker-4-installation"]


def test_an_installation_is_told_the_rules() -> None:
    (first, *_) = _run(boot__install__validHours=7).of(_INSTALLATION)
    assert (first.inputs["validHours"], first.inputs["keep"], first.inputs["consent"]) == (7, False, False)
    recorder = _run(reprovision={"controlPlane": "keep", "consent": ["control-plane-1"]})
    told = {args.name: (args.inputs["keep"], args.inputs["consent"]) for args in recorder.of(_INSTALLATION)}
    assert told["rack-control-plane-0-installation"] == (True, False)
    assert told["rack-control-plane-1-installation"] == (True, True)


def test_a_machine_that_is_kept_is_checked_for_what_it_runs() -> None:
    runs = {"rack-control-plane-0-installation": "a" * 16, "rack-worker-0-installation": "b" * 16}
    for rule in ("keep", "refuse"):
        recorder = _run(
            runs,
            reprovision={"controlPlane": rule},
            controlPlane={"kernelArguments": ["nosmt"]},
            workers={"kernelArguments": ["nosmt"]},
        )
        for name in ("control-plane-0", "control-plane-1", "worker-0"):
            script = plain(recorder.one(f"rack-{name}-check").inputs["create"])
            kept = (rule, name) == ("keep", "control-plane-0")
            wanted = runs if kept else _generations(recorder)
            assert f"EXPECTED_GENERATION={wanted[f'rack-{name}-installation']}\n" in script
            assert ("EXPECTED_RELEASE=''\n" in script) == ("EXPECTED_KERNEL_ARGUMENTS=''\n" in script) == kept
