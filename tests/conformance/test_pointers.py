"""What our program gives machines, merged with the installer's files and with the real rendered configuration.

Ignition merges by its own code. Its rules: parts of the same name become one, in which the later config wins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.provider.live_iso import initrd
from tests.conformance import ignition
from tests.conformance.conftest import Configured, Made
from tests.conformance.facilities import Facility
from tests.conformance.given import bootstrap, in_place_pointer, live, pointer
from tests.conformance.machine_config import MachineConfig
from tests.mocks import plain

LosesNothing = Callable[[Sequence[str]], None]

_ROLES = {"control-plane": "master", "worker": "worker"}
_CLUSTERS = ("metal", "rack")
_CASES = [(name, role) for name in _CLUSTERS for role in _ROLES]


@pytest.fixture
def loses_nothing(merge: Path, tmp_path: Path) -> LosesNothing:
    """Merges configs by Ignition's own code, and compares the result with its parts."""
    return lambda documents: _compare(documents, *ignition.merged(merge, documents, tmp_path))


def _compare(documents: Sequence[str], result: ignition.Config, reported: str) -> None:
    assert reported == ""
    trees: list[Any] = [json.loads(document) for document in documents]
    assert ignition.parts(result) == set[str]().union(*map(ignition.parts, trees))
    # And of parts that only one config has, none has changed on the way.
    for tree in trees:
        others = [ignition.files(other) for other in trees if other is not tree]
        for path, content in ignition.files(tree).items():
            if not any(path in other for other in others):
                assert ignition.files(result)[path] == content, path
    keys = {key for tree in trees for user in _users(tree) for key in user.get("sshAuthorizedKeys", ())}
    assert {key for user in _users(result) for key in user["sshAuthorizedKeys"]} == keys


def _users(tree: Any) -> list[Any]:
    return tree.get("passwd", {}).get("users") or []


def _chain(facility: Facility, document: str, config: MachineConfig | None, role: str = "") -> list[str]:
    def fetch(url: str) -> str:
        if url == f"https://api-int.{facility.domain}:22623/config/{_ROLES.get(role, '')}":
            assert config is not None
            # Workers ask the control plane's server, which adds the same to their rendered configuration.
            return config.served if role == "control-plane" else config.rendered["worker"]
        return facility.uploads[url]

    return ignition.chain(document, fetch)


@pytest.mark.parametrize(("name", "role"), _CASES)
def test_our_pointers_lead_where_the_installers_own_lead(name: str, role: str, made: Made) -> None:
    facility = made(name)
    own, ours = (tree["ignition"] for tree in (facility.pointer(_ROLES[role]), json.loads(pointer(facility, role))))
    merged = [source for source in ours["config"]["merge"] if "verification" not in source]
    assert merged == own["config"]["merge"]
    assert ours["security"] == own["security"]


@pytest.mark.parametrize("name", [*_CLUSTERS, "single"])
def test_what_we_have_fetched_from_elsewhere_is_pinned_by_its_hash(name: str, made: Made) -> None:
    """Only the cluster's own machine config server makes what it answers: it is known by its certificate."""
    facility = made(name)
    archives = [initrd.unpack(text.encode())[initrd.IGNITION] for text in facility.uploaded(".img").values()]
    given = [plain(args.inputs).get("userData") for args in facility.recorder.resources]
    documents = [*facility.uploaded(".ign").values(), *archives, *(str(text) for text in given if text)]
    sources = [
        source
        for document in documents
        for source in json.loads(document)["ignition"].get("config", {}).get("merge", ())
        if not source["source"].startswith(("data:", f"https://api-int.{facility.domain}:22623/config/"))
    ]
    assert sources
    for source in sources:
        digest = hashlib.sha512(facility.uploads[source["source"]].encode()).hexdigest()
        assert source.get("verification") == {"hash": f"sha512-{digest}"}, source["source"]


@pytest.mark.parametrize("name", _CLUSTERS)
def test_the_bootstrap_machine_has_all_of_the_installers_and_all_of_ours(
    name: str, made: Made, loses_nothing: LosesNothing
) -> None:
    facility = made(name)
    documents = _chain(facility, bootstrap(facility), None)
    assert json.loads(documents[1]) == facility.bootstrap
    loses_nothing(documents)


@pytest.mark.parametrize(("name", "role"), _CASES)
def test_a_node_has_all_of_its_rendered_configuration_and_all_of_ours(
    name: str, role: str, made: Made, configured: Configured, loses_nothing: LosesNothing
) -> None:
    facility = made(name)
    documents = _chain(facility, pointer(facility, role), configured(name), role)
    assert len(documents) == (3 if name == "metal" else 2), "ours, the rendered one, on Metal the identity"
    loses_nothing(documents)


def test_a_single_nodes_live_system_has_all_of_the_installers_and_all_of_ours(
    made: Made, loses_nothing: LosesNothing
) -> None:
    facility = made("single")
    documents = _chain(facility, live(facility, "single-control-plane-0"), None)
    assert json.loads(documents[1]) == facility.bootstrap
    loses_nothing(documents)


def test_a_single_nodes_disk_has_all_of_its_rendered_configuration_and_all_of_ours(
    made: Made, configured: Configured, loses_nothing: LosesNothing
) -> None:
    """install.sh adds what bootkube left, as one config to merge: docs/adr/0019. That is this configuration in version
    3.2.0 of the specification, with files of bootkube's in addition."""
    config = configured("single").served_in_place
    assert json.loads(config)["ignition"]["version"] == "3.2.0"
    loses_nothing([in_place_pointer(made("single")), config])


def test_the_bootstrap_machine_serves_the_control_plane_and_no_workers(configured: Configured) -> None:
    """machine-config-operator, pkg/server/bootstrap_server.go: workers wait for the cluster's own server. The request
    was made over TLS, and trusted what our pointers trust."""
    assert configured("metal").statuses == {"master": "200", "worker": "500", "arbiter": "404"}
    assert configured("arbiter").statuses == {"master": "200", "worker": "500", "arbiter": "200"}
