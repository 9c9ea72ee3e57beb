"""What is told of providers of a hub that do not work."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lab.cluster_api import control
from lab.errors import ServiceFailed

_LABELS = {"app": "controller"}


def _client(generation: int, available: str, *pods: dict[str, Any]) -> httpx.Client:
    """A hub with one Deployment, which was seen as of generation 2, and its pods."""
    deployment = {
        "metadata": {"name": "controller", "namespace": "ours", "generation": generation},
        "spec": {"selector": {"matchLabels": _LABELS}},
        "status": {"observedGeneration": 2, "conditions": [{"type": "Available", "status": available}]},
    }

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/apis/apps/v1/deployments":
            assert request.url.params["labelSelector"] == "clusterctl.cluster.x-k8s.io"
            return httpx.Response(200, json={"items": [deployment]})
        assert request.url.path == "/api/v1/namespaces/ours/pods"
        assert request.url.params["labelSelector"] == "app=controller"
        return httpx.Response(200, json={"items": list(pods)})

    return httpx.Client(transport=httpx.MockTransport(answer), base_url="https://hub.test")


def _pod(phase: str, **waiting: str) -> dict[str, Any]:
    state = {"waiting": waiting} if waiting else {"running": {}}
    return {"metadata": {"name": "one"}, "status": {"phase": phase, "containerStatuses": [{"state": state}]}}


def test_one_that_works_is_not_told() -> None:
    assert control.not_available(_client(2, "True", _pod("Running"))) == []


@pytest.mark.parametrize(
    ("generation", "available", "pods", "told"),
    [
        (3, "True", [_pod("Running")], "pod one is Running"),  # its change was not seen yet
        (2, "False", [], "it has no pod"),
        (
            2,
            "False",
            [_pod("Pending", reason="ImagePullBackOff", message="no such image")],
            "pod one is Pending, ImagePullBackOff no such image",
        ),
    ],
)
def test_what_its_pods_wait_for_is_told(
    generation: int, available: str, pods: list[dict[str, Any]], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = _client(generation, available, *pods)
    assert control.not_available(client) == [f"Deployment ours/controller: {told}"]
    monkeypatch.setattr(control, "_READY_SECONDS", 0)
    with pytest.raises(ServiceFailed, match=f"do not work:\nDeployment ours/controller: {told}"):
        control._await_providers(client)  # pyright: ignore[reportPrivateUsage]
