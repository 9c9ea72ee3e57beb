"""Installing Cluster API's core controllers in a hub that runs."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx

from lab import cluster_api
from lab.cluster_api import components
from lab.errors import NotRunning, ServiceFailed
from lab.hub import credentials, oci
from lab.hub.layout import HubLayout
from lab.layout import Layout
from lab.network import enter, plan

Report = Callable[[str], None]

_READY_SECONDS = 180


def folder(layout: Layout) -> Path:
    """Where clusterctl of a lab installs from; its configuration is `clusterctl.yaml` there."""
    return layout.hub / "cluster-api"


def install(layout: Layout, report: Report) -> int:
    """Have the hub be a management cluster of Cluster API; returns the exit status. Repeating it changes nothing.

    Raises ProgramMissing, SetupFailed, or NotRunning where there is no hub.
    """
    if not HubLayout(layout.hub).ready.exists():
        raise NotRunning(f"no hub runs in {layout.state}: start it with `make hub`")
    for recipe in components.IMAGES:
        recipe.ensure(report)
    cluster_api.CLUSTERCTL.ensure(report)
    components.write(folder(layout), report)
    return enter.run(layout, [sys.executable, "-m", "lab.cluster_api", "--state", str(layout.state)])


def inside(layout: Layout, report: Report) -> None:
    """The same from within the lab's network, where programs and images are there. Raises ServiceFailed."""
    hub = HubLayout(layout.hub)
    trust = ssl.create_default_context(cafile=str(layout.ca))
    with httpx.Client(base_url=f"https://{plan.REGISTRY}", verify=trust, trust_env=False, timeout=60) as client:
        for recipe in components.IMAGES:
            image = recipe.cached()
            assert image is not None, "install() made it"
            oci.push(client, recipe.name, recipe.key, image)
    if _installed(hub):
        report(f"Cluster API {cluster_api.version()} is installed in the hub")
        return
    only_core = ("--core", f"cluster-api:{cluster_api.version()}", "--bootstrap", "-", "--control-plane", "-")
    wait = ("--wait-providers", "--wait-provider-timeout", str(_READY_SECONDS))
    done = clusterctl(layout, "init", *only_core, *wait)
    if done.returncode != 0:
        raise ServiceFailed(f"clusterctl init ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    report(f"Cluster API {cluster_api.version()} is installed in the hub; clusterctl's configuration:")
    report(f"  {folder(layout) / 'clusterctl.yaml'}")


def clusterctl(layout: Layout, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run clusterctl for the hub, within the lab's network."""
    program = cluster_api.CLUSTERCTL.cached()
    assert program is not None, "install() built it"
    return subprocess.run(
        [str(program), *arguments, "--config", str(folder(layout) / "clusterctl.yaml")],
        env={
            **os.environ,
            "KUBECONFIG": str(HubLayout(layout.hub).kubeconfig("admin")),
            "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
            "XDG_CONFIG_HOME": str(folder(layout)),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def _installed(hub: HubLayout) -> bool:
    """Whether clusterctl's own inventory has the core provider of this version."""
    path = "/apis/clusterctl.cluster.x-k8s.io/v1alpha3/namespaces/capi-system/providers/cluster-api"
    with credentials.access(hub).client() as client:
        answer = client.get(path)
    return answer.is_success and answer.json().get("version") == cluster_api.version()
