"""The merged configuration, written to a machine's root directory: the files stage."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.machines.simulated.ignition import IgnitionError
from lab.machines.simulated.ignition.resource import Fetcher
from lab.machines.simulated.ignition.schema import Config

_REFUSED = ("disks", "filesystems", "raid", "luks")
_READ_ONLY = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/sys", "/dev")
_LINKED = {"/usr/local": "/var/usrlocal", "/home": "/var/home", "/root": "/var/roothome"}
"""Symbolic links of a CoreOS root file system."""


class Applier:
    """Writes one configuration below one directory."""

    def __init__(self, root: Path, fetcher: Fetcher, log: Callable[[str], None]) -> None:
        self._root = root
        self._fetcher = fetcher
        self._log = log

    async def apply(self, config: Config) -> None:
        """Everything, in the order of the real files stage. Raises IgnitionError."""
        storage: dict[str, Any] = config.get("storage") or {}
        for kind in _REFUSED:
            if storage.get(kind):
                raise IgnitionError(f"simulated machines do not partition disks: storage.{kind} cannot be applied")
        for user in (config.get("passwd") or {}).get("users") or []:
            self._user(user)
        for entry in sorted(storage.get("directories") or [], key=lambda node: str(node["path"])):
            self._directory(entry)
        for entry in sorted(storage.get("files") or [], key=lambda node: str(node["path"])):
            await self._file(entry)
        for entry in storage.get("links") or []:
            self._link(entry)
        for unit in (config.get("systemd") or {}).get("units") or []:
            self._unit(unit)

    def place(self, path: str) -> Path:
        """The path on this system of a path of the machine; refuses paths that are read-only on a CoreOS machine."""
        resolved = os.path.normpath(path)
        for link, target in _LINKED.items():
            if resolved == link or resolved.startswith(link + "/"):
                resolved = target + resolved[len(link) :]
        if any(resolved == entry or resolved.startswith(entry + "/") for entry in _READ_ONLY):
            raise IgnitionError(f"failed to create files: {path}: read-only file system")
        return self._root / resolved.lstrip("/")

    def _user(self, user: dict[str, Any]) -> None:
        name = str(user["name"])
        home = "/var/roothome" if name == "root" else str(user.get("homeDir") or f"/var/home/{name}")
        keys = user.get("sshAuthorizedKeys") or []
        passwd = self._root / "etc/passwd"
        if f"{name}:" not in {line.partition(":")[0] + ":" for line in passwd.read_text().splitlines()}:
            with passwd.open("a") as stream:
                stream.write(f"{name}:x:0:0:{user.get('gecos') or ''}:{home}:{user.get('shell') or '/bin/bash'}\n")
        if keys:
            self._write(self.place(f"{home}/.ssh/authorized_keys.d/ignition"), "\n".join(keys).encode() + b"\n", 0o600)
            self._log(f'wrote ssh authorized keys file for user: "{name}"')

    def _directory(self, node: dict[str, Any]) -> None:
        path = self.place(node["path"])
        if path.exists() and not path.is_dir():
            if not node.get("overwrite"):
                raise IgnitionError(f"failed to create files: {node['path']} exists and is not a directory")
            path.unlink()
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o755 if node.get("mode") is None else node["mode"])

    async def _file(self, node: dict[str, Any]) -> None:
        path, contents = self.place(node["path"]), node.get("contents") or {}
        exists = path.exists() or path.is_symlink()
        has_source = contents.get("source") is not None
        if has_source and exists and not node.get("overwrite"):
            raise IgnitionError(
                f'failed to create files: error creating file "{node["path"]}": A file exists there already and '
                "overwrite is false"
            )
        data = await self._fetcher.read(contents) if has_source else (path.read_bytes() if exists else b"")
        for entry in node.get("append") or []:
            data += await self._fetcher.read(entry)
        if has_source and exists:
            path.unlink()
        self._write(path, data, 0o644 if node.get("mode") is None else node["mode"])
        self._log(f'writing file "{node["path"]}"')

    def _link(self, node: dict[str, Any]) -> None:
        path = self.place(node["path"])
        if path.exists() or path.is_symlink():
            if not node.get("overwrite"):
                raise IgnitionError(f"failed to create files: {node['path']} exists and overwrite is false")
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        if node.get("hard"):
            path.hardlink_to(self.place(node["target"]))
        else:
            path.symlink_to(node["target"])

    def _unit(self, unit: dict[str, Any]) -> None:
        directory = self._root / "etc/systemd/system"
        for dropin in unit.get("dropins") or []:
            if dropin.get("contents") is not None:
                self._write(directory / f"{unit['name']}.d/{dropin['name']}", dropin["contents"].encode(), 0o644)
        if unit.get("contents"):
            self._write(directory / unit["name"], unit["contents"].encode(), 0o644)
            self._log(f'writing unit "{unit["name"]}" at "/etc/systemd/system/{unit["name"]}"')
        if unit.get("mask"):
            target = directory / unit["name"]
            target.unlink(missing_ok=True)
            target.symlink_to("/dev/null")
        if unit.get("enabled") is not None:
            preset = self._root / "etc/systemd/system-preset/20-ignition.preset"
            preset.parent.mkdir(parents=True, exist_ok=True)
            with preset.open("a") as stream:
                stream.write(f"{'enable' if unit['enabled'] else 'disable'} {unit['name']}\n")

    def _write(self, path: Path, data: bytes, mode: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)
