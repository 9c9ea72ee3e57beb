"""kube-vip on a machine: what is rendered, and what its script does on a node with a network of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import trustme

from metal_ipi.components.endpoints import bgp_routes
from metal_ipi.components.endpoints.kube_vip import MANIFEST, UNIT, KubeVip, files, unit
from tests.components.node import LOCAL_KUBECONFIG, METADATA_URL, Node, eventually
from tests.components.test_bgp_routes import METADATA, NEIGHBOUR, tell
from tests.golden import check

pytestmark = pytest.mark.programs

VIP = KubeVip(
    address="192.0.2.10",
    image="ghcr.io/kube-vip/kube-vip:v0.9.2",
    hold_seconds=3,
    keepalive_seconds=1,
    domain="lab.facility.test",
)
ARP = replace(VIP, mode="arp")
API, MACHINE_CONFIG, ROUTER = 6443, 22623, 1936


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    try:
        node.give([*files(VIP), *bgp_routes.files(METADATA_URL)])
        node.credentials()
        node.boot()
        yield node
    finally:
        node.power_cut()


@pytest.fixture
def speaker(node: Node) -> Node:
    """A node whose BGP sessions are known."""
    tell(node, METADATA)
    node.start(bgp_routes.unit())
    return node


@pytest.fixture
def answerer(node: Node) -> Node:
    """A node that is to answer for the address itself."""
    node.give(files(ARP))
    return node


def pod(node: Node) -> dict[str, Any]:
    return json.loads(node.manifest.read_text())


def container(node: Node) -> dict[str, Any]:
    (found,) = pod(node)["spec"]["containers"]
    return found


def environment(node: Node) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container(node)["env"]}


def announced(node: Node) -> None:
    eventually(node.manifest.exists)


def announces(node: Node, **arp: Any) -> subprocess.Popen[str]:
    """Let it announce the address, with an API server that answers; `arp`: with ARP, and these settings."""
    if arp:
        node.give(files(replace(ARP, **arp)))
    node.serve(API)
    process = node.start(unit())
    announced(node)
    return process


def withdrawn(node: Node) -> None:
    eventually(lambda: not node.manifest.exists())


def asked_again(node: Node, times: int = 4) -> None:
    """The API server has been asked some more times."""
    seen = len(node.asked(API))
    eventually(lambda: len(node.asked(API)) > seen + times)


def looked_again(node: Node, times: int = 3) -> None:
    """The script has paused some more times, a second each."""
    seen = node.log("sleep").count("1")
    eventually(lambda: node.log("sleep").count("1") > seen + times)


def test_what_a_machine_is_given() -> None:
    text = "".join(f"--- {file.path} {file.mode:o}\n{file.text}\n" for file in files(VIP) if "/bin/" not in file.path)
    check("kube-vip-files.txt", f"{text}--- {UNIT}\n{unit().text}")


def test_the_address_is_announced_while_the_api_server_answers(speaker: Node) -> None:
    speaker.start(unit())
    speaker.serve(API, 500)
    asked_again(speaker)
    assert not speaker.manifest.exists()
    speaker.serve(API)
    announced(speaker)
    assert set(speaker.asked(API)) == {"/readyz"}
    speaker.serve(API, 500)
    withdrawn(speaker)
    assert "the API server does not answer: withdrawing 192.0.2.10 from here" in speaker.said(UNIT)
    speaker.serve(API)
    announced(speaker)


def test_an_api_server_that_is_unwell_for_a_moment_costs_nothing(speaker: Node) -> None:
    """Three failures, one after the other, count; fewer do not."""
    speaker.start(unit())
    speaker.serve(API, 200, 500, 500)
    announced(speaker)
    asked_again(speaker, 12)
    assert not any("withdrawing" in line for line in speaker.said(UNIT))


def test_a_machine_where_nobody_listens_any_more_withdraws_at_once(speaker: Node) -> None:
    announces(speaker)
    speaker.end(API)
    withdrawn(speaker)
    assert speaker.said(UNIT)[-1] == "nobody listens any more: withdrawing 192.0.2.10 from here"


@pytest.mark.parametrize("reachable", [True, False])
def test_the_machine_config_server_is_not_asked(speaker: Node, reachable: bool) -> None:
    """OVN-Kubernetes lets nobody on a node reach it."""
    speaker.serve(MACHINE_CONFIG, 500)
    if not reachable:
        speaker.reject_machine_config()
        refused = speaker.run("curl", "-ksS", "--max-time", "5", "https://127.0.0.1:22623/healthz", check=False)
        assert "Failed to connect" in refused or "Couldn't connect" in refused
    announces(speaker)
    asked_again(speaker, 8)
    assert speaker.manifest.exists() and not speaker.asked(MACHINE_CONFIG)


def test_the_api_server_has_to_prove_who_it_is(speaker: Node) -> None:
    other = trustme.CA()
    speaker.serve(API, ca=other)
    speaker.start(unit())
    looked_again(speaker)
    assert not speaker.manifest.exists() and not speaker.asked(API)
    speaker.credentials(ca=other)
    announced(speaker)  # OpenShift has renewed the authority


def test_before_the_api_servers_credentials_are_here_nothing_is_announced(speaker: Node) -> None:
    (speaker.root / LOCAL_KUBECONFIG).unlink()
    speaker.serve(API)
    speaker.start(unit())
    eventually(lambda: any("none of /etc/kubernetes/static-pod-resources/" in line for line in speaker.said(UNIT)))
    assert not speaker.manifest.exists() and not speaker.asked(API)
    speaker.credentials("opt/openshift/auth/kubeconfig")
    announced(speaker)


def test_the_image_is_fetched_before_it_is_needed_and_nothing_waits_for_it(speaker: Node) -> None:
    keys = speaker.write("var/lib/kubelet/config.json", "{}")
    speaker.start(unit())
    pulled = f"pull --quiet --authfile {keys} {VIP.image}"
    eventually(lambda: speaker.log("podman") == [f"image exists {VIP.image}", pulled])
    eventually(lambda: any("is not here yet: the kubelet will try again" in line for line in speaker.said(UNIT)))
    speaker.serve(API)
    announced(speaker)


def test_the_pod_runs_as_the_platforms_own_do(speaker: Node) -> None:
    (speaker.state / "image").touch()
    announces(speaker)
    assert speaker.log("podman") == [f"image exists {VIP.image}"], "it is there, and not asked for"
    told = pod(speaker)
    told["metadata"]["annotations"].pop("metal-ipi/made-from")
    told["spec"]["containers"][0].pop("env")
    check("kube-vip-pod.json", json.dumps(told, indent=2) + "\n")
    assert speaker.manifest == speaker.root / MANIFEST.lstrip("/")
    assert speaker.manifest.stat().st_mode & 0o077 == 0, "it holds the password"


def test_the_pod_speaks_to_the_machines_own_neighbours(speaker: Node) -> None:
    announces(speaker)
    assert environment(speaker) == {
        "address": "192.0.2.10",
        "port": "6443",
        "vip_subnet": "32",
        "cp_enable": "true",
        "cp_namespace": "kube-system",
        "svc_enable": "false",
        "vip_arp": "false",
        "vip_interface": "lo",
        "vip_leaderelection": "false",
        "bgp_enable": "true",
        "bgp_routerid": "203.0.113.5",
        "bgp_sourceip": "203.0.113.5",
        "bgp_as": "65000",
        "bgp_peers": "169.254.255.1:65530:swordfish:true,169.254.255.2:65530:swordfish:true",
        "bgp_hold_time": "3",
        "bgp_keepalive_interval": "1",
    }


def test_a_machine_waits_for_its_session(node: Node) -> None:
    tell(node, {**METADATA, "bgp_neighbors": []})
    node.start(bgp_routes.unit())
    node.serve(API)
    node.start(unit())
    asked_again(node)
    assert not node.manifest.exists()
    assert "cannot announce 192.0.2.10: metal-ipi-bgp-routes.service has not laid the routes" in node.said(UNIT)[-1]
    tell(node, METADATA)
    announced(node)


@pytest.mark.parametrize("password", [None, "a:b"])
def test_a_session_without_password_has_none_and_one_that_cannot_be_passed_on_is_told(
    node: Node, password: str | None
) -> None:
    given = {**NEIGHBOUR, "md5_enabled": password is not None, "md5_password": password}
    tell(node, {**METADATA, "bgp_neighbors": [given]})
    node.start(bgp_routes.unit())
    if password is None:
        announces(node)
        assert environment(node)["bgp_peers"] == "169.254.255.1:65530::true,169.254.255.2:65530::true"
        return
    node.serve(API)
    node.start(unit())
    eventually(lambda: any("holds one of ':,/'" in line for line in node.said(UNIT)))
    assert not node.manifest.exists() and password not in "".join(node.said(UNIT))


def test_sessions_that_change_make_the_pod_anew(speaker: Node) -> None:
    announces(speaker)
    tell(speaker, {**METADATA, "bgp_neighbors": [{**NEIGHBOUR, "md5_password": "trout"}]})
    eventually(lambda: ":trout:" in environment(speaker)["bgp_peers"], 60)
    before = speaker.manifest.read_bytes()
    speaker.to_bridge()
    eventually(lambda: speaker.manifest.read_bytes() != before)
    assert not any("withdrawing" in line for line in speaker.said(UNIT))
    assert "kube-vip is made anew" in speaker.said(UNIT)[-1]


def test_a_manifest_of_before_is_gone_before_the_kubelet_starts(speaker: Node) -> None:
    speaker.write(MANIFEST, "{}")
    speaker.start(unit())
    assert not speaker.manifest.exists()
    assert "Before=kubelet.service\n" in unit().text


def test_what_is_said_of_it(speaker: Node) -> None:
    script = f"{speaker.root}/usr/local/bin/metal-ipi-kube-vip"
    announces(speaker)
    speaker.ip("address add 192.0.2.10/32 dev lo")  # as kube-vip does
    lines = speaker.run("bash", script, "status").splitlines()
    assert lines[0] == "kube-vip runs" and " 192.0.2.10/32 " in lines[1] and "local_address" in lines[2]
    speaker.end(API)
    withdrawn(speaker)
    eventually(lambda: "lo 192.0.2.10/32" not in speaker.addresses())
    assert "local_address" in speaker.run("bash", script, "status").splitlines()[0]


@pytest.mark.parametrize("ends", [True, False], ids=["kube-vip ends", "kube-vip stays"])
def test_asked_to_let_go_it_waits_for_kube_vip_but_not_for_ever(speaker: Node, ends: bool) -> None:
    """The address is there for whoever still asks at it, as long as routers send them here."""
    session = speaker.open("python3", "-c", _SESSION)
    assert session.stdout is not None and session.stdout.readline() == "established\n"
    process = announces(speaker)
    speaker.ip("address add 192.0.2.10/32 dev lo")
    if ends:
        process.terminate()
        withdrawn(speaker)
        looked_again(speaker, 1)
        assert "lo 192.0.2.10/32" in speaker.addresses() and process.poll() is None
        session.kill()
    else:
        said = speaker.run("bash", f"{speaker.root}/usr/local/bin/metal-ipi-kube-vip", "stop", check=False)
        assert said == "this machine has not let go of 192.0.2.10: its kubelet does not end kube-vip\n"
    assert process.wait(10) == 0
    assert "lo 192.0.2.10/32" not in speaker.addresses()


def test_a_bootstrap_machine_whose_api_server_has_ended_has_let_go(speaker: Node) -> None:
    """bootkube.sh takes the bootstrap control plane down, and the machine runs on until `up` removes it."""
    (speaker.root / LOCAL_KUBECONFIG).unlink()
    speaker.credentials("opt/openshift/auth/kubeconfig")
    process = announces(speaker)
    speaker.ip("address add 192.0.2.10/32 dev lo")
    speaker.end(API)
    # What runs on it asks the API at its address from now on: not here.
    eventually(lambda: "lo 192.0.2.10/32" not in speaker.addresses())
    speaker.run("bash", f"{speaker.root}/usr/local/bin/metal-ipi-kube-vip", "stop")
    assert process.wait(10) == 0


def test_with_arp_the_lease_is_asked_for_with_the_machines_own_credentials(answerer: Node) -> None:
    announces(answerer)
    told = environment(answerer)
    assert told["vip_arp"] == told["vip_leaderelection"] == "true" and told["bgp_enable"] == "false"
    assert (told["vip_interface"], told["address"], told["vip_leasename"]) == ("eth0", "192.0.2.10", "plndr-cp-lock")
    assert told["kubernetes_addr"] == "https://localhost:6443"
    assert pod(answerer)["spec"]["volumes"][0]["hostPath"]["path"] == f"/{LOCAL_KUBECONFIG}"


def test_with_arp_the_address_is_never_taken_for_the_machines_own(answerer: Node) -> None:
    announces(answerer)
    for _ in range(2):
        answerer.ip("address replace 192.0.2.10/32 dev eth0")  # as kube-vip does
        eventually(lambda: answerer.addresses()["eth0 192.0.2.10/32"] == "deprecated")
    assert answerer.addresses()["eth0 198.51.100.5/24"] == ""
    answerer.ip("address add 192.0.2.10/24 dev eth0")  # somebody else's
    answerer.end(API)
    eventually(lambda: "eth0 192.0.2.10/32" not in answerer.addresses(), 10)
    assert "eth0 192.0.2.10/24" in answerer.addresses()


def test_what_a_killed_kube_vip_leaves_behind_is_removed(answerer: Node) -> None:
    answerer.ip("address add 192.0.2.10/32 dev eth0")
    answerer.start(unit())
    eventually(lambda: "eth0 192.0.2.10/32" not in answerer.addresses())
    answerer.ip("address add 192.0.2.10/32 dev eth0")
    eventually(lambda: "eth0 192.0.2.10/32" not in answerer.addresses())


@pytest.mark.parametrize("interface", [None, "eth0"], ids=["default-route", "named"])
def test_with_arp_the_address_moves_to_the_bridge_with_its_interface(answerer: Node, interface: str | None) -> None:
    announces(answerer, interface=interface)
    assert environment(answerer)["vip_interface"] == "eth0"
    answerer.ip("address add 192.0.2.10/32 dev eth0")
    answerer.to_bridge()
    answerer.ip("address replace 192.0.2.10/32 dev eth0")  # kube-vip, until it is ended
    eventually(lambda: environment(answerer)["vip_interface"] == "br-ex")
    eventually(lambda: "eth0 192.0.2.10/32" not in answerer.addresses())
    answerer.ip("address add 192.0.2.10/32 dev br-ex")
    asked_again(answerer)
    assert "br-ex 192.0.2.10/32" in answerer.addresses()
    assert not any("withdrawing" in line for line in answerer.said(UNIT))


@pytest.mark.parametrize(
    ("named", "port", "found"),
    [("bond0", "bond0", "br-ex"), ("bond0.10", "bond0.10", "br-ex"), ("bond0.10", "eth0", "bond0.10")],
    ids=["bond", "VLAN", "VLAN beside the bridge"],
)
def test_with_arp_a_port_of_the_bridge_counts_as_the_bridge(answerer: Node, named: str, port: str, found: str) -> None:
    answerer.interface(named)
    answerer.to_bridge(port)
    announces(answerer, interface=named)
    assert environment(answerer)["vip_interface"] == found


def test_with_arp_a_bridge_of_the_kernels_own_counts_too(answerer: Node) -> None:
    for command in ("link add br0 type bridge", "link set br0 up", "link set eth0 master br0"):
        answerer.ip(command)
    announces(answerer, interface="eth0")
    assert environment(answerer)["vip_interface"] == "br0"


def test_with_arp_an_interface_that_is_made_anew_gets_a_new_pod(answerer: Node) -> None:
    """kube-vip keeps the number of its interface: it would go on with one that is no more."""
    answerer.give(files(replace(ARP, interface="bond0")))
    answerer.interface("bond0")
    announces(answerer)
    before = answerer.manifest.read_bytes()
    answerer.ip("link delete bond0")
    asked_again(answerer)
    assert answerer.manifest.read_bytes() == before
    answerer.interface("bond0")
    eventually(lambda: answerer.manifest.read_bytes() != before)


def test_with_arp_nothing_changes_while_open_vswitch_does_not_answer(answerer: Node) -> None:
    answerer.give(files(replace(ARP, interface="eth0")))
    answerer.to_bridge()
    announces(answerer)
    before = answerer.manifest.read_bytes()
    (answerer.state / "bridge-of-eth0").unlink()
    asked_again(answerer)
    assert answerer.manifest.read_bytes() == before
    assert answerer.said(UNIT)[-1] == "cannot announce 192.0.2.10: Open vSwitch does not say which bridge has eth0"


def test_with_arp_a_missing_interface_is_told(answerer: Node) -> None:
    answerer.give(files(replace(ARP, interface="bond0")))
    answerer.serve(API)
    answerer.start(unit())
    said = "cannot announce 192.0.2.10: interface bond0 is not there, or not up"
    eventually(lambda: said in answerer.said(UNIT))
    answerer.interface("bond0")
    announced(answerer)


@pytest.mark.parametrize("mode", ["bgp", "arp"])
def test_a_power_cut_of_the_whole_control_plane_comes_back_by_itself(speaker: Node, mode: str) -> None:
    """In the order of a real boot, with nothing there but the node: no platform, no registry, no address of the API."""
    node = speaker
    node.give(files(ARP if mode == "arp" else VIP))
    (node.state / "image").touch()
    announces(node)
    node.power_cut()
    assert node.manifest.exists(), "it is on the disk"

    node.boot()
    node.reject_machine_config()
    node.start(unit())
    # The kubelet starts from here on: it must not find kube-vip before there is an API server.
    assert not node.manifest.exists()
    node.start(bgp_routes.unit())
    node.to_bridge()
    node.serve(API, 500)  # it waits for etcd, and for a minute for the aggregated servers
    asked_again(node)
    assert not node.manifest.exists()
    node.serve(API)
    announced(node)
    device = {"bgp": "lo", "arp": "br-ex"}[mode]
    assert environment(node)["vip_interface"] == device
    assert container(node)["imagePullPolicy"] == "IfNotPresent"
    assert f"pull --quiet {VIP.image}" not in node.log("podman")
    if mode == "bgp":
        eventually(lambda: "dev br-ex src 203.0.113.5" in node.ip("-4 route show 169.254.255.1/32"))
    else:
        assert pod(node)["spec"]["volumes"][0]["hostPath"]["path"] == f"/{LOCAL_KUBECONFIG}"


_SESSION = """
import socket, time

