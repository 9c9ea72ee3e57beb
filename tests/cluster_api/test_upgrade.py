"""`clusterctl upgrade` of our providers, from a local repository with two versions, on a real kube-apiserver.

Nothing runs there: how processes take over from each other is in test_contract.py.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import cert_manager, cluster_api
from lab.kubernetes.access import define, send
from tests.cluster_api import hub as hubs
from tests.cluster_api import objects as made
from tests.cluster_api.hub import OWN, Hub
from tools import clusterctl

pytestmark = [pytest.mark.programs, pytest.mark.nightly]
_OLDER, _NEWER = "v0.1.4", "v0.2.1"
_IMAGE = f"registry.test/{clusterctl.NAME}"
_PROVIDERS = "/apis/clusterctl.cluster.x-k8s.io/v1alpha3/providers"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{OWN}/deployments"
_LEASES = "leases.coordination.k8s.io"
_WEBHOOK = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/metal-ipi-validating-webhook-configuration"
)
_INVENTORY = f"/apis/clusterctl.cluster.x-k8s.io/v1alpha3/namespaces/{OWN}/providers/infrastructure-metal-ipi"


@pytest.fixture
def hub(tmp_path: Path) -> Generator[Hub]:
    """A hub whose API knows certificates, as where cert-manager is installed."""
    source = cert_manager.PROGRAM.source(cert_manager.MODULE) / "deploy" / "crds"
    documents = [yaml.safe_load(path.read_text()) for path in sorted(source.glob("cert-manager.io_*.yaml"))]
    with hubs.hub(tmp_path) as found:
        define(found.access, documents)
        send(found.client, "DELETE", _INVENTORY)  # here clusterctl installs it
        yield found


def _release(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a version into the repository, and the core's, of which nothing is installed but its place."""
    monkeypatch.setattr(clusterctl, "version", lambda: version)
    clusterctl.write(folder, f"{_IMAGE}:{version}")
    core = folder / "cluster-api" / cluster_api.version()
    core.mkdir(parents=True, exist_ok=True)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-system"}}
    (core / "core-components.yaml").write_text(yaml.safe_dump(space))
    (core / "metadata.yaml").write_text((hubs.core() / "metadata.yaml").read_text())
    configuration = yaml.safe_load((folder / "clusterctl.yaml").read_text())
    url = str(core / "core-components.yaml")
    configuration["providers"].append({"name": "cluster-api", "type": "CoreProvider", "url": url})
    (folder / "clusterctl.yaml").write_text(yaml.safe_dump(configuration))


def _versions(hub: Hub) -> dict[str, str]:
    found = send(hub.client, "GET", _PROVIDERS)["items"]
    return {each["metadata"]["name"]: each["version"] for each in found if each["providerName"] == clusterctl.NAME}


def _deployment(hub: Hub) -> dict[str, Any]:
    (found,) = send(hub.client, "GET", _DEPLOYMENTS)["items"]
    return found


@pytest.mark.parametrize(
    "asked",
    [
        ["--contract", "v1beta2"],
        [f"--{part}={clusterctl.NAME}:{_NEWER}" for part in clusterctl.PROVIDERS],  # as the lab does
    ],
    ids=["contract", "versions"],
)
def test_an_upgrade_keeps_objects(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Sequence[str]
) -> None:
    folder, ours = tmp_path / "repository", [f"--{part}={clusterctl.NAME}" for part in clusterctl.PROVIDERS]
    names = {f"{part}-{clusterctl.NAME}" for part in clusterctl.PROVIDERS}
    _release(folder, _OLDER, monkeypatch)
    (tmp_path / "clusterctl.yaml").write_text((folder / "clusterctl.yaml").read_text())
    hub.clusterctl("init", f"--core=cluster-api:{cluster_api.version()}", *ours)
    assert _versions(hub) == dict.fromkeys(names, _OLDER)
    before = _deployment(hub)["spec"]["template"]["spec"]["containers"][0]
    assert before["image"] == f"{_IMAGE}:{_OLDER}"
    assert {"--max-away=0", "--max-installing=0"} <= set(before["args"])
    send(hub.client, "DELETE", _WEBHOOK)  # nobody serves it
    made.facility(hub, *made.settings("stays"))
    hub.make(_LEASES, {"metadata": {"name": "server-1"}, "spec": {"holderIdentity": "server-1"}}, OWN)
    kept = (
        (made.FACILITIES, "stays", "facility"),
        (made.CLUSTERS, "stays", "facility"),
        ("secrets", "stays-settings", "facility"),
        (_LEASES, "server-1", OWN),
    )
    there = [hub.get(*each) for each in kept]
    assert all(there)
    _release(folder, _NEWER, monkeypatch)
    (tmp_path / "clusterctl.yaml").write_text((folder / "clusterctl.yaml").read_text())
    plan = hub.clusterctl("upgrade", "plan")
    for name in names:
        (line,) = (each for each in plan.splitlines() if each.startswith(name))
        assert line.split()[-2:] == [_OLDER, _NEWER], plan
    monkeypatch.setenv(clusterctl.MAX_AWAY, "3")
    monkeypatch.setenv(clusterctl.MAX_INSTALLING, "10")
    hub.clusterctl("upgrade", "apply", *asked)
    assert _versions(hub) == dict.fromkeys(names, _NEWER)
    after = _deployment(hub)
    assert after["metadata"]["labels"]["app.kubernetes.io/version"] == _NEWER and after["spec"]["replicas"] == 1
    container = after["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"{_IMAGE}:{_NEWER}"
    assert {"--max-away=3", "--max-installing=10"} <= set(container["args"])
    assert [hub.get(*each) for each in kept] == there
