"""The node services: a cluster forms, admits a worker, and outlives its bootstrap machine."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from .support import DOMAIN, Facility, wait_until, write_config

pytestmark = pytest.mark.programs

BOOTSTRAP_STATUS = "/api/v1/namespaces/kube-system/configmaps/bootstrap"
CONFIG_MAPS = BOOTSTRAP_STATUS.removesuffix("/bootstrap")
NODES = "/api/v1/nodes"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
VERSION = "/apis/config.openshift.io/v1/clusterversions/version"


def subject(csr: dict[str, Any]) -> str:
    """Whose certificate a request asks for, read from the request itself."""
    request = x509.load_pem_x509_csr(base64.b64decode(csr["spec"]["request"]))
    (name,) = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(name.value)


def conditions(item: dict[str, Any]) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in item["status"].get("conditions", [])}


def start_bootstrap(site: Facility, **extra: str) -> None:
    write_config(site.assets)
    result = site.install("create", "ignition-configs", **extra)
    assert result.returncode == 0, result.stderr
    site.start("bootstrap", 1, "bootstrap", json.loads((site.assets / "bootstrap.ign").read_text()))
    wait_until(
        "the bootstrap machine serves",
        lambda: all(f"serving on {site.address(1)}:{port}" in site.log("bootstrap") for port in (6443, 22623)),
    )


def machine_config(site: Facility, index: int, pool: str) -> dict[str, Any]:
    answer = site.get(index, 22623, f"/config/{pool}", site.machine_trust())
    assert answer.status_code == 200
    config = answer.json()
    assert config["ignition"]["version"] == "3.2.0"
    return config


def reader(site: Facility) -> Callable[[int, str], dict[str, Any]]:
    trust = site.api_trust(admin=True)

    def read(index: int, path: str) -> dict[str, Any]:
        return site.get(index, 6443, path, trust).json()

    return read


def approve(site: Facility, index: int, csr: dict[str, Any]) -> None:
    csr["status"]["conditions"] = [
        {"type": "Approved", "status": "True", "reason": "Test", "message": "a known machine"}
    ]
    path = f"{CSRS}/{csr['metadata']['name']}/approval"
    answer = site.request("PUT", index, path, site.api_trust(admin=True), body=csr)
    assert answer.status_code == 200, answer.text


def test_cluster_forms_and_outlives_its_bootstrap_machine(any_site: Facility) -> None:
    site = any_site
    start_bootstrap(site)
    read = reader(site)
    assert read(1, BOOTSTRAP_STATUS)["code"] == 404
    assert site.get(1, 22623, "/healthz", site.machine_trust()).status_code == 200
    assert site.get(1, 22623, "/config/other", site.machine_trust()).status_code == 404
    wait_until("a ClusterVersion", lambda: {"spec", "status"} <= set(read(1, VERSION)))
    assert conditions(read(1, VERSION))["Available"] == "False"
    kept = {"metadata": {"name": "kept"}, "data": {"by": "the bootstrap machine"}}
    assert site.request("POST", 1, CONFIG_MAPS, site.api_trust(admin=True), body=kept).status_code == 201

    site.start("worker-0", 9, "worker", machine_config(site, 1, "worker"))
    config = machine_config(site, 1, "master")
    for index in (2, 3):
        site.start(f"control-plane-{index - 2}", index, "control-plane", config)
    wait_until("two control plane nodes", lambda: len(read(1, NODES)["items"]) == 2)
    wait_until("a status", lambda: read(1, BOOTSTRAP_STATUS).get("data") == {"status": "progressing"})
    formed = site.root / "bootstrap/opt/openshift/cb-bootstrap.done"
    assert not formed.exists()

    site.start("control-plane-2", 4, "control-plane", machine_config(site, 2, "master"))
    wait_until("bootstrap is complete", lambda: read(1, BOOTSTRAP_STATUS)["data"] == {"status": "complete"}, 30)
    assert formed.exists()
    site.stop("bootstrap")
    for index in (2, 3, 4):
        assert read(index, BOOTSTRAP_STATUS)["data"] == {"status": "complete"}
        assert read(index, f"{CONFIG_MAPS}/kept")["data"] == kept["data"]

    # The worker is nobody yet: only somebody who knows the machine lets it in.
    (pending,) = [csr for csr in read(3, CSRS)["items"] if not conditions(csr)]
    assert subject(pending) == f"system:node:worker-0.{DOMAIN}"
    assert pending["spec"]["username"] == "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
    approve(site, 3, pending)
    wait_until(
        "the worker is a node, on every API server", lambda: all(len(read(i, NODES)["items"]) == 4 for i in (2, 3, 4))
    )
    wait_until("a role", lambda: all(_roles(node) for node in read(2, NODES)["items"]))
    nodes = {node["metadata"]["name"]: node for node in read(2, NODES)["items"]}
    assert set(nodes) == {
        f"{name}.{DOMAIN}" for name in ("control-plane-0", "control-plane-1", "control-plane-2", "worker-0")
    }
    assert {conditions(node)["Ready"] for node in nodes.values()} == {"True"}
    worker = nodes[f"worker-0.{DOMAIN}"]
    assert {"type": "InternalIP", "address": site.address(9)} in worker["status"]["addresses"]
    assert _roles(worker) == {"worker"}
    assert _roles(nodes[f"control-plane-0.{DOMAIN}"]) == {"control-plane", "master"}

    settled = {"Available": "True", "Failing": "False", "Progressing": "False"}
    wait_until("the cluster is there", lambda: conditions(read(4, VERSION)) == settled)

    # A node's service that starts anew is the node it was, and an API server that does learns what it missed.
    site.stop("worker-0")
    site.start("worker-0", 9, "worker", machine_config(site, 4, "worker"))
    site.stop("control-plane-1")
    site.start("control-plane-1", 3, "control-plane", config)
    wait_until("the worker is back", lambda: site.log("worker-0").count("is registered") == 2)
    assert site.log("worker-0").count("asked for the node's certificate") == 1
    trust = site.api_trust(admin=True)
    wait_until("the API server answers", lambda: ":6443" in site.log("control-plane-1").rpartition(" of cluster ")[2])
    wait_until(
        "the API server knows",
        lambda: site.get(3, 6443, BOOTSTRAP_STATUS, trust).json().get("data") == {"status": "complete"},
    )


def _roles(node: dict[str, Any]) -> set[str]:
    prefix = "node-role.kubernetes.io/"
    return {label.removeprefix(prefix) for label in node["metadata"]["labels"] if label.startswith(prefix)}


def test_the_api_knows_who_asks(any_site: Facility) -> None:
    site = any_site
    start_bootstrap(site)
    anonymous = site.api_trust(admin=False)
    assert site.get(1, 6443, "/readyz", anonymous).text == "ok"
    refused = site.get(1, 6443, NODES, anonymous)
    assert refused.status_code == 403
    assert refused.json()["reason"] == "Forbidden"
    missing = site.get(1, 6443, f"{NODES}/nobody", site.api_trust(admin=True))
    assert (missing.status_code, missing.json()["kind"], missing.json()["reason"]) == (404, "Status", "NotFound")


@pytest.mark.parametrize("seconds", [1])
def test_an_old_bootstrap_config_makes_no_cluster(any_site: Facility, seconds: int) -> None:
    site = any_site
    start_bootstrap(site, LAB_OPENSHIFT_CERTIFICATE_VALIDITY=f"{seconds}s")
    time.sleep(seconds + 0.1)
    with pytest.raises(httpx.ConnectError, match="certificate has expired"):
        site.get(1, 6443, "/version", site.api_trust(admin=True))
