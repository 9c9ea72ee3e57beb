"""The lab's stand-in for openshift-install beside the real one: every difference is listed, with its reason.

A difference that is not listed fails, and so does one that is listed and gone. Patterns are those of `fnmatch`.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from binaries.errors import ProgramMissing
from lab.errors import SetupFailed
from lab.openshift import build
from tests.conformance import ignition
from tests.conformance.conftest import Made
from tests.conformance.test_bad_input import BAD, changed

_IN_PLACE = "single-node-ignition-config"
_BOOTSTRAPS = {"ignition-configs": "bootstrap.ign", _IN_PLACE: "bootstrap-in-place-for-live-iso.ign"}
_RELEASE_IMAGE = "belongs to programs of the release image, which the stand-in's machines do not run"
_NODE_IMAGE = "pulls the release's node image, which the stand-in does not have"
_OWN_PKI = "the stand-in's services have fewer certificates than OpenShift's components, under names of their own"
_OWN_SERVICES = "the stand-in's services, in the place of bootkube.sh and the kubelet"
_GATEWAY = "journals are not served by the stand-in's machines"
_NO_USE = "nothing in the lab's image reads it"

ONLY_REAL: Mapping[str, str] = {
    ".openshift_install*": "the stand-in runs once in a directory, and keeps no state and no log there",
    "/opt/openshift/manifests/*": _RELEASE_IMAGE,
    "/opt/openshift/openshift/*": _RELEASE_IMAGE,
    "/opt/openshift/original_cvo_overrides.patch": _RELEASE_IMAGE,
    "/opt/openshift/auth/kubeconfig-kubelet": _OWN_PKI,
    "/opt/openshift/auth/kubeconfig-loopback": _OWN_PKI,
    "/opt/openshift/tls/*": _OWN_PKI,
    "/opt/openshift/tls/journal-gatewayd.*": _GATEWAY,
    "/opt/openshift/bootstrap-in-place/*": _RELEASE_IMAGE,
    "/etc/containers/registries.conf": _NO_USE,
    "/etc/ignition-machine-config-encapsulated.json": _NO_USE,
    "/etc/motd": _NO_USE,
    "/etc/pki/ca-trust/source/anchors/ca.crt": _NO_USE,
    "/etc/profile.d/proxy.sh": _NO_USE,
    "/etc/systemd/system.conf.d/10-default-env.conf": _NO_USE,
    "/etc/systemd/system-generators/node-image-overlay-generator": _NODE_IMAGE,
    "/etc/systemd/system/node-image-*": _NODE_IMAGE,
    "/usr/local/bin/node-image-*": _NODE_IMAGE,
    "/usr/local/bin/*.sh": _RELEASE_IMAGE,
    "approve-csr.service": "the stand-in's bootstrap service approves control plane machines by itself",
    "bootkube.service": _OWN_SERVICES,
    "kubelet.service": _OWN_SERVICES,
    "progress.service": _OWN_SERVICES,
    "crio-configure.service": _RELEASE_IMAGE,
    "release-image.service": _RELEASE_IMAGE,
    "*-gatewayd*": _GATEWAY,
    "zincati.service*": "the lab's image does not update itself",
}
"""Files that `create` makes, and what is in its Ignition configs."""
ONLY_STAND_IN: Mapping[str, str] = {
    "/opt/openshift/lab-padding": "makes up for the size of what is missing",
    "/opt/openshift/tls/*": _OWN_PKI,
    "/etc/lab-openshift/*": "what the stand-in's services read",
    "lab-openshift.service": _OWN_SERVICES,
}
ENABLED: Mapping[str, str] = {
    "bootkube.service": "the real one has no [Install] section and is wanted by progress.service (test_in_place.py)",
}
"""Units that both have, of which one is enabled in another way."""
NAMES: Mapping[str, str] = {
    "kube-apiserver-lb-server.crt": "the stand-in's API server has one certificate for all names, OpenShift's has four",
    "kube-apiserver-internal-lb-server.crt": "see kube-apiserver-lb-server.crt",
    "kube-apiserver-localhost-server.crt": "see kube-apiserver-lb-server.crt",
    "kube-apiserver-service-network-server.crt": "nothing runs in the stand-in's cluster that asks by these names",
}
"""Serving certificates whose subject alternative names differ, or that only one has."""

_OTHER_WORDS = "the same in other words"
_NO_QUESTIONS = "the real one asks questions, and ends where nobody answers; the stand-in asks none"
_NOT_THERE = "the stand-in refuses commands and flags that it does not have"
ERRORS: Mapping[str, str] = {
    "no YAML": _OTHER_WORDS,
    "another version of the configuration": _OTHER_WORDS,
    "another platform": _OTHER_WORDS,
    "no cluster's name": _OTHER_WORDS,
    "no base domain": _OTHER_WORDS,
    "a pull secret of *": _OTHER_WORDS,
    "no control plane": _OTHER_WORDS,
    "two control plane machines": _OTHER_WORDS,
    "three control plane machines in place": "the stand-in ends with 3 for every wrong configuration, the real one with"
    " 1 for what it notices while it makes the assets",
    "create ignition-configs": _NO_QUESTIONS,
    "create ignition-configs --nonsense": _OTHER_WORDS,
    "create manifests": _NO_QUESTIONS,
    "create cluster": _NOT_THERE,
    "create nonsense": _NOT_THERE,
    "destroy cluster": _NOT_THERE,
    "version --log-level loud": _NOT_THERE,
    "wait-for bootstrap-complete": _NOT_THERE,
    "gather bootstrap": _NOT_THERE,
}
"""Bad input, and commands without a configuration, of which the exit code or the text differs.

