"""The user's manifests and the real installer: what it has of its own, and what becomes of what is added to it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from binaries.errors import ProgramMissing
from binaries.go_tool import download
from lab import kubernetes
from lab.openshift import real
from metal_ipi.components.boot.ignition import data_of
from metal_ipi.components.install.butane import translate
from metal_ipi.components.install.manifest_rules import OWN_OBJECTS, known_kinds
from metal_ipi.components.install.manifests import OWN_FILES, ManifestsError, identities, read
from metal_ipi.stacks.sections.machine_config import MachineConfigs
from tests.conformance import ignition
from tests.conformance.conftest import BUTANE, Configured, Made
from tests.conformance.facilities import MACHINE_CONFIG, SITE

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
    given |= {
        name: text.encode()
        for name, text in MachineConfigs(**MACHINE_CONFIG).rendered(fips=False, arbiter=False).items()
    }
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


def test_nodes_are_given_what_settings_ask_for(made: Made, configured: Configured) -> None:
    rendered = {pool: json.loads(text) for pool, text in configured("site").rendered.items()}
    for each in rendered.values():
        assert b"server ntp.example.com iburst\nserver 192.0.2.123 iburst\n" in ignition.files(each)["/etc/chrony.conf"]
    assert not {"luks", "disks"} & rendered["master"]["storage"].keys()
    storage = rendered["worker"]["storage"]
    assert [each["clevis"] for each in storage["luks"]] == [{"tpm2": True, "threshold": 1}]
    assert [each["device"] for each in storage["disks"]] == [MACHINE_CONFIG["containerStorage"]["device"]]
    assert "var-lib-containers.mount" in {each["name"] for each in rendered["worker"]["systemd"]["units"]}


_TANG = {"url": "http://192.0.2.7:7500", "thumbprint": "jwGN5tRFK-kF6pIX89ssF3khxxX"}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("chrony", {"ntpServers": ["ntp.example.com"]}),
        ("extensions", {"extensions": ["usbguard"]}),
        ("tpm2", {"diskEncryption": {"tpm2": True}}),
        ("tang-fips", {"diskEncryption": {"tpm2": True, "tang": [_TANG], "threshold": 2}}),
        ("container-storage", {"containerStorage": {"device": "/dev/disk/by-id/x"}}),
    ],
)
def test_what_settings_make_is_what_butane_makes(name: str, settings: dict[str, Any], butane: Path) -> None:
    theirs = translate(str(butane), BUTANE.pins / f"{name}.bu", name)
    ours = MachineConfigs(**settings).rendered(fips="fips" in name, arbiter=False)
    named = yaml.safe_load(theirs)["metadata"]["name"]
    assert _plain(ours[f"{named}.yaml"]) == _plain(theirs)


def _plain(text: str) -> dict[str, Any]:
    """A MachineConfig without what may be written in several ways, and what its version and FIPS mode are."""
    tree: dict[str, Any] = yaml.safe_load(text)
    config = tree["spec"]["config"]
    for file in config.get("storage", {}).get("files", ()):
        file["contents"] = data_of(file["contents"]["source"])
    for unit in config.get("systemd", {}).get("units", ()):
        unit["contents"] = [line for line in unit["contents"].splitlines() if not line.startswith("#")]
    del config["ignition"]
    tree["spec"].pop("fips", None)
    return tree


_BUTANE = """\
variant: openshift
version: 4.19.0
metadata: {name: 99-worker-site, labels: {machineconfiguration.openshift.io/role: worker}}
"""


def test_butane_is_translated_or_told_with_its_line(butane: Path, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "motd").write_text("hello")
    motd = folder / "motd.bu"
    motd.write_text(f"{_BUTANE}storage: {{files: [{{path: /etc/motd, contents: {{local: motd}}}}]}}\n")
    found = read({"site": folder}, program=str(butane))
    assert list(found) == ["motd.yaml"]
    assert ignition.files(yaml.safe_load(found["motd.yaml"])["spec"]["config"]) == {"/etc/motd": b"hello"}
    for name, text in {
        "a": f"{_BUTANE}storage: {{files: [{{path: etc/x}}]}}\n",
        "b": f"{_BUTANE}storages: {{}}\n",
        "c": "variant: fcos\nversion: 1.6.0\n",
        "d": "variant: [\n",
    }.items():
        (folder / f"{name}.bu").write_text(text)
    with pytest.raises(ManifestsError) as caught:
        read({"site": folder}, program=str(butane))
    a, b, c, d = caught.value.problems
    assert a.startswith("site/a.bu:4: ") and "path not absolute" in a
    assert b.startswith("site/b.bu:4: unused key storages")
    assert c.startswith("site/c.bu: it is not a MachineConfig -> set variant: openshift")
    assert d.startswith("site/d.bu:1: ")


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
