"""The user's manifests and the real installer: what it has of its own, and what becomes of what is added to it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from binaries.errors import ProgramMissing
from binaries.go_tool import download
from lab import kubernetes
from lab.openshift import real
from metal_ipi.components.install.manifest_rules import OWN_OBJECTS, known_kinds
from metal_ipi.components.install.manifests import OWN_FILES, identities, read
from tests.conformance import ignition
from tests.conformance.conftest import Configured, Made
from tests.conformance.facilities import SITE

_MACHINES = "99_openshift-"


def test_what_the_installer_has_of_its_own(made: Made, installer: Path, tmp_path: Path) -> None:
    (tmp_path / "install-config.yaml").write_text(made("rack").request["installConfig"])
    subprocess.run([installer, "create", "manifests", "--dir", tmp_path], check=True, capture_output=True)
    files = [path for folder in ("manifests", "openshift") for path in (tmp_path / folder).iterdir()]
    assert {path.name for path in files if not path.name.startswith(_MACHINES)} == OWN_FILES
    assert set().union(*(identities(path.read_text()) for path in files)) == OWN_OBJECTS


def test_manifests_reach_the_bootstrap_machine_as_they_are(made: Made) -> None:
    found = made("site").bootstrap_files
    given = {name: text.encode() for name, text in read({"site": SITE}).items()}
    assert set(given) == {"99-worker-site.yaml", "site-1.yml", "site-2.yml"}
    given_paths = {f"/opt/openshift/openshift/{name}" for name in given}
    assert given and {name: found[f"/opt/openshift/openshift/{name}"] for name in given} == given
    theirs = {path for path in found if path.startswith("/opt/openshift/openshift/")} - given_paths
    assert theirs == {path for path in made("rack").bootstrap_files if path.startswith("/opt/openshift/openshift/")}


def test_machine_configs_become_part_of_what_nodes_get(made: Made, configured: Configured) -> None:
    config: object = yaml.safe_load((SITE / "99-worker-site.yaml").read_text())
    assert isinstance(config, dict)
    rendered = {pool: ignition.files(json.loads(text)) for pool, text in configured("site").rendered.items()}
    assert rendered["worker"]["/etc/site"] == b"hello"
    assert "/etc/site" not in rendered["master"]


def test_kinds_are_those_of_kubernetes_and_openshift() -> None:
    """Of Kubernetes, as the API server of the lab's release tells; of OpenShift, as openshift/api defines them."""
    discovery = _module("k8s.io/kubernetes", Path(kubernetes.__file__).parent) / "api" / "discovery"
    api = _module("github.com/openshift/api", Path(real.__file__).parent / "machine-config")
    found: dict[str, dict[str, bool]] = {}
    for path in discovery.glob("*.json"):
        document = json.loads(path.read_text())
        for each in document.get("resources", ()):
            if "/" not in each["name"] and "create" in each["verbs"]:
                found.setdefault(document["groupVersion"], {})[each["kind"]] = each["namespaced"]
    for path in api.glob("**/zz_generated.crd-manifests/*.yaml"):
        spec = yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]
        for version in spec["versions"]:
            kinds = found.setdefault(f"{spec['group']}/{version['name']}", {})
            kinds[spec["names"]["kind"]] = spec["scope"] == "Namespaced"
    known = known_kinds()
    missing = {
        version: kinds for version, kinds in found.items() if not kinds.items() <= known.get(version, {}).items()
    }
    assert missing == {}


def _module(name: str, pins: Path) -> Path:
    try:
        return Path(download(name, pins)["Dir"])
    except ProgramMissing as error:
        pytest.skip(f"{name} cannot be had: {error}")