server = socket.create_server(("127.0.0.1", 179))
client = socket.create_connection(("127.0.0.1", 179))
print("established", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("mode", ["bgp", "arp"])
def test_the_address_of_ingress_is_announced_while_a_router_is_ready(node: Node, mode: Literal["bgp", "arp"]) -> None:
    """With an API server or without one, and beside its address."""
    node.give(files(replace(VIP, address="192.0.2.11", serves="ingress", mode=mode)))
    tell(node, METADATA)
    node.start(bgp_routes.unit())
    node.start(unit("ingress"))
    manifest = node.manifest.with_name("metal-ipi-ingress-vip.json")
    node.serve(ROUTER, 500)
    eventually(lambda: len(node.asked(ROUTER)) > 3)
    assert not manifest.exists()
    node.serve(ROUTER)
    eventually(manifest.exists)
    assert set(node.asked(ROUTER)) == {"/healthz/ready"} and not node.manifest.exists()
    told = json.loads(manifest.read_text())
    variables = {item["name"]: item["value"] for item in told["spec"]["containers"][0]["env"]}
    assert (told["metadata"]["name"], variables["address"], variables["port"]) == ("ingress-vip", "192.0.2.11", "443")
    assert variables.get("vip_leasename") == ("plndr-ingress-lock" if mode == "arp" else None)
    path = told["spec"]["volumes"][0]["hostPath"]["path"]
    assert path == (f"/{LOCAL_KUBECONFIG}" if mode == "arp" else "/etc/metal-ipi/ingress-vip.kubeconfig")
    assert (node.root / path[1:]).exists()
    node.end(ROUTER)
    eventually(lambda: not manifest.exists())
    said = node.said("metal-ipi-ingress-vip.service")
    assert "nobody listens any more: withdrawing 192.0.2.11 from here" in said
    assert "a router is ready: announcing 192.0.2.11 from here" in said


def test_the_script_of_ingress_is_that_of_the_api_with_other_words() -> None:
    api, ingress = (
        {file.path: file.text for file in files(replace(VIP, serves=serves))} for serves in ("api", "ingress")
    )
    (text,) = (text for path, text in ingress.items() if "/bin/" in path)
    assert not api.keys() & ingress.keys(), "a machine may have both"
    for word in ("metal-ipi-kube-vip", "kube-vip.env", "$state/kube-vip", "API_NAME", "plndr-cp-lock", "6443"):
        assert word not in text.replace("https://localhost:6443", ""), word