The stand-in refuses what no cluster can be made of. What else the real one refuses the settings refuse before
(test_bad_input.py).
"""
_REFUSED = (
    "no cluster's name",
    "no base domain",
    "a pull secret of no JSON",
    "a pull secret of no registries",
    "a pull secret of an empty list of registries",
    "no control plane",
    "two control plane machines",
    "three control plane machines in place",
)
"""What of BAD the stand-in refuses as well."""
_COMMANDS = tuple(each for each in ERRORS if each.split()[0] in ("create", "destroy", "version", "wait-for", "gather"))


@dataclass(frozen=True, kw_only=True)
class Said:
    """How an installer ended."""

    code: int
    errors: tuple[str, ...]
    """Its lines of level error and fatal, without the names of assets that it was about to make, and of directories."""


@pytest.fixture(scope="module")
def stand_in() -> Path:
    try:
        return build.installer()
    except (ProgramMissing, SetupFailed) as error:
        pytest.skip(f"the stand-in cannot be built: {error}")


def _run(installer: Path, directory: Path, config: str | None, *arguments: str) -> Said:
    directory.mkdir()
    if config is not None:
        (directory / "install-config.yaml").write_text(config)
    command = [str(installer), *arguments, "--dir", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    lines = [re.sub(r'^time="[^"]*" ', "", line) for line in done.stderr.replace(str(directory), "<dir>").splitlines()]
    wrong = [line for line in lines if line.startswith(("level=error", "level=fatal"))]
    return Said(code=done.returncode, errors=tuple(re.sub(r"failed to fetch [A-Z][^:]*: ", "", each) for each in wrong))


@pytest.fixture(scope="module")
def both(
    made: Made, installer: Path, stand_in: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, tuple[Path, Path]]:
    """What `create` leaves of our install-config.yaml, by what is created: the real one's directory, the stand-in's."""
    found: dict[str, tuple[Path, Path]] = {}
    for what in _BOOTSTRAPS:
        config = made("single" if what == _IN_PLACE else "rack").request["installConfig"]
        places = tmp_path_factory.mktemp(what)
        pair = places / "real", places / "stand-in"
        for program, place in zip((installer, stand_in), pair, strict=True):
            assert _run(program, place, config, "create", what) == Said(code=0, errors=())
        found[what] = pair
    return found


def _listed(differences: Iterable[str], table: Mapping[str, str]) -> None:
    """Each is in the table, and each line of the table is one of them."""
    found = set(differences)
    assert {each for each in found if not any(fnmatchcase(each, pattern) for pattern in table)} == set(), "not listed"
    gone = {pattern for pattern in table if not any(fnmatchcase(each, pattern) for each in found)}
    assert gone == set(), "listed, and gone"


def test_a_new_difference_fails_and_so_does_one_that_is_gone() -> None:
    _listed(["/etc/a", "/etc/b", "/opt/c"], {"/etc/*": "", "/opt/c": ""})
    with pytest.raises(AssertionError, match="not listed"):
        _listed(["/etc/a", "/usr/d"], {"/etc/*": ""})
    with pytest.raises(AssertionError, match="listed, and gone"):
        _listed(["/etc/a"], {"/etc/*": "", "/opt/c": ""})


def _names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def _config(directory: Path, name: str) -> dict[str, Any]:
    return json.loads((directory / name).read_text())


def test_files_units_and_parts_of_ignition_differ_only_in_these(both: Mapping[str, tuple[Path, Path]]) -> None:
    only_real, only_stand_in = set[str](), set[str]()
    for what, (real, stand_in) in both.items():
        one, other = (ignition.parts(_config(place, _BOOTSTRAPS[what])) for place in (real, stand_in))
        for theirs, ours in ((_names(real), _names(stand_in)), (one, other)):
            assert theirs & ours, f"{what}: nothing is the same"
            only_real |= theirs - ours
            only_stand_in |= ours - theirs
    _listed(only_real, ONLY_REAL)
    _listed(only_stand_in, ONLY_STAND_IN)


def test_units_that_both_have_start_alike_but_for_these(both: Mapping[str, tuple[Path, Path]]) -> None:
    different = set[str]()
    shared = 0
    for what, name in _BOOTSTRAPS.items():
        real, stand_in = (ignition.units(_config(place, name)) for place in both[what])
        shared += len(real.keys() & stand_in.keys())
        different |= {
            unit
            for unit in real.keys() & stand_in.keys()
            if any(real[unit].get(key) != stand_in[unit].get(key) for key in ("enabled", "mask"))
        }
    assert shared == 2, "bootkube.service and install-to-disk.service of a single node"
    _listed(different, ENABLED)


@pytest.mark.parametrize("role", ["master", "worker"])
def test_pointers_differ_in_nothing_but_the_authority(role: str, both: Mapping[str, tuple[Path, Path]]) -> None:
    real, stand_in = (_config(place, f"{role}.ign") for place in both["ignition-configs"])
    for tree in (real, stand_in):
        (authority,) = tree["ignition"]["security"]["tls"]["certificateAuthorities"]
        assert x509.load_pem_x509_certificates(ignition.data(authority.pop("source")))
    assert real == stand_in


def test_serving_certificates_have_the_same_names_but_for_these(both: Mapping[str, tuple[Path, Path]]) -> None:
    for what, name in _BOOTSTRAPS.items():
        real, stand_in = (_serving(_config(place, name)) for place in both[what])
        assert real["machine-config-server.crt"] == stand_in["machine-config-server.crt"]
        _listed({each for each in real.keys() | stand_in.keys() if real.get(each) != stand_in.get(each)}, NAMES)
        names = set[str]().union(*(set(each) for key, each in real.items() if "service-network" not in key))
        assert set[str]().union(*(set(each) for each in stand_in.values())) == names, "together they have the same"


def _serving(config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Subject alternative names of the certificates below /opt/openshift/tls that have some."""
    found: dict[str, list[str]] = {}
    for path, content in ignition.files(config).items():
        if path.startswith("/opt/openshift/tls/") and path.endswith(".crt"):
            extensions = x509.load_pem_x509_certificates(content)[0].extensions
            names = [each for each in extensions if isinstance(each.value, x509.SubjectAlternativeName)]
            if names:
                found[path.rpartition("/")[2]] = sorted(str(general.value) for general in names[0].value)
    return found


