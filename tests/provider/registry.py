"""A real docker-registry on loopback, with TLS and an account, and what is pushed into it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import socket
import ssl
import subprocess
import tarfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bcrypt
import httpx
import trustme

from tests.lab.waiting import until

PROGRAM = shutil.which("docker-registry")
USER, PASSWORD = "mirror", "swordfish-of-the-registry"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, kw_only=True)
class Registry:
    """A registry that runs."""

    name: str
    """Host and port."""
    ca: str
    """The authority (PEM) of its certificate."""
    client: httpx.Client

    def pull_secret(self, password: str = PASSWORD, place: str = "") -> str:
        """A pull secret with its account."""
        auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
        return json.dumps({"auths": {place or self.name: {"auth": auth}}})

    def push(self, repository: str, files: Mapping[str, str], tag: str = "latest") -> str:
        """An image of one layer with these files; returns its digest."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as layer:
            for name, text in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(text.encode())
                layer.addfile(member, io.BytesIO(text.encode()))
        config = self._blob(repository, b"{}", "application/vnd.oci.image.config.v1+json")
        layers = [self._blob(repository, archive.getvalue(), "application/vnd.oci.image.layer.v1.tar+gzip")]
        manifest = json.dumps({"schemaVersion": 2, "mediaType": _MANIFEST, "config": config, "layers": layers})
        answer = self.client.put(
            f"/v2/{repository}/manifests/{tag}", content=manifest, headers={"Content-Type": _MANIFEST}
        )
        answer.raise_for_status()
        return answer.headers["Docker-Content-Digest"]

    def _blob(self, repository: str, content: bytes, kind: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        place = self.client.post(f"/v2/{repository}/blobs/uploads/").raise_for_status().headers["Location"]
        self.client.put(httpx.URL(place).copy_merge_params({"digest": digest}), content=content).raise_for_status()
        return {"mediaType": kind, "digest": digest, "size": len(content)}


@contextmanager
def running(folder: Path) -> Generator[Registry]:
    """A registry, as long as it is needed."""
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "tls.pem")
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (folder / "accounts").write_text(f"{USER}:{hashed}\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        name = f"127.0.0.1:{free.getsockname()[1]}"
    config = {
        "version": 0.1,
        "log": {"accesslog": {"disabled": True}, "level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
        "auth": {"htpasswd": {"realm": "registry", "path": str(folder / "accounts")}},
        "http": {"addr": name, "tls": {"certificate": str(folder / "tls.pem"), "key": str(folder / "tls.pem")}},
    }
    (folder / "config.json").write_text(json.dumps(config))
    assert PROGRAM is not None
    ca = authority.cert_pem.bytes().decode()
    process = subprocess.Popen(
        [PROGRAM, "serve", str(folder / "config.json")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with httpx.Client(
            base_url=f"https://{name}", auth=(USER, PASSWORD), verify=ssl.create_default_context(cadata=ca), timeout=10
        ) as client:
            until(lambda: _answers(client), 20)
            yield Registry(name=name, ca=ca, client=client)
    finally:
        process.kill()
        process.wait()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/v2/").status_code == 200
    except httpx.HTTPError:
        return False
