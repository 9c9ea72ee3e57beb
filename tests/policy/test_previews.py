"""The pack in whole previews, by the engine: what passes, and what is refused and why.

By day one stack that passes, one that is refused, and one program: test_rules.py has every rule without the engine.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import yaml

from policy.rules import pack
from tests.end_to_end.project import Project
from tools.engine import ensure

pytestmark = [pytest.mark.engine]

_HERE = Path(__file__).parent
_CLEAR = "hunter2-hunter2"
_HASH = {"sha256": "0" * 64}
_PRICES = {"plans": [{"slug": "c3.medium.x86", "pricing": {"hour": 1.5}}, {"slug": "c3.small.x86"}]}
_PLAIN = {"location": "http://mirror.test/kernel", **_HASH}
_ADVISORY = {"enforcementLevel": "advisory", "worker": []}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project, None, None]:
    ensure(print)
    project = Project(tmp_path_factory.mktemp("policy") / "p")
    project.policies = True
    yield project
    project.close()


def _preview(copy: Project, stack: str, rules: dict[str, Any] | None = None, **changes: Any) -> str:
    """What a preview of a changed stack file tells, with these rules beside those of the stack's kind."""
    directory = copy.root / "policy" / "configuration"
    kind = json.loads((directory / ("default.json" if stack == "da11" else "lab.json")).read_text())
    file = copy.root / "stacks" / f"Pulumi.{stack}.yaml"
    original, own = file.read_text(), directory / f"{stack}.json"
    before = own.read_text() if own.exists() else None
    document = yaml.safe_load(original)
    for path, value in changes.items():
        *sections, name = path.split("__")
        place = document["config"]
        for section in [f"metal-ipi:{sections[0]}", *sections[1:]] if sections else []:
            place = place.setdefault(section, {})
        place[name if sections else f"metal-ipi:{name}"] = value
    file.write_text(yaml.safe_dump(document))
    own.write_text(json.dumps({**kind, **(rules or {})}))
    copy.stack = stack
    try:
        return copy.start("preview").wait().text
    finally:
        file.write_text(original)
        own.unlink() if before is None else own.write_text(before)


@pytest.mark.parametrize("stack", ["rack7", pytest.param("hybrid", marks=pytest.mark.nightly)])
def test_a_stack_that_keeps_all_rules_passes(copy: Project, stack: str) -> None:
    told = _preview(copy, stack)
    assert "to create, 0 unchanged" in told and "policy" not in told, told


@pytest.mark.parametrize(
    ("stack", "refused", "rules", "changes"),
    [
        (
            "da11",
            {
                "allowed-places": "set `metal-ipi:platform.facilities`",
                "protect-stateful": "set `metal-ipi:protect` to true",
                "open-ports": "metal-ipi:artifacts uses port 2222",
                "secrets-marked": "--path 'metal-ipi:platform.authToken'",
                "boot-artifacts": "use an https mirror",
            },
            {"allowed-places": {"facilities": []}, "allowed-plans": _ADVISORY},
            {
                "protect": False,
                "artifacts__port": 2222,
                "platform__authToken": _CLEAR,
                "boot__streamFile": "stacks/plain.json",
            },
        ),
        pytest.param(
            "lab",
            {
                "allowed-plans": "platform.workerPlan` to one of m3",
                "required-tags": "lacks the tag team=",
                "open-ports": "none wider than /16",
                "hourly-budget": "and its budget is 1",
            },
            {
                "allowed-plans": {"worker": ["m3"]},
                "required-tags": {"required": ["team="]},
                "open-ports": {"widest": 16},
                "hourly-budget": {"maxHourly": 1},
            },
            {"machineConfigServer__allowedNetworks": ["10.0.0.0/8"], "cost__priceFile": "prices.json"},
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "rack7",
            {
                "verified-bmcs": "change the password on the BMC",
                "secrets-marked": "--path 'metal-ipi:platform.bmc.password'",
            },
            {},
            {"platform__bmc": {"username": "u", "password": _CLEAR}},
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_stack_that_breaks_rules_is_refused(
    stack: str, refused: dict[str, str], rules: dict[str, Any], changes: dict[str, Any], *, copy: Project
) -> None:
    (copy.root / "prices.json").write_text(json.dumps(_PRICES))
    stream = json.loads((copy.root / "stacks" / "rhcos-4.21.json").read_text())
    stream["architectures"]["x86_64"]["artifacts"]["metal"]["formats"]["pxe"]["kernel"] = _PLAIN
    (copy.root / "stacks" / "plain.json").write_text(json.dumps(stream))

    told = _preview(copy, stack, rules, **changes)

    assert set(re.findall(r"policy ([\w-]+): ", told)) == set(refused), told
    for rule, fragment in refused.items():
        assert any(f"policy {rule}: " in line and fragment in line for line in told.splitlines()), f"{rule}:\n{told}"
    assert f"preview of stack '{stack}' failed" in told
    assert ("policy allowed-plans advises: " in told) == (rules.get("allowed-plans") == _ADVISORY), told
    assert _CLEAR not in told


@pytest.mark.nightly
def test_an_advisory_rule_is_told_and_does_not_refuse(copy: Project) -> None:
    told = _preview(copy, "lab", {"allowed-plans": _ADVISORY})
    assert "policy allowed-plans advises: " in told and "to create, 0 unchanged" in told, told


@pytest.mark.parametrize(
    ("program", "refused"),
    [
        pytest.param(
            "broken_program.py",
            {
                "no-spot-control-plane": "order it on demand",
                "plain-user-data": "its userdata contains a password",
                "required-tags": "readable lacks the tags metal-ipi, metal-ipi:stack=",
                "secrets-marked": "metal: authToken contains a secret that is not marked as one",
                "dns-below-cluster": "www.facility.test is not below lab.facility.test",
            },
            marks=pytest.mark.nightly,
        ),
        (
            "broken_stack.py",
            {
                "no-always-pxe-when-installed": "Order it with alwaysPxe false",
                "secret-outputs": "the output kubeconfig is a secret",
            },
        ),
    ],
)
def test_a_program_that_breaks_what_no_setting_can_break_is_refused(
    copy: Project, program: str, refused: dict[str, str]
) -> None:
    place = copy.root / "stacks" / "program.py"
    original = place.read_text()
    shutil.copyfile(_HERE / program, place)
    try:
        told = _preview(copy, "lab")
    finally:
        place.write_text(original)
    for rule, fragment in refused.items():
        assert f"policy {rule}: " in told and fragment in told, told


@pytest.mark.nightly
def test_an_unknown_rule_in_the_configuration_is_told(copy: Project) -> None:
    told = _preview(copy, "lab", {"allowed-plan": {"worker": []}})
    assert "there is no rule 'allowed-plan'" in told and "remedy: did you mean allowed-plans?" in told, told


@pytest.mark.nightly
def test_policies_can_be_left_out(copy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "policies", False)
    assert "to create, 0 unchanged" in _preview(copy, "lab", {"allowed-plans": {"worker": []}})


def test_the_rules_that_previews_refuse_are_all_rules() -> None:
    """control-plane-quorum needs a cluster that is there: tests/end_to_end/test_policies.py."""
    source = (_HERE / "test_previews.py").read_text()
    assert all(f'"{rule.name}"' in source for rule in pack.RULES if rule.name != "control-plane-quorum")