def test_bad_input_ends_in_the_same_way_but_for_these(
    made: Made, installer: Path, stand_in: Path, tmp_path: Path
) -> None:
    good = made("rack").request["installConfig"]
    single = made("single").request["installConfig"]
    cases: dict[str, tuple[str | None, tuple[str, ...]]] = {
        what: (
            changed(single if BAD[what].in_place else good, BAD[what].installer),
            ("create", _IN_PLACE if BAD[what].in_place else "ignition-configs"),
        )
        for what in _REFUSED
    }
    for what, config in {
        "another version of the configuration": changed(good, {"apiVersion": "v2"}),
        "another platform": changed(good, {"platform": {"aws": {"region": "us-east-1"}}}),
        "no YAML": "a: [",
    }.items():
        cases[what] = config, ("create", "ignition-configs")
    cases |= {command: (None, tuple(command.split())) for command in _COMMANDS}
    different = list[str]()
    for number, (what, (config, arguments)) in enumerate(cases.items()):
        places = (tmp_path / f"real-{number}", tmp_path / f"stand-in-{number}")
        real, ours = (
            _run(program, place, config, *arguments)
            for program, place in zip((installer, stand_in), places, strict=True)
        )
        assert ours.code != 0 and (real.code != 0 or config is None), what
        if real != ours:
            different.append(what)
    _listed(different, ERRORS)
