"""Cluster API on the hub, by clusterctl: the core with its webhooks, our providers from their repository, a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import cluster_api
from lab.cluster_api.control import folder
from lab.hub.layout import HubLayout
from tests.lab.hub.hub import FOUND, ask
from tests.lab.network.conftest import ROOT, Lab
from tests.lab.waiting import until
from tools import clusterctl, stackfile

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(isinstance(FOUND, str), reason=f"no hub here: {FOUND}"),
]

_NAME = "rack7"
_CORE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default"
_PLACES = {
    "MetalIpiCluster": "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/default/metalipiclusters",
    "MetalIpiMachineTemplate": (
        "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/default/metalipimachinetemplates"
    ),
    "OpenShiftConfigTemplate": "/apis/bootstrap.cluster.x-k8s.io/v1alpha1/namespaces/default/openshiftconfigtemplates",
    "OpenShiftControlPlane": ("/apis/controlplane.cluster.x-k8s.io/v1alpha1/namespaces/default/openshiftcontrolplanes"),
    "Cluster": f"{_CORE}/clusters",
    "MachineDeployment": f"{_CORE}/machinedeployments",
}


def _install(lab: Lab, *options: str) -> str:
    """What `lab cluster-api` says; programs and images are made where they are not there."""
    command = [sys.executable, "-m", "lab", "cluster-api", "--state", str(lab.layout.state), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `lab cluster-api --providers` takes."""
    folder = tmp_path_factory.mktemp("given")
    clusterctl.gather(folder)
    return folder


@pytest.fixture(scope="module")
def configuration(lab: Lab, hub: HubLayout, given: Path) -> Path:
    """clusterctl's configuration, where the core and our providers are installed."""
    assert "was installed in the hub\nclusterctl's configuration" in _install(lab)
    assert "infrastructure-metal-ipi" in _install(lab, "--providers", str(given))
    return folder(lab.layout) / "clusterctl.yaml"


def _clusterctl(lab: Lab, configuration: Path, *arguments: str, **variables: str) -> str:
    program = cluster_api.CLUSTERCTL.ensure(lambda line: None)
    environment = {
        **os.environ,
        **variables,
        "KUBECONFIG": str(HubLayout(lab.layout.hub).kubeconfig("admin")),
        "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
        "XDG_CONFIG_HOME": str(configuration.parent),
    }
    done = subprocess.run(
        lab.command(str(program), *arguments, "--config", str(configuration)),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_all_is_installed_once(lab: Lab, configuration: Path, given: Path) -> None:
    # With the providers: what is not given is not in clusterctl's configuration any more.
    assert "is installed in the hub\n" in _install(lab, "--providers", str(given))


def test_a_webhook_of_the_core_refuses_what_is_wrong(lab: Lab, configuration: Path) -> None:
    """So cert-manager signed for it, and put its authority where the API finds it."""
    wrong = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "wrong"}}
    reference = {"apiGroup": "a.test", "kind": "Kind", "name": "a"}
    spec = {"clusterNetwork": {"pods": {"cidrBlocks": ["no-network"]}}, "infrastructureRef": reference}
    with pytest.raises(AssertionError, match=r"admission webhook .* denied the request"):
        ask(lab, "POST", f"{_CORE}/clusters", {**wrong, "spec": spec})


def test_a_cluster_of_our_template_says_what_it_waits_for(lab: Lab, configuration: Path, tmp_path: Path) -> None:
    (tmp_path / "motd.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: motd}\n")
    document = stackfile.read(ROOT / "stacks" / f"Pulumi.{_NAME}.yaml")
    document["config"]["metal-ipi:install"]["manifests"] = [str(tmp_path)]
    variables, (secret,) = clusterctl.variables(document), clusterctl.manifests(document)
    counts = ("--control-plane-machine-count=3", "--worker-machine-count=1", "--kubernetes-version=v4.21.0-lab")
    text = _clusterctl(
        lab, configuration, "generate", "cluster", _NAME, f"--infrastructure={clusterctl.NAME}", *counts, **variables
    )
    made = list(yaml.safe_load_all(text))
    assert {each["kind"] for each in made} == set(_PLACES)
    (facility,) = (each for each in made if each["kind"] == "MetalIpiCluster")
    assert facility["spec"]["settings"] == json.loads(variables["METAL_IPI_SETTINGS"])
    (control_plane,) = (each for each in made if each["kind"] == "OpenShiftControlPlane")
    assert control_plane["spec"]["manifestSecretRefs"] == [{"name": secret["metadata"]["name"]}]
    ask(lab, "POST", "/api/v1/namespaces/default/secrets", secret)
    wrong = {**facility, "spec": {**facility["spec"], "settings": {**facility["spec"]["settings"], "apiPort": 1}}}
    with pytest.raises(AssertionError, match=r"denied the request: metal-ipi:apiPort"):
        ask(lab, "POST", _PLACES["MetalIpiCluster"], wrong)
    for each in made:
        ask(lab, "POST", _PLACES[each["kind"]], each)
    told = f"there is no Secret default/{_NAME}-settings, which spec.secretsRef names"
    until(lambda: told in _clusterctl(lab, configuration, "describe", "cluster", _NAME), 60)


def test_a_newer_version_takes_over_from_the_pod_that_runs(
    lab: Lab, configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `clusterctl upgrade`: it leads, and goes on with what the older one looked after."""
    older, newer = _providers(lab), "v0.1.99"
    monkeypatch.setattr(clusterctl, "version", lambda: newer)
    clusterctl.gather(tmp_path)
    (tmp_path / "python" / "newer.py").touch()  # so it is another image
    assert "infrastructure-metal-ipi" in _install(lab, "--providers", str(tmp_path))
    until(lambda: older["pods"].isdisjoint(_providers(lab)["pods"]), 120)
    now = _providers(lab)
    assert now["version"] == newer != older["version"] and now["image"] != older["image"] and len(now["pods"]) == 1
    until(lambda: _leader(lab).startswith(f"{next(iter(now['pods']))}-"), 120)
    text = ask(lab, "GET", f"{_PLACES['MetalIpiCluster']}/{_NAME}")["status"]["conditions"]
    assert any("there is no Secret" in each["message"] for each in text)
    secret = {"metadata": {"name": f"{_NAME}-settings"}, "stringData": {"wrong": "{}"}}
    ask(lab, "POST", "/api/v1/namespaces/default/secrets", secret)
    until(lambda: "there is no Secret" not in _clusterctl(lab, configuration, "describe", "cluster", _NAME), 120)


def _providers(lab: Lab) -> dict[str, Any]:
    """What runs of them: version and image of the Deployment, and the names of its pods."""
    (deployment,) = ask(lab, "GET", f"/apis/apps/v1/namespaces/{clusterctl.NAMESPACE}/deployments")["items"]
    pods = ask(lab, "GET", f"/api/v1/namespaces/{clusterctl.NAMESPACE}/pods")["items"]
    return {
        "version": deployment["metadata"]["labels"]["app.kubernetes.io/version"],
        "image": deployment["spec"]["template"]["spec"]["containers"][0]["image"],
        "pods": {each["metadata"]["name"] for each in pods},
    }


def _leader(lab: Lab) -> str:
    place = f"/apis/coordination.k8s.io/v1/namespaces/{clusterctl.NAMESPACE}/leases/metal-ipi-cluster-api"
    return ask(lab, "GET", place)["spec"]["holderIdentity"] or ""
