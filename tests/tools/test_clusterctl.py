"""clusterctl's variables of a stack file, and the Secrets with its manifests."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.cluster_api import CLUSTERCTL
from lab.hub import objects
from metal_ipi.cluster_api import admission, webhooks
from metal_ipi.stacks.cluster_api.settings import cluster_template
from tools import clusterctl, stackfile
from tools.errors import StackError
from tools.layout import ROOT


def _document(**install: Any) -> dict[str, Any]:
    document = stackfile.read(ROOT / "stacks" / "Pulumi.rack7.yaml")
    document["config"]["metal-ipi:install"] = {**document["config"].get("metal-ipi:install", {}), **install}
    return document


def test_folders_of_manifests_become_secrets_that_the_control_plane_names(tmp_path: Path) -> None:
    (tmp_path / "motd.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: motd}\n")
    document = _document(manifests=[str(tmp_path)])
    found, (secret,) = clusterctl.variables(document), clusterctl.manifests(document)
    assert "manifests" not in json.loads(found["METAL_IPI_SETTINGS"])["install"], "the folder is on this machine"
    assert json.loads(found["METAL_IPI_MANIFESTS"]) == [{"name": secret["metadata"]["name"]}]
    assert list(secret["stringData"]) == ["motd.yaml"] and "namespace" not in secret["metadata"]
    assert secret["metadata"]["annotations"] == {"metal-ipi.cluster.x-k8s.io/manifests": "openshift"}
    (tmp_path / "motd.yaml").write_text("apiVersion: v1\nkind: Motd\nmetadata: {name: motd}\n")
    with pytest.raises(StackError, match=r"motd\.yaml:1: Motd of v1 is not a kind"):
        clusterctl.variables(document)


@pytest.mark.programs
@pytest.mark.parametrize("given", [True, False])
def test_clusterctl_fills_in_the_names_of_secrets(tmp_path: Path, given: bool) -> None:
    program = CLUSTERCTL.cached()
    if program is None:
        pytest.skip("clusterctl is not built here: `python -m lab cluster-api` builds it")
    (folder := tmp_path / "manifests").mkdir()
    (folder / "motd.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: motd}\n")
    document = _document(**({"manifests": [str(folder)]} if given else {}))
    counts = {"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "1", "KUBERNETES_VERSION": "v4.21.0"}
    variables = {**clusterctl.variables(document), **counts, "CLUSTER_NAME": "rack7", "NAMESPACE": "default"}
    (template := tmp_path / "template.yaml").write_text(cluster_template())
    (configuration := tmp_path / "clusterctl.yaml").touch()
    command = [str(program), "generate", "yaml", "--from", str(template), "--config", str(configuration)]
    environment = {"CLUSTERCTL_DISABLE_VERSIONCHECK": "true", "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        command, env={**os.environ, **environment, **variables}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    made = {each["kind"]: each["spec"] for each in yaml.safe_load_all(done.stdout)}
    names = [{"name": each["metadata"]["name"]} for each in clusterctl.manifests(document)]
    assert len(names) == given and made["OpenShiftControlPlane"]["manifestSecretRefs"] == names
    assert made["MetalIpiCluster"]["settings"] == json.loads(variables["METAL_IPI_SETTINGS"])


def test_without_manifests_nothing_is_named() -> None:
    assert "METAL_IPI_MANIFESTS" not in clusterctl.variables(_document()) and clusterctl.manifests(_document()) == []


def test_settings_that_are_wrong_are_refused() -> None:
    with pytest.raises(StackError, match="install"):
        clusterctl.variables(_document(butane=7))


def test_a_release_names_all_from_which_clusterctl_may_upgrade() -> None:
    """It refuses what the newest one does not list (clusterctl 1.12.2, cluster/upgrader_info.go)."""
    major, minor = (int(each) for each in clusterctl.version().removeprefix("v").split(".")[:2])
    assert clusterctl.SERIES[-1] == (major, minor), "add the version of the project"
    found = clusterctl.metadata(f"v{major}.{minor + 1}.3")["releaseSeries"]
    assert [(each["major"], each["minor"]) for each in found] == [*clusterctl.SERIES, (major, minor + 1)]


def test_the_command_prints_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert clusterctl.main(["manifests", "rack7"]) == 0
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == []


def _components(folder: Path) -> list[Any]:
    """The objects of which our providers consist, written to a folder and read from there."""
    clusterctl.write(folder, "registry.test/metal-ipi:1")
    return [each for file in folder.rglob("*-components.yaml") for each in yaml.safe_load_all(file.read_text())]


def test_the_lab_can_apply_all_of_our_components_again(tmp_path: Path) -> None:
    """Definitions apart, which it applies in another way."""
    documents = _components(tmp_path)
    found = {each["kind"]: objects.path(each) for each in documents if each["kind"] != "CustomResourceDefinition"}
    assert {"Certificate", "Deployment", "ValidatingWebhookConfiguration"} <= found.keys()


def test_a_pod_is_ready_when_its_webhook_answers(tmp_path: Path) -> None:
    """The API refuses every change of our objects while nobody answers."""
    documents = _components(tmp_path)
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    probe = container["readinessProbe"]["httpGet"]
    assert (probe["scheme"], probe["port"], probe["path"]) == ("HTTPS", webhooks.PORT, admission.READY_PATH)
