"""docker-registry, and its configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.layout import Layout, write_private
from lab.network import plan

if TYPE_CHECKING:
    from lab.facts import Mirror
    from lab.openshift.real.release import Release

PROGRAM = Path("/usr/bin/docker-registry")
"""Debian's."""
CONFIGURATION = "registry.json"
"""The file, in the directory of the lab's mirror."""
_ROUNDS = 4
"""Each request is checked against the hash: the fewest that bcrypt knows."""


def configuration(*, images: Path, address: str, pair: Path, accounts: Path | None = None) -> dict[str, Any]:
    """A registry that serves what is in `images`, with the certificate `<pair>.crt`, to everybody or to `accounts`."""
    told: dict[str, Any] = {
        "version": 0.1,
        "log": {"accesslog": {"disabled": True}, "level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(images)}, "delete": {"enabled": True}},
        "http": {"addr": address, "tls": {"certificate": f"{pair}.crt", "key": f"{pair}.key"}},
    }
    if accounts is not None:
        told["auth"] = {"htpasswd": {"realm": "registry", "path": str(accounts)}}
    return told


def prepare(layout: Layout, known: Mirror, release: Release | None) -> None:
    """Make the site's registry ready: its account, and the images of a release, where there is one."""
    import bcrypt

    from lab.mirror import images

    kept, accounts = layout.mirror / "images", layout.mirror / "accounts"
    kept.mkdir(parents=True, exist_ok=True)
    if release is not None:
        images.publish(images.ensure(release), kept)
    hashed = bcrypt.hashpw(known.password.encode(), bcrypt.gensalt(_ROUNDS)).decode()
    write_private(accounts, f"{known.username}:{hashed}\n")
    address, pair = f"{plan.MIRROR}:{plan.REGISTRY_PORT}", layout.tls / plan.MIRROR_NAME
    told = configuration(images=kept, address=address, pair=pair, accounts=accounts)
    write_private(layout.mirror / CONFIGURATION, json.dumps(told, indent=2) + "\n")
