"""Everything secret of a copy of the project, and where it may not stand."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.end_to_end.project import Project

_SIGNATURE = "4dabf18193072939515e22adb298388d"
"""Marks special values in the engine's state; `plaintext` beside it is a decrypted secret."""
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", re.DOTALL)
_KEY_DATA = re.compile(r"client-key-data: *\"?([A-Za-z0-9+/=]{40,})")
_NAMED = re.compile(r"(private_?key|host_?key_?seed|password|secret|token|client_?key_?pem)$", re.IGNORECASE)
_SHORTEST = 12


def collect(project: Project, engine: str) -> dict[str, str]:
    """Secret → where it comes from: of the lab's facts, the passphrase, and everything secret in the state."""
    facts = json.loads(project.layout.facts.read_text())
    known = {facts["dns"]["tsig"]["secret"]: "TSIG key"}
    if facts["api"]:
        known[facts["api"]["token"]] = "API token"
    for server in (facts["rack"] or {}).get("servers", ()):
        known[server["bmc"]["password"]] = f"password of {server['name']}"
    known |= dict.fromkeys(_keys(facts["artifacts"]["private_key"]), "upload key")
    known[(project.state / "passphrase").read_text()] = "passphrase"
    found: dict[str, str] = {}
    for resource, name, value in _state(project, engine):
        for key, text in _leaves(name, value):
            lines = [text] if _NAMED.search(key) and len(text) >= _SHORTEST and "\n" not in text else []
            found |= dict.fromkeys([*_keys(text), *lines], f"{resource} {name}")
    return found | known


def leaks(secrets: dict[str, str], where: str, text: str) -> list[str]:
    """Which secrets stand in a text."""
    return [f"{origin} in {where}" for secret, origin in secrets.items() if secret in text]


def files(project: Project) -> Iterator[Path]:
    """Files that must hold no secret: the backend, the engine's home, the configuration's copy, all logs."""
    for directory in (
        project.state / "backend",
        project.state / "home",
        project.state / "project",
        project.root / ".state" / "logs",
        project.layout.state / "logs",
    ):
        yield from (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    yield from (path for path in project.state.iterdir() if path.is_file() and path.name != "passphrase")


def outputs(project: Project, engine: str) -> dict[str, Any]:
    """The stack's outputs, secrets included."""
    return json.loads(ask(project, engine, "output", "--json", "--show-secrets"))


def private_key(project: Project, engine: str) -> str:
    """The key that opens the nodes."""
    return next(value for _, name, value in _state(project, engine) if name == "privateKey")


def _state(project: Project, engine: str) -> Iterator[tuple[str, str, Any]]:
    """Resource, property and decrypted value of every secret in the state."""
    for resource in json.loads(ask(project, engine, "export", "--show-secrets"))["deployment"]["resources"]:
        for part in ("inputs", "outputs"):
            for name, value in (resource.get(part) or {}).items():
                for secret in _secrets(value):
                    yield resource["urn"].rpartition("::")[2], name, secret


def ask(project: Project, engine: str, *command: str) -> str:
    """What a command of the engine's about the stack prints."""
    env = project.environment() | {
        "PULUMI_HOME": str(project.state / "home"),
        "PULUMI_BACKEND_URL": f"file://{project.state / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(project.state / "passphrase"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    return subprocess.run(
        [engine, "stack", *command, "--stack", project.stack],
        cwd=project.state / "project", env=env, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def _secrets(value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and _SIGNATURE in value:
        if "plaintext" in value:
            yield json.loads(value["plaintext"])
        return
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _secrets(item)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value, by the name nearest to it; texts that are JSON are looked into."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(key, item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(name, item)
    elif isinstance(value, str):
        parsed = None
        if value[:1] in "{[":
            try:
                parsed = json.loads(value)
            except ValueError:
                parsed = None
        if parsed is None:
            yield name, value
        else:
            yield from _leaves(name, parsed)


def _keys(text: str) -> Iterator[str]:
    """The lines of private keys in a text, and keys as a kubeconfig has them."""
    for block in _PRIVATE.findall(text):
        yield from (line.strip() for line in block.splitlines() if len(line.strip()) >= 40)
    for data in _KEY_DATA.findall(text):
        yield data
        yield from _keys(base64.b64decode(data).decode(errors="replace"))
