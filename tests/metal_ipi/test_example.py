"""The program in YAML: everything it names is in the schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from metal_ipi.schema.__main__ import PATH
from tests.metal_ipi.validator import problems

_ROOT = Path(__file__).resolve().parents[2]
_SCHEMA: dict[str, Any] = json.loads(PATH.read_text())
_PROGRAM: dict[str, Any] = yaml.safe_load((_ROOT / "examples" / "yaml" / "Pulumi.yaml").read_text())
_REFERENCE = re.compile(r"\$\{(\w+)(?:\.(\w+))?[^}]*\}")


def _token(short: str) -> str:
    """YAML may leave out the module `index`."""
    parts = short.split(":")
    return short if len(parts) == 3 else f"{parts[0]}:index:{parts[1]}"


def test_every_property_is_in_the_schema() -> None:
    found = [
        problem
        for each in _PROGRAM["resources"].values()
        for problem in problems(_SCHEMA, _token(each["type"]), each["properties"])
    ]
    assert found == []


def test_every_reference_leads_somewhere() -> None:
    references = _REFERENCE.findall(yaml.safe_dump([_PROGRAM["resources"], _PROGRAM["outputs"]]))
    assert len(references) >= 8
    for name, output in references:
        if output:
            resource = _SCHEMA["resources"][_token(_PROGRAM["resources"][name]["type"])]
            assert output in resource["properties"], f"{name}.{output}"
        else:
            assert name in _PROGRAM["config"], name


def test_the_plugin_is_where_it_says() -> None:
    (plugin,) = _PROGRAM["plugins"]["providers"]
    folder = _ROOT / "examples" / "yaml" / plugin["path"]
    assert (folder / f"pulumi-resource-{plugin['name']}").is_file()
