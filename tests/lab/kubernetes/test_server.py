"""kube-apiserver and etcd: started, used, ended."""

from __future__ import annotations

import os
import signal
import ssl
import stat
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from lab.errors import LabError, ServiceFailed
from lab.kubernetes import build, crds
from lab.kubernetes.access import Access, define, send
from tests.lab.kubernetes.support import Identities, Servers, cluster, ready_to_run
from tests.lab.waiting import processes, until

pytestmark = pytest.mark.programs


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> Identities:
    return Identities(tmp_path_factory.mktemp("identities"))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, identities: Identities) -> Generator[Access]:
    with cluster(tmp_path_factory.mktemp("cluster"), identities) as access:
        yield access


def test_it_is_the_version_that_is_pinned(api: Access) -> None:
    with api.client() as client:
        assert send(client, "GET", "/version")["gitVersion"] == f"v{build.pinned()}"


def test_metallb_s_kinds_are_served_and_checked(api: Access) -> None:
    with api.client() as client:
        kinds = {each["kind"] for each in send(client, "GET", "/apis/metallb.io/v1beta1")["resources"]}
        assert {"IPAddressPool", "BGPAdvertisement", "L2Advertisement"} <= kinds
        peer = {
            "apiVersion": "metallb.io/v1beta2",
            "kind": "BGPPeer",
            "metadata": {"name": "a"},
            "spec": {"myASN": "no number", "peerASN": 1, "peerAddress": "192.0.2.1"},
        }
        with pytest.raises(LabError, match=r"422 .*spec.myASN: Invalid value"):
            send(client, "POST", "/apis/metallb.io/v1beta2/namespaces/default/bgppeers", json=peer)


def test_defining_again_changes_nothing(api: Access) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    definitions = crds.read(crds.METALLB.ensure())
    with api.client() as client:
        before = {
            item["metadata"]["name"]: item["metadata"]["generation"] for item in send(client, "GET", path)["items"]
        }
        define(api, definitions)
        after = {
            item["metadata"]["name"]: item["metadata"]["generation"] for item in send(client, "GET", path)["items"]
        }
    assert before == after
    assert len(after) == len(definitions) == 8


def test_who_has_no_certificate_or_no_rights_is_kept_out(api: Access, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=str(api.ca))
    with httpx.Client(base_url=api.url, verify=context, trust_env=False) as nobody:
        assert nobody.get("/api/v1/namespaces", extensions={"sni_hostname": api.name}).status_code == 403
    certificate, key = Identities(tmp_path).issue("admin", "system:masters")
    stranger = replace(api, certificate=certificate, key=key)
    with stranger.client() as client, pytest.raises(LabError, match="401 Unauthorized"):
        send(client, "GET", "/api/v1/namespaces")


def test_a_namespace_goes_with_all_that_is_in_it(api: Access) -> None:
    with api.client() as client:
        send(client, "POST", "/api/v1/namespaces", json={"metadata": {"name": "going"}})
        send(client, "POST", "/api/v1/namespaces/going/configmaps", json={"metadata": {"name": "a"}})
        pool = {
            "apiVersion": "metallb.io/v1beta1",
            "kind": "IPAddressPool",
            "metadata": {"name": "a"},
            "spec": {"addresses": ["192.0.2.0/30"]},
        }
        pools = "/apis/metallb.io/v1beta1/namespaces/{}/ipaddresspools"
        send(client, "POST", pools.format("going"), json=pool)
        send(client, "POST", pools.format("default"), json=pool)
        send(client, "DELETE", "/api/v1/namespaces/going")
        until(lambda: client.get("/api/v1/namespaces/going").status_code == 404, 15)
        assert send(client, "GET", pools.format("going"))["items"] == []
        assert len(send(client, "GET", pools.format("default"))["items"]) == 1


def test_it_listens_on_its_address_only_and_keeps_its_secrets(tmp_path: Path) -> None:
    identities = Identities(tmp_path)
    servers = Servers(tmp_path, identities)
    with servers as server:
        access = server.access(*identities.issue("admin", "system:masters"))
        with access.client() as client:
            send(client, "POST", "/api/v1/namespaces/default/configmaps", json={"metadata": {"name": "kept"}})
        everywhere = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout
        for port in (server.place.port, *(url.rpartition(":")[2] for url in (servers.etcd.url, servers.etcd.peer_url))):
            assert f"127.0.0.1:{port} " in everywhere
            assert f"*:{port} " not in everywhere
            assert f"0.0.0.0:{port} " not in everywhere
        with httpx.Client(verify=False, trust_env=False) as anybody, pytest.raises(httpx.TransportError):
            anybody.get(f"{servers.etcd.url}/v2/keys")
        assert stat.S_IMODE(servers.etcd.directory.stat().st_mode) == 0o700
    assert processes(tmp_path) == []
    again = Servers(tmp_path, identities)
    with again as server, server.access(*identities.issue("admin", "system:masters")).client() as client:
        assert send(client, "GET", "/api/v1/namespaces/default/configmaps/kept")["metadata"]["name"] == "kept"
    assert processes(tmp_path) == []


def test_clients_see_the_certificate_that_the_cluster_gave_it(api: Access, tmp_path: Path) -> None:
    """The lab's own name is for the lab; anybody else is shown the cluster's certificate."""
    own = ssl.create_default_context(cafile=str(api.ca))
    with httpx.Client(base_url=api.url, verify=own, trust_env=False) as client:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            client.get("/readyz")
        assert client.get("/readyz", extensions={"sni_hostname": api.name}).text == "ok"


def test_a_node_may_not_say_what_it_is(api: Access, identities: Identities) -> None:
    certificate, key = identities.issue("system:node:one", "system:nodes")
    with replace(api, certificate=certificate, key=key).client() as node:
        labels = {"node-role.kubernetes.io/control-plane": ""}
        with pytest.raises(LabError, match=r"403 .*is not allowed to set the following labels"):
            send(node, "POST", "/api/v1/nodes", json={"metadata": {"name": "one", "labels": labels}})
        with pytest.raises(LabError, match=r"403 .*node \"one\" is not allowed to modify node \"two\""):
            send(node, "POST", "/api/v1/nodes", json={"metadata": {"name": "two"}})
        send(node, "POST", "/api/v1/nodes", json={"metadata": {"name": "one"}})


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    wrong = Servers(tmp_path, Identities(tmp_path))
    wrong.api.place.key.write_text("no key")
    with pytest.raises(ServiceFailed, match="kube-apiserver ended with status 1") as caught, wrong:
        pass
    assert "tls" in str(caught.value)
    assert processes(tmp_path) == []


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    ready_to_run()
    program = (
        "import sys, time, pathlib\n"
        "from tests.lab.kubernetes.support import Identities, Servers\n"
        "directory = pathlib.Path(sys.argv[1])\n"
        "with Servers(directory, Identities(directory)):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        assert len(processes(tmp_path)) == 3
        os.kill(parent.pid, signal.SIGKILL)
    until(lambda: not processes(tmp_path))
