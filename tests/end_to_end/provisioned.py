"""Ironic as the stack `hub` installs it, and the stack `ironic7` that has its servers from it."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab import facts
from lab.hub import images, programs
from lab.hub.layout import HubLayout
from metal_ipi.stacks import connections
from metal_ipi.stacks.settings import parse
from metal_ipi.stacks.stream import boot_artifacts
from tests.end_to_end import push_image, racks, secrets
from tests.end_to_end.project import Project
from tools import stackfile
from tools.engine import ensure

ON_A_HUB = [
    pytest.mark.libvirt,  # it takes the processors for itself
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.skipif(isinstance(programs.find(), str), reason=f"no hub here: {programs.find()}"),
]
"""The marks of tests that start one."""
CONDUCTORS = {"ironic-0": True, "ironic-1": True}
CLUSTER, SERVERS = "ironic7", 4
SPACE = "metal-ipi-provisioning"


BEFORE = "38.0"
"""The release before the lab's."""
_OLDER = (f"ironic=={BEFORE}.0", "keystoneauth1==5.16.0")
"""What it needs in place of the lab's requirements: it declares an option that keystoneauth1 has from 5.17 on."""
API = {BEFORE: "1.113", "now": "1.115"}
"""The newest version of the API that a release has (ironic/common/release_mappings.py)."""


class OlderIronic:
    """An image of the release before; made with all others of the hub."""

    def __init__(self, directory: Path) -> None:
        self._requirements = directory / "requirements.txt"
        text = images.REQUIREMENTS.read_text()
        for wanted in _OLDER:
            name = wanted.partition("==")[0]
            text, found = re.subn(rf"^{name}==.*$", wanted, text, flags=re.MULTILINE)
            assert found == 1, wanted
        self._requirements.write_text(text)
        for recipe in (*images.ALL, push_image.ironic_of("ironic-before", self._requirements)):
            recipe.ensure(lambda line: None)

    def push(self, project: Project) -> str:
        """Put it into the hub's registry; its reference."""
        given = (str(project.layout.state), "ironic-before", str(self._requirements))
        return project.within("push_image", *given).strip()


class Ironic:
    """Its API, as it is reached at first; `renew` takes the outputs of now."""

    def __init__(self, project: Project, directory: Path) -> None:
        self._project = project
        self.authority = directory / "ca.crt"
        self.renew()

    def renew(self) -> None:
        """Take endpoint and account from the stack's outputs."""
        outputs = secrets.outputs(self._project, str(ensure(print).path))
        told = outputs["ironic"]
        self.authority.write_text(told["ca"])
        self.user: str = told["username"]
        self.endpoint: str = told["endpoint"]
        self._given = (str(self.authority), self.user)
        self.password: str = outputs["ironicPassword"]

    def __call__(self, *what: str, seconds: float = 60, endpoint: str | None = None) -> Any:
        given = (endpoint or self.endpoint, *self._given)
        return json.loads(self._project.within("ironic_client", *given, *what, stdin=self.password, seconds=seconds))

    def states(self) -> list[list[Any]]:
        """Of the rack's servers: provision state, power, whether it is claimed."""
        found = self("states")
        return [found[racks.name(number)] for number in range(SERVERS)]


def kubectl(project: Project, *arguments: str, space: str = SPACE, stdin: str = "") -> str:
    """What kubectl prints of the service's namespace on the hub, or of another."""
    kubeconfig = HubLayout(project.layout.hub).kubeconfig("admin")
    command = ("kubectl", "--kubeconfig", str(kubeconfig), "--namespace", space, *arguments)
    return project.facility(*command, stdin=stdin)


@contextmanager
def stack_of(project: Project, name: str) -> Generator[None]:
    """Commands are of another stack of the same copy."""
    before, project.stack = project.stack, name
    try:
        yield
    finally:
        project.stack = before


def assert_installed(project: Project, ironic: Ironic, *, by: str, told: str) -> None:
    """A cluster is there on all servers, installed `by` this device and booted from disk; no password is seen."""
    nodes = project.output()["nodes"]
    assert [node["name"].partition(".")[0] for node in nodes] == [f"{CLUSTER}-{racks.name(n)}" for n in range(SERVERS)]
    read = [{check["name"]: check["status"] for check in node["checks"]} for node in nodes]
    assert all(each.pop("afterburn") != "passed" and set(each.values()) == {"passed"} for each in read), read
    assert ironic.states() == [["active", "power on", True]] * SERVERS
    assert [each["boots"][-2:] for each in project.rack("servers").values()] == [[by, "disk"]] * SERVERS
    rack = facts.require(project.layout).rack
    passwords = [server.bmc.password for server in rack.servers] if rack else []
    state = project.checkpoint.read_text()
    assert passwords and not any(word in state + told for word in passwords)


def provider_sections(project: Project, ironic: Ironic) -> dict[str, Any]:
    """The provider's configuration of the stack that has its servers from there."""
    facts = json.loads(project.layout.facts.read_text())
    document = stackfile.read(project.root / "stacks" / f"Pulumi.{CLUSTER}.yaml")
    told = {"endpoint": ironic.endpoint, "username": ironic.user, "ca": ironic.authority.read_text()}
    config = stackfile.for_lab(document, facts, {"ironic": told, "ironicPassword": ironic.password})
    tree = config.document["config"]
    tree["metal-ipi:boot"]["streamFile"] = str(next((project.layout.boot / "streams").glob("*.json")))
    del tree["metal-ipi:boot"]["streamUrl"]
    for path, secret in config.secrets.items():
        _put(tree, path, secret)
    settings = parse(stackfile.values(config), CLUSTER)
    return connections.provider_sections(settings, boot_artifacts(settings).iso)


def _put(tree: dict[str, Any], path: str, secret: str) -> None:
    """A secret at its place: `metal-ipi:platform.servers[0].bmc.password`."""
    place: Any = tree
    *way, last = path.replace("[", ".").replace("]", "").split(".")
    for step in way:
        place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
    place[last] = secret
