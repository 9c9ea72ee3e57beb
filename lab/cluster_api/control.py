"""Installing Cluster API in a hub that runs: the core controllers, and providers that are given."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from lab import cluster_api, facts
from lab.cluster_api import components, providers
from lab.errors import NotRunning, ServiceFailed
from lab.hub import credentials, objects, oci
from lab.hub.layout import HubLayout
from lab.hub.recipe import Recipe
from lab.kubernetes.access import apply, define
from lab.layout import Layout
from lab.network import enter, plan

Report = Callable[[str], None]

_READY_SECONDS = 180
_TRIED = "/api/v1/namespaces/cert-manager-test"
"""The namespace in which clusterctl tests cert-manager; clusterctl deletes it without waiting (clusterctl 1.12.2,
cluster/cert_manager.go, waitForAPIReady)."""


def folder(layout: Layout) -> Path:
    """The folder from which a lab's clusterctl installs; its configuration is `clusterctl.yaml` there."""
    return layout.hub / "cluster-api"


def install(layout: Layout, report: Report, given: Path | None = None) -> int:
    """Make the hub a management cluster of Cluster API; returns the exit status. Repeating it changes nothing.

    `given` is a folder with more providers (see lab.cluster_api.providers); those that are there get what it has now.
    Raises ProgramMissing, SetupFailed, or NotRunning where there is no hub.
    """
    if not HubLayout(layout.hub).ready.exists():
        raise NotRunning(f"no hub runs in {layout.state}: start it with `make hub`")
    recipes = _images(layout, given)
    for recipe in recipes:
        recipe.ensure(report)
    cluster_api.CLUSTERCTL.ensure(report)
    components.write(folder(layout), report, given, recipes[-1])
    command = [sys.executable, "-m", "lab.cluster_api", "--state", str(layout.state)]
    return enter.run(layout, [*command, *(["--providers", str(given.resolve())] if given else [])])


def inside(layout: Layout, report: Report, given: Path | None) -> None:
    """The same from within the lab's network, where programs and images are there. Raises ServiceFailed."""
    hub = HubLayout(layout.hub)
    trust = ssl.create_default_context(cafile=str(layout.ca))
    recipes = _images(layout, given)
    with httpx.Client(base_url=f"https://{plan.REGISTRY}", verify=trust, trust_env=False, timeout=60) as client:
        for recipe in recipes:
            image = recipe.cached()
            assert image is not None, "install() made it"
            oci.push(client, recipe.name, recipe.key, image)
    with credentials.access(hub).client() as client:
        there = _inventory(client)
        if "cluster-api" not in there:
            core = ("--core", f"cluster-api:{cluster_api.version()}", "--bootstrap", "-", "--control-plane", "-")
            _init(layout, client, core)
        more = providers.listed(given) if given else []
        _upgrade(layout, there, more)
        for each in more:
            if there.get(providers.label(each)) == providers.version(each):
                _renew(layout, hub, client, each)
        if fresh := [each for each in more if providers.label(each) not in there]:
            _init(layout, client, [f"--{providers.OPTIONS[each['type']]}={each['name']}" for each in fresh])
        _await_providers(client)
    names = "".join(f", {providers.label(each)}" for each in more)
    report(f"Cluster API {cluster_api.version()}{names} {'is' if there else 'was'} installed in the hub")
    report(f"clusterctl's configuration: {folder(layout) / 'clusterctl.yaml'}")


def _images(layout: Layout, given: Path | None) -> list[Recipe]:
    """All images; that of the given providers is the last."""
    more = [providers.image(given, layout, facts.require(layout))] if given else []
    return [*components.IMAGES, *more]


def _inventory(client: httpx.Client) -> dict[str, str]:
    """The version of each provider that clusterctl installed, by its label."""
    answer = client.get("/apis/clusterctl.cluster.x-k8s.io/v1alpha3/providers")
    return {each["metadata"]["name"]: each["version"] for each in answer.json()["items"]} if answer.is_success else {}


