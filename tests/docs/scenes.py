"""Where a page's commands are run: a copy of the project, on simulated machines.

- `user`: nothing of it is up.
- `rack`: the lab has a rack of servers with BMCs, switched off, and commands that concern it reach it.
- `facility`: the lab plays a facility. Commands run in its network, the stand-ins are installed like official plug-ins,
  and what the pages call the facility's is the lab's (`said_of_a_facility`). stacks/Pulumi.da11.yaml is made for it.

`user` and `facility` have small services for a Kubernetes API. `rack` needs a real one, which can drain nodes;
`user-real` is `user` as it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import yaml

from tests.docs.pages import Block
from tests.docs.terminal import Terminal
from tests.end_to_end.conftest import SMALL, copies
from tests.end_to_end.project import Project
from tools.engine import ensure

Tree = dict[str, Any]
_OFFICIAL = ("equinix-metal", "command", "kubernetes")
_VARIABLES = {
    "MACHINES": "simulated",
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    # What a user of the lab's facility has been given beforehand.
    "AGE": "0m",
}


def said_of_a_facility(facts: Tree) -> dict[str, str]:
    """What pages call a facility's → what the lab calls it."""
    return {
        "52000fb2-ee46-4673-93a8-de2c2bdba33b": facts["api"]["project_id"],
        "metro: da": f"metro: {facts['api']['metro']}",
        "boot.metal.example.com": facts["artifacts"]["host"],
        "metal.example.com": facts["dns"]["zone"],
        "ssh-ed25519 AAAA...": facts["artifacts"]["host_key"],
        "user: metal-ipi": f"user: {facts['artifacts']['user']}",
        "/srv/www/artifacts": facts["artifacts"]["directory"],
        "4.21.3": "4.21.0-lab",
    }


class Scene:
    """A copy of the project, and a user's terminal in it."""

    def __init__(self, project: Project, terminal: Terminal, said: Mapping[str, str] | None = None) -> None:
        self.project, self.terminal = project, terminal
        self.said = dict(said or {})
        """Text of a page → what stands for it here."""
        self.values: dict[str, str] = {"-": ""}
        """What commands are given to read, by the name that pages have for it."""
        self.givens: dict[str, Callable[[], None]] = {}

    def translate(self, text: str) -> str:
        """A page's text, as it is here."""
        for page, here in self.said.items():
            text = text.replace(page, here)
        return text

    def edit(self, block: Block, file: str) -> None:
        """Write a block's settings into a stack file; one that is not there is made of them."""
        path = self.project.root / file
        document = cast("Tree", yaml.safe_load(path.read_text()) if path.exists() else {})
        settings = cast("Tree", yaml.safe_load(self.translate(block.text)))
        document["config"] = _merged(document.get("config") or {}, settings.get("config", settings))
        path.write_text(yaml.safe_dump(document, sort_keys=False))


@contextmanager
def scene(name: str, directory: Path) -> Generator[Scene, None, None]:
    """One of them, taken down afterwards."""
    makers = {"user": _user, "user-real": _user, "rack": _rack, "facility": _facility}
    with contextmanager(copies)(directory) as project:
        if name in ("user", "facility"):
            for file in (project.root / "stacks").glob("Pulumi.*.yaml"):
                _small(file)
            project.keep(**SMALL)
        made = makers[name](project, {**project.environment(), **_VARIABLES})
        try:
            yield made
        except BaseException:
            _take_down(made)
            raise
        finally:
            shutil.rmtree(project.root / ".state" / "site", ignore_errors=True)


def _take_down(made: Scene) -> None:
    """What a page's stacks hold, which it did not come to take down itself."""
    for state in sorted((made.project.root / ".state" / "stacks").glob("*/")):
        made.terminal.run(f"cd '{made.project.root}' && KEEP_LAB=1 make down STACK={state.name}")


def _user(project: Project, environment: dict[str, str]) -> Scene:
    made = Scene(project, Terminal(project.root, environment))
    made.givens |= {
        "a lab": project.start_lab,
        "an Ignition of lab-worker-0 that fails": lambda: _failing(project, "lab-worker-0"),
        "nothing that fails": project.faults,
    }
    return made


def _failing(project: Project, hostname: str) -> None:
    project.start_lab()
    project.faults({"kind": "ignition_fails", "match": {"hostname": hostname}, "count": None})


def _rack(project: Project, environment: dict[str, str]) -> Scene:
    python = str(project.root / ".venv/bin/python")
    lab = [python, "-m", "lab"]
    state = ["--state", str(project.layout.state)]
    started = Terminal(project.root, environment).run(" ".join([*lab, "up", *state, "--machines simulated --rack 4"]))
    assert started.status == 0, started.printed
    facts = _facts(project)
    made = Scene(project, Terminal(project.root, environment))
    bmc = facts["rack"]["servers"][0]["bmc"]["address"].removeprefix("https://")
    within = Terminal(project.root, environment, [*lab, "run", *state, "--"])
    made.said = {"10.0.0.11": bmc}
    made.givens["a network that reaches the BMCs"] = lambda: setattr(made, "terminal", within)
    made.givens["a terminal of one's own again"] = lambda: setattr(
        made, "terminal", Terminal(project.root, environment)
    )
    return made


