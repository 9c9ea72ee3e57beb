"""Derived SSH host keys: the same every time, another for every node, and such that OpenSSH takes them."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import asyncssh
import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from metal_ipi.components.boot.host_keys import KeyType, host_key

_SEED = base64.b64encode(bytes(range(32))).decode()
_OTHER_SEED = base64.b64encode(bytes(range(1, 33))).decode()
_TYPES: list[KeyType] = ["ed25519", "ecdsa"]
_NODES = [f"lab-worker-{number}.lab.facility.test" for number in range(20)]


_KNOWN: dict[KeyType, str] = {
    "ed25519": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAqesxf+eAriIqhUPuwKKCiWRzC4Kkc/hQ1zZk6At3G6",
    "ecdsa": "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBIgJQNUJ3kQYm/rGXHDKEXeCEVWc"
    "w/Ocqiz4NL2UQvADGoB8ntkrpZzXtsjaU98dm4IuNEUTntK0KJqsfQNnUj0=",
}


@pytest.mark.parametrize("key_type", _TYPES)
def test_a_node_keeps_its_key(key_type: KeyType) -> None:
    """Fixed by a known answer: another derivation would make every pinned key of existing clusters wrong."""
    key = host_key(_SEED, _NODES[0], key_type)
    assert key == host_key(_SEED, _NODES[0], key_type) and key.public_key == _KNOWN[key_type]


@pytest.mark.parametrize("key_type", _TYPES)
def test_every_node_and_every_cluster_has_its_own(key_type: KeyType) -> None:
    keys = {host_key(seed, node, key_type).public_key for seed in (_SEED, _OTHER_SEED) for node in _NODES}
    assert len(keys) == 2 * len(_NODES)


@pytest.mark.parametrize("key_type", _TYPES)
@pytest.mark.parametrize("node", _NODES)
def test_libraries_take_the_private_key_and_find_the_public_one(node: str, key_type: KeyType) -> None:
    key = host_key(_SEED, node, key_type)
    exported = asyncssh.import_private_key(key.private_key).export_public_key().decode()
    assert exported.split()[:2] == key.public_key.split()
    private = load_ssh_private_key(key.private_key.encode(), password=None)
    assert private.public_key() == load_ssh_public_key(key.public_key.encode())


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize("key_type", _TYPES)
def test_openssh_takes_the_private_key_and_finds_the_public_one(tmp_path: Path, key_type: KeyType) -> None:
    key = host_key(_SEED, _NODES[0], key_type)
    file = tmp_path / "key"
    file.write_text(key.private_key)
    file.chmod(0o600)
    command = ["ssh-keygen", "-y", "-P", "", "-f", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.split()[:2]) == (0, key.public_key.split()), result.stderr


@pytest.mark.parametrize("seed", ["", "!", "AAAA", f"{_SEED}\n", base64.b64encode(bytes(31)).decode()])
def test_a_seed_that_could_be_guessed_is_refused(seed: str) -> None:
    with pytest.raises(ValueError, match=r"the seed of host keys has|base64|padding"):
        host_key(seed, _NODES[0])
