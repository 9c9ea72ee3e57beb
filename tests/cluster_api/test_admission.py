"""The admission webhook, which a real kube-apiserver asks: what is wrong is refused when it is written."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.errors import LabError
from metal_ipi.cluster_api import admission
from metal_ipi.cluster_api.api import Api
from metal_ipi.cluster_api.engine.state import Entry
from metal_ipi.cluster_api.store import SecretStore
from tests.cluster_api import hub as hubs
from tests.cluster_api import objects as made
from tests.cluster_api.hub import Hub
from tests.stacks.rack import SECRET

pytestmark = [
    pytest.mark.programs,
    pytest.mark.filterwarnings("ignore:HTTPResponse.getheaders:DeprecationWarning"),  # of the official client
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Generator[Hub]:
    with hubs.hub(tmp_path_factory.mktemp("hub")) as found:
        yield found


@pytest.fixture(scope="module")
def certificates(hub: Hub) -> Generator[Path]:
    with hub.admitting() as folder:
        yield folder


def test_the_probe_of_its_pod_is_answered(hub: Hub, certificates: Path) -> None:
    place = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    (configuration,) = hub.client.get(place).json()["items"]
    url = configuration["webhooks"][0]["clientConfig"]["url"].replace(admission.PATH, admission.READY_PATH)
    trust = ssl.create_default_context(cafile=str(hub.directory / "ca.pem"))
    assert httpx.get(url, verify=trust, trust_env=False).text == "ok"


@pytest.mark.usefixtures("certificates")
def test_wrong_settings_are_refused_with_all_that_is_wrong_with_them(hub: Hub) -> None:
    tree, secrets = made.settings("wrong")
    platform = {**tree["platform"], "prefix": 77, "gateway": "nowhere"}
    with pytest.raises(LabError) as refused:
        made.facility(hub, {**tree, "platform": platform}, secrets)
    for told in ("denied the request", "metal-ipi:platform.prefix = 77", "metal-ipi:platform.gateway = nowhere"):
        assert told in str(refused.value)
    assert SECRET not in str(refused.value)
    assert hub.get(made.FACILITIES, "wrong") is None


@pytest.mark.usefixtures("certificates")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"settings": {"rehearsal": True}}, "settings.rehearsal is for previews only"),
        ({"settings": {"clusterName": "other"}}, "settings.clusterName is other, and the Cluster is right"),
        ({"failureDomains": [{"name": "a", "servers": ["worker-9"]}]}, "names server worker-9 in a"),
        ({"settings": {"openshiftVersion": "four"}}, "metal-ipi:openshiftVersion = four"),
    ],
    ids=["rehearsal", "name", "domain", "version"],
)
def test_a_wrong_change_is_refused_and_nothing_is_changed(hub: Hub, change: dict[str, Any], told: str) -> None:
    def ordered() -> dict[str, Any]:
        spec = (hub.get(made.FACILITIES, "right") or {})["spec"]
        return {key: value for key, value in spec.items() if key != "controlPlaneEndpoint"}  # the providers set it

    _right(hub)
    before = ordered()
    with pytest.raises(LabError, match=told):
        hub.patch(made.FACILITIES, "right", {"spec": change})
    assert ordered() == before


@pytest.mark.usefixtures("certificates")
def test_a_server_that_is_in_use_stays_listed(hub: Hub) -> None:
    facility = _right(hub)
    urn = "urn:pulumi:right::metal-ipi::metal-ipi:index:Server::right-worker-4-server"
    store = SecretStore(Api(str(hub.admin)), facility, "right")
    asyncio.run(store.save(urn, Entry(urn=urn, id="a", inputs={}, outputs={})))
    servers = [each for each in facility["spec"]["settings"]["platform"]["servers"] if each["name"] != "worker-4"]
    with pytest.raises(LabError, match=r"does not list .*worker-4 any more, but the install state has it"):
        hub.patch(made.FACILITIES, "right", {"spec": {"settings": {"platform": {"servers": servers}}}})
    asyncio.run(store.save(urn, None))
    hub.patch(made.FACILITIES, "right", {"spec": {"settings": {"platform": {"servers": servers}}}})


@pytest.mark.usefixtures("certificates")
def test_without_its_secret_what_is_not_secret_is_checked(hub: Hub) -> None:
    tree, _ = made.settings("early")
    answer = _written(hub, tree)
    assert "there is no Secret facility/early-settings" in answer.headers["Warning"]
    assert answer.status_code == 201
    wrong = {**tree, "clusterName": "wrong", "platform": {**tree["platform"], "prefix": 77}}
    assert "metal-ipi:platform.prefix = 77" in _written(hub, wrong).text


def _written(hub: Hub, tree: dict[str, Any]) -> Any:
    name = tree["clusterName"]
    body = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "MetalIpiCluster",
        "metadata": {"name": name},
        "spec": {"settings": tree, "secretsRef": {"name": f"{name}-settings"}},
    }
    return hub.client.post(hub.path(made.FACILITIES), json=body)


@pytest.mark.usefixtures("certificates")
def test_what_depends_on_another_object_is_warned_of(hub: Hub) -> None:
    _right(hub)
    control_plane = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
        "kind": "OpenShiftControlPlane",
        "metadata": {"name": "right", "labels": {"cluster.x-k8s.io/cluster-name": "right"}},
        "spec": {
            "replicas": 3,
            "version": "v4.21.9",
            "machineTemplate": {
                "spec": {"infrastructureRef": made.reference("infrastructure", "MetalIpiMachineTemplate", "right")}
            },
        },
    }
    answer = hub.client.post(hub.path(made.CONTROL_PLANES), json=control_plane)
    assert answer.status_code == 201, answer.text
    assert "spec.version is v4.21.9" in answer.headers["Warning"]


def test_a_certificate_that_is_renewed_is_used(hub: Hub, certificates: Path) -> None:
    (configuration,) = hub.client.get("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations").json()[
        "items"
    ]
    port = int(configuration["webhooks"][0]["clientConfig"]["url"].split(":")[2].split("/")[0])
    before = _served(port)
    kept = [(certificates / name).read_bytes() for name in ("tls.crt", "tls.key")]
    hub.certify(certificates)
    hub.until(lambda: _served(port) != before, "the new certificate is served", 30)
    for name, content in zip(("tls.crt", "tls.key"), kept, strict=True):  # the one that the API server trusts
        (certificates / name).write_bytes(content)
        os.utime(certificates / name)
    hub.until(lambda: _served(port) == before, "the first one is served again", 30)


def _served(port: int) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 5) as plain, context.wrap_socket(plain) as secured:
        return (secured.getpeercert(binary_form=True) or b"").hex()


def _right(hub: Hub) -> dict[str, Any]:
    """A cluster whose objects are right."""
    if (found := hub.get(made.FACILITIES, "right")) is None:
        tree, secrets = made.settings("right")
        made.facility(hub, tree, secrets)
        found = hub.get(made.FACILITIES, "right")
    assert found is not None
    return found