def _facility(project: Project, environment: dict[str, str]) -> Scene:
    project.start_lab()
    facts = _facts(project)
    engine = ensure(print).path
    home = project.root.with_name("home")
    _install_plugins(project.root, home)
    place = os.pathsep.join(
        [str(engine.parent), str(Path(facts["installer"]).parent), environment["PATH"]],
    )
    environment |= {
        "PATH": place,
        "HOME": str(home),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        "TOKEN": facts["api"]["token"],
        **dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), facts["ca_path"]),
    }
    inside = [str(project.root / ".venv/bin/python"), "-m", "lab", "run", "--state", str(project.layout.state), "--"]
    made = Scene(project, Terminal(project.root, environment, inside), said_of_a_facility(facts))
    made.values |= {
        "API token": facts["api"]["token"],
        "TSIG secret": facts["dns"]["tsig"]["secret"],
        "upload key": facts["artifacts"]["private_key"],
        "pull secret": '{"auths":{"fake":{"auth":"aWQ6cGFzcwo="}}}',
        "authority": Path(facts["artifacts"]["ca_path"]).read_text(),
    }
    made.givens["what stack ci left"] = lambda: _leave(project, facts["api"]["project_id"])
    made.givens["an upload key, a pull secret and an authority"] = lambda: _given_files(project.root, made.values)
    _fill_in(project.root / "stacks" / "Pulumi.da11.yaml", facts)
    return made


def _given_files(root: Path, values: Mapping[str, str]) -> None:
    (root / "upload-key").write_text(values["upload key"])
    (root / "pull-secret.json").write_text(values["pull secret"])
    (root / "boot-server-ca.pem").write_text(values["authority"])


def _leave(project: Project, project_id: str) -> None:
    """A machine with the marks of a stack that no state knows."""
    marks = ["metal-ipi", "metal-ipi:stack=ci", "metal-ipi:cluster=ci.facility.test"]
    order = {
        "hostname": "ci-worker-0", "metro": "lb", "plan": "c3.small.x86", "operating_system": "custom_ipxe",
        "userdata": "#!ipxe\nshell", "tags": marks,
    }  # fmt: skip
    project.inside("call", "POST", f"/projects/{project_id}/devices", json.dumps(order))


def _install_plugins(root: Path, home: Path) -> None:
    """Where the engine looks for the official ones. A copy would look for its modules beside itself."""
    for name in _OFFICIAL:
        folder = f"resource-{name}-v{version(f'pulumi-{name}')}"
        plugin = home / ".pulumi" / "plugins" / folder / f"pulumi-resource-{name}"
        plugin.parent.mkdir(parents=True)
        plugin.write_text(f'#!/bin/sh\nexec "{root}/lab/plugins/{plugin.name}" "$@"\n')
        plugin.chmod(0o755)


def _fill_in(file: Path, facts: Tree) -> None:
    """The committed stack of a facility with all that it wants, secrets in clear."""
    artifacts, tsig = facts["artifacts"], facts["dns"]["tsig"]
    document = cast("Tree", yaml.safe_load(_translated(file.read_text(), said_of_a_facility(facts))))
    config: Tree = document["config"]
    added: Tree = {
        "platform": {"authToken": facts["api"]["token"], "facilities": [facts["api"]["facility"]]},
        "dns": {"tsig": {"name": tsig["name"], "secret": tsig["secret"]}},
        "boot": {"streamFile": None, "streamUrl": facts["boot"]["stream_url"]},
        "artifacts": {
            "hostKey": artifacts["host_key"], "privateKey": artifacts["private_key"],
            "user": artifacts["user"], "bootBaseUrl": artifacts["boot_base_url"],
            "caBundle": Path(artifacts["ca_path"]).read_text(),
        },
        "install": {"pullSecret": '{"auths":{"quay.io":{"auth":"eDp5"}}}'},
    }  # fmt: skip
    for name, values in added.items():
        config[f"metal-ipi:{name}"] = _merged(config.get(f"metal-ipi:{name}") or {}, values)
    del config["metal-ipi:boot"]["streamFile"]
    file.write_text(yaml.safe_dump(document, sort_keys=False))


def _translated(text: str, said: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, said)), lambda match: said[match[0]], text)


def _small(file: Path) -> None:
    document = cast("Tree", yaml.safe_load(file.read_text()))
    if "metal-ipi:lab" in document["config"]:
        document["config"]["metal-ipi:lab"] = {**document["config"]["metal-ipi:lab"], **SMALL["lab"]}
        file.write_text(yaml.safe_dump(document, sort_keys=False))


def _facts(project: Project) -> Tree:
    return json.loads((project.layout.state / "facts.json").read_text())


def _merged(base: Tree, over: Tree) -> Tree:
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = _merged(cast("Tree", inner), cast("Tree", value)) if both else value
    return merged
