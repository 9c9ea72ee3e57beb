"""MetalLB on the lab's clusters: the manifest of its release as the lab's nodes can run it, on a real API server."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import metallb
from lab.kubernetes import build, cluster, crds
from lab.kubernetes.access import Access, apply, send
from lab.kubernetes.namespaces import METALLB
from tests.lab.kubernetes.support import Identities
from tests.lab.kubernetes.support import cluster as running

pytestmark = pytest.mark.programs

_POOL = {
    "apiVersion": "metallb.io/v1beta1",
    "kind": "IPAddressPool",
    "metadata": {"name": "own", "namespace": METALLB},
    "spec": {"addresses": ["192.0.2.40/29"]},
}
_LEFT_OUT = {"Namespace", "CustomResourceDefinition", "Service", "Secret", "ValidatingWebhookConfiguration"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Generator[Access]:
    identities = Identities(tmp_path_factory.mktemp("identities"))
    with running(tmp_path_factory.mktemp("cluster"), identities) as access:
        yield access


@pytest.fixture(scope="module")
def manifest() -> Path:
    return metallb.MANIFEST.ensure()


def containers(manifest: Path) -> dict[str, dict[str, Any]]:
    """The containers of what is applied, by image."""
    specs = [document["spec"]["template"]["spec"] for _, document in metallb.objects(manifest) if "spec" in document]
    return {container["image"]: container for spec in specs for container in spec["containers"]}


def test_programs_and_definitions_are_of_one_version() -> None:
    (tool, *_) = metallb.PROGRAMS
    pinned = re.search(rf"^\t{crds.METALLB.module} (v\S+)", (tool.pins / "go.mod").read_text(), re.MULTILINE)
    assert pinned is not None and pinned[1] == crds.METALLB.version


def test_every_image_is_one_that_nodes_can_pull(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(metallb.PROGRAMS[0]), "cached", lambda _: Path("/built"))
    monkeypatch.setattr(build, "cached", lambda _: Path("/built"))
    assert containers(manifest).keys() == metallb.images().keys()
    monkeypatch.setattr(build, "cached", lambda _: None)
    assert (len(metallb.images()), metallb.cached()) == (2, None)


def test_nothing_of_the_manifest_is_left_out_but_what_is_known(manifest: Path) -> None:
    (path,) = manifest.glob("*.yaml")
    kinds = {document["kind"] for document in yaml.safe_load_all(path.read_text())}
    assert kinds - {document["kind"] for _, document in metallb.objects(manifest)} == _LEFT_OUT


def test_speakers_are_as_released_and_on_workers(manifest: Path) -> None:
    (path,) = manifest.glob("*.yaml")
    (released,) = [each for each in yaml.safe_load_all(path.read_text()) if each["kind"] == "DaemonSet"]
    (speaker,) = [
        each for _, each in metallb.objects(manifest) if each["metadata"]["name"] == "speaker" and "spec" in each
    ]
    ours, theirs = speaker["spec"]["template"]["spec"], released["spec"]["template"]["spec"]
    assert ours.pop("nodeSelector") == {"node-role.kubernetes.io/worker": ""} and theirs.pop("nodeSelector")
    assert ours["containers"][0]["env"].pop()["name"] == "GOMEMLIMIT"
    assert ours == theirs


def test_it_comes_with_the_first_pool(api: Access, manifest: Path) -> None:
    space = f"/namespaces/{METALLB}"
    with api.client() as client:
        assert cluster.tend(client, manifest) == cluster.Tended(announces=False, rests=True)
        assert send(client, "GET", f"/apis/apps/v1{space}/daemonsets")["items"] == []
        apply(client, f"/apis/metallb.io/v1beta1{space}/ipaddresspools/own", _POOL)
        assert not cluster.tend(client, None).announces
        assert cluster.tend(client, manifest).announces and cluster.tend(client, manifest).announces
        found = {
            f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            for kind in ("daemonsets", "deployments")
            for item in send(client, "GET", f"/apis/apps/v1/{kind}")["items"]
        }
    assert found == {f"{METALLB}/speaker", f"{METALLB}/controller", "kube-system/kube-proxy"}
