"""The resource for the ironic-standalone-operator, taken by the operator's own types."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from binaries.go_tool import GoTool

pytestmark = pytest.mark.conformance
_PINS = Path(__file__).with_name("operator")
_CHECK = GoTool(program="check-ironic", package="./check-ironic", pins=_PINS, minutes="about a minute")
_GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def check() -> Path:
    return _CHECK.ensure(print)


@pytest.mark.parametrize("name", ["small", "large", "shared"])
def test_the_operator_s_types_know_every_field(check: Path, name: str) -> None:
    documents = yaml.safe_load_all((_GOLDEN / f"provisioning-operator-{name}.yaml").read_text())
    (resource,) = (each for each in documents if each["kind"] == "Ironic")
    done = subprocess.run([check], input=json.dumps(resource), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    taken = json.loads(done.stdout)
    assert {key: taken[key] for key in resource["spec"]} == resource["spec"]


def test_a_field_that_there_is_not_is_told(check: Path) -> None:
    text = json.dumps({"spec": {"networking": {"apiport": 1, "nodePort": 2}}})
    done = subprocess.run([check], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and 'unknown field "nodePort"' in done.stderr