def _init(layout: Layout, client: httpx.Client, chosen: Sequence[str]) -> None:
    """Run clusterctl to install providers, and wait until they work. Raises ServiceFailed.

    If a run begins while the namespace of the previous run is being deleted, clusterctl assumes that it exists, and
    tries for ten minutes to create something in it.
    """
    end = time.monotonic() + _READY_SECONDS
    while client.get(_TRIED).is_success:
        if time.monotonic() > end:
            raise ServiceFailed(f"{_TRIED} of a clusterctl init before is still there after {_READY_SECONDS} s")
        time.sleep(0.2)
    try:
        _clusterctl(layout, "init", *chosen, "--wait-providers", "--wait-provider-timeout", str(_READY_SECONDS))
    except ServiceFailed as error:
        raise ServiceFailed("\n".join([str(error), *not_available(client)])) from None


def _await_providers(client: httpx.Client) -> None:
    """Wait until all providers work, also those that another run installed. Raises ServiceFailed."""
    end = time.monotonic() + _READY_SECONDS
    while missing := not_available(client):
        if time.monotonic() > end:
            raise ServiceFailed("\n".join([f"after {_READY_SECONDS} s providers of the hub do not work:", *missing]))
        time.sleep(0.2)


def not_available(client: httpx.Client) -> list[str]:
    """The Deployments that clusterctl installed and that do not work, and what each of their pods waits for."""
    found: list[str] = []
    chosen = {"labelSelector": "clusterctl.cluster.x-k8s.io"}
    for each in client.get("/apis/apps/v1/deployments", params=chosen).raise_for_status().json()["items"]:
        metadata, status = each["metadata"], each.get("status") or {}
        conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        seen = status.get("observedGeneration", 0) >= metadata["generation"]
        if seen and conditions.get("Available") == "True":
            continue
        place, labels = metadata["namespace"], each["spec"]["selector"]["matchLabels"]
        selector = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
        pods = client.get(f"/api/v1/namespaces/{place}/pods", params=selector).raise_for_status().json()["items"]
        found.append(f"Deployment {place}/{metadata['name']}: {'; '.join(map(_pod, pods)) or 'it has no pod'}")
    return found


def _pod(pod: Mapping[str, Any]) -> str:
    status: Mapping[str, Any] = pod.get("status") or {}
    waiting = [each["state"]["waiting"] for each in status.get("containerStatuses") or () if "waiting" in each["state"]]
    why = [f"{each.get('reason')} {each.get('message', '')}".strip() for each in waiting]
    return f"pod {pod['metadata']['name']} is {status.get('phase')}" + "".join(f", {each}" for each in why)


def _upgrade(layout: Layout, there: Mapping[str, str], given: Sequence[providers.Object]) -> None:
    """Have clusterctl take what is there to the versions that are wanted. Raises ServiceFailed."""
    wanted = {"cluster-api": ("core", "cluster-api", cluster_api.version())}
    for each in given:
        wanted[providers.label(each)] = providers.OPTIONS[each["type"]], each["name"], providers.version(each)
    found = [
        f"--{option}={name}:{version}"
        for label, (option, name, version) in wanted.items()
        if there.get(label) not in (None, version)
    ]
    if found:
        waiting = ("--wait-providers", "--wait-provider-timeout", str(_READY_SECONDS))
        _clusterctl(layout, "upgrade", "apply", *found, *waiting)


def _renew(layout: Layout, hub: HubLayout, client: httpx.Client, provider: providers.Object) -> None:
    """Apply what a provider that is there in the same version consists of now: clusterctl upgrades to others only."""
    option = f"--{providers.OPTIONS[provider['type']]}={provider['name']}"
    documents = list(yaml.safe_load_all(_clusterctl(layout, "generate", "provider", option)))
    definitions = [each for each in documents if each["kind"] == "CustomResourceDefinition"]
    define(credentials.access(hub), definitions)
    for document in documents:
        if document not in definitions:
            apply(client, objects.path(document), document)


def _clusterctl(layout: Layout, *arguments: str) -> str:
    """Run clusterctl; returns its output. Raises ServiceFailed."""
    done = clusterctl(layout, *arguments)
    if done.returncode != 0:
        raise ServiceFailed(f"clusterctl {arguments[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


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
