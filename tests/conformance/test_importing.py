"""`make import` knows every field that the real installer has."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from binaries.errors import ProgramMissing
from lab.openshift.real import openshift_install
from tests.docs.pages import DOCS, Page
from tools.importing.command import take
from tools.importing.documents import Document, read
from tools.importing.fields import AGENT_CONFIG
from tools.importing.taking import Place

_NO_SUCH = "has no such field"
_SAMPLES: dict[str, Any] = {"string": "x", "integer": 3, "boolean": True}


def _sample(schema: dict[str, Any]) -> Any:
    """A value with everything in it that a schema allows."""
    kind = schema.get("type")
    if kind == "array":
        return [_sample(schema["items"])]
    if kind in _SAMPLES:
        return schema["enum"][-1] if "enum" in schema else _SAMPLES[kind]
    return {name: _sample(each) for name, each in schema.get("properties", {}).items()} or {"a": "b"}


@pytest.fixture
def schema(installer: Path) -> dict[str, Any]:
    """What install-config.yaml may have, as the installer's own data says."""
    file = installer.parent / "data" / "install.openshift.io_installconfigs.yaml"
    if not file.exists():
        pytest.skip("the installer on PATH has its data inside")
    return yaml.safe_load(file.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _document(tree: dict[str, Any], directory: Path) -> Document:
    file = directory / "install-config.yaml"
    file.write_text(yaml.safe_dump(tree))
    return read(file)


def _leaves(place: Place) -> Iterator[Place]:
    inner = [place.below(name) for name in place.value] if isinstance(place.value, dict) else place.items
    if not inner or (isinstance(place.value, list) and not isinstance(inner[0].value, (dict, list))):
        yield place
    else:
        for each in inner:
            yield from _leaves(each)


def test_no_field_of_the_schema_is_dropped(schema: dict[str, Any], tmp_path: Path) -> None:
    document = _document({**_sample(schema), "metadata": {"name": "c"}}, tmp_path)
    taking = take(document)
    assert [each.place.where for each in taking.told if _NO_SUCH in each.why] == []
    leaves = list(_leaves(Place(document=document, where="")))
    assert len(leaves) > 500
    assert [place.where for place in leaves if not taking.is_done(place)] == []


@pytest.mark.parametrize("where", ["", "platform.baremetal.", "controlPlane."])
def test_a_field_that_it_lacks_would_be_told_so(where: str, tmp_path: Path) -> None:
    tree: Any = {"surprise": 1}
    for name in reversed([name for name in where.split(".") if name]):
        tree = {name: tree}
    told = {each.place.where: each.why for each in take(_document(tree, tmp_path)).told}
    assert _NO_SUCH in told[f"{where}surprise"]


def test_no_field_of_agent_config_is_unknown() -> None:
    """It has no schema, but Go types with the names in JSON."""
    try:
        module = openshift_install.source()
    except ProgramMissing as error:
        pytest.skip(f"the installer's source cannot be had: {error}")
    text = (module / "pkg/types/agent/agent_config_type.go").read_text()
    structs = dict(re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))
    found = {name: set(re.findall(r'json:"(\w+)', body)) for name, body in structs.items()}
    known = {re.split(r"[.\[]", name)[0] for name in AGENT_CONFIG}
    of_hosts = {re.split(r"[.\[]", name.removeprefix("hosts[]."))[0] for name in AGENT_CONFIG if "hosts[]." in name}
    assert found["Config"] == known - {"apiVersion", "kind"}
    assert found["Host"] == of_hosts - {"bmc", "BMC"} and "BMC " in structs["Host"]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The files of the page «Coming from another system»."""
    page = Page(name="docs/coming-from.md", text=(DOCS / "coming-from.md").read_text())
    for block in page.blocks:
        for name in block.all("file"):
            (tmp_path / name).write_text(f"{block.text}\n")
    return tmp_path


def _said(installer: Path, *command: str, directory: Path) -> str:
    run = [str(installer), *command, "--dir", str(directory)]
    return subprocess.run(run, capture_output=True, text=True, check=False, timeout=100).stderr


def test_the_real_installer_takes_the_pages_install_config(example: Path, installer: Path) -> None:
    said = _said(installer, "create", "manifests", directory=example)
    assert "Manifests created" in said and "unknown field" not in said, said


def test_the_real_installer_reads_the_pages_agent_config(example: Path, installer: Path) -> None:
    """It is read strictly; what is in networkConfig nmstatectl would check, where it is installed."""
    command = ("agent", "create", "cluster-manifests")
    said = _said(installer, *command, directory=example)
    assert "failed to unmarshal" not in said and "Agent Config configuration" not in said, said
    file = example / "agent-config.yaml"
    file.write_text(file.read_text() + "surprise: 1\n")
    assert 'unknown field "surprise"' in _said(installer, *command, directory=example)
