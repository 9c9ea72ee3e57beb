"""MetalLB's manifests against golden files, and the component that applies them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pulumi
import pytest
import yaml

from metal_ipi.components.endpoints import manifests
from metal_ipi.components.endpoints.manifests import Manifest, ManifestError, Operator
from metal_ipi.components.endpoints.metallb import (
    BgpArgs,
    BgpNodeArgs,
    L2Args,
    MetalLb,
    MetalLbArgs,
    PoolArgs,
    bgp_peers,
)
from metal_ipi.components.machines.contract import BgpNeighbour
from tests import golden
from tests.mocks import Recorder, is_secret, plain, run

PASSWORD = "hunter2-bgp"
POOLS = {"public": ["203.0.113.240/28"], "named": ["192.0.2.200-192.0.2.209", "2001:db8::/124"]}
PEERS = ("169.254.255.1", "169.254.255.2")


def neighbour(ip: str = "203.0.113.1", password: str | None = None, peers: tuple[str, ...] = PEERS) -> BgpNeighbour:
    return BgpNeighbour(
        customer_as=65000, customer_ip=ip, peer_as=65530, peer_ips=peers, md5_password=password, multihop=True
    )


def as_yaml(documents: Sequence[Manifest]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)


def address_pools() -> list[Manifest]:
    return [manifests.address_pool(name, each, auto_assign=name == "public") for name, each in POOLS.items()]


def routed(password: str | None = None, hold_time: int | None = None) -> list[Manifest]:
    nodes = {"lab-worker-0.lab.facility.test": "203.0.113.1", "lab-worker-1.lab.facility.test": "203.0.113.3"}
    return [
        *address_pools(),
        *([manifests.password_secret(password)] if password else []),
        *(
            peer
            for node, ip in nodes.items()
            for peer in manifests.bgp_peers(
                node=node, neighbours=[neighbour(ip, password)], password=password, hold_time=hold_time
            )
        ),
        manifests.bgp_advertisement("public", 28),
        manifests.bgp_advertisement("named"),
    ]


def near(interfaces: Sequence[str] = ()) -> list[Manifest]:
    return [
        *address_pools(),
        manifests.l2_advertisement(list(POOLS), interfaces),
    ]


RENDERED: dict[str, list[Manifest]] = {
    "bgp": routed(),
    "bgp-with-password": routed(PASSWORD, hold_time=3),
    "l2": near(),
    "l2-on-interfaces": near(["bond0", "bond0.100"]),
    "operator": [manifests.namespace(), *manifests.operator(Operator())],
}


@pytest.mark.parametrize("name", RENDERED)
def test_manifests(name: str) -> None:
    golden.check(f"metallb-{name}.yaml", as_yaml(RENDERED[name]))


def test_okd_has_another_catalogue() -> None:
    subscription = manifests.operator(Operator(catalog="community-operators", channel="beta"))[1]
    assert subscription["spec"]["source"] == "community-operators"
    assert subscription["spec"]["channel"] == "beta"


def test_a_node_with_neighbours_of_both_kinds_has_a_peer_for_each_address() -> None:
    v6 = neighbour("2001:db8::3", peers=("2001:db8::a", "2001:db8::b"))
    peers = manifests.bgp_peers(node="a", neighbours=[neighbour(), v6], password=None, hold_time=None)
    assert [(peer["metadata"]["name"], peer["spec"]["peerAddress"]) for peer in peers] == [
        ("a-peer-0", "169.254.255.1"),
        ("a-peer-1", "169.254.255.2"),
        ("a-peer-2", "2001:db8::a"),
        ("a-peer-3", "2001:db8::b"),
    ]
    assert {peer["spec"]["sourceAddress"] for peer in peers[2:]} == {"2001:db8::3"}


def fails_to_render(**changes: Any) -> str:
    arguments: dict[str, Any] = {"node": "a", "neighbours": [neighbour()], "password": None, "hold_time": None}
    with pytest.raises(ManifestError) as caught:
        manifests.bgp_peers(**{**arguments, **changes})
    return str(caught.value)


def test_what_cannot_be_right() -> None:
    assert "has a password, and the sessions are to have none" in fails_to_render(
        neighbours=[neighbour(password=PASSWORD)]
    )
    assert "has another password" in fails_to_render(neighbours=[neighbour(password=PASSWORD)], password="other")
    assert "has no password, and the sessions are to have that of" in fails_to_render(password=PASSWORD)
    assert PASSWORD not in fails_to_render(neighbours=[neighbour(password=PASSWORD)], password="other")
    assert "cannot reach peer 2001:db8::a" in fails_to_render(neighbours=[neighbour(peers=("2001:db8::a",))])
    assert "use a DNS name in lower case" in fails_to_render(node="Worker_0")
    with pytest.raises(ManifestError, match="'empty' has no addresses"):
        manifests.address_pool("empty", ())
    assert PASSWORD not in repr(neighbour(password=PASSWORD))


CUSTOM = {
    "kubernetes:metallb.io/v1beta1:IPAddressPool",
    "kubernetes:metallb.io/v1beta2:BGPPeer",
    "kubernetes:metallb.io/v1beta1:BGPAdvertisement",
    "kubernetes:metallb.io/v1beta1:L2Advertisement",
    "kubernetes:metallb.io/v1beta1:MetalLB",
    "kubernetes:operators.coreos.com/v1:OperatorGroup",
    "kubernetes:operators.coreos.com/v1alpha1:Subscription",
    "kubernetes:core/v1:Namespace",
    "kubernetes:core/v1:Secret",
}


def declared(args: Callable[[], MetalLbArgs]) -> tuple[Recorder, dict[str, Any]]:
    recorder = Recorder({**dict.fromkeys(CUSTOM, lambda _: {}), "metal-ipi:endpoints:MetalLb": lambda _: {}})

    def program() -> None:
        pulumi.export("pools", MetalLb("lb", args()).pools)

    return recorder, run(program, recorder, {})


def pools() -> tuple[PoolArgs, ...]:
    return (
        PoolArgs(name="public", addresses=pulumi.Output.from_input(["203.0.113.240/28"]), aggregation_length=28),
        PoolArgs(name="named", addresses=POOLS["named"], auto_assign=False),
    )


def announced(password: str | None) -> MetalLbArgs:
    def node(ip: str) -> BgpNodeArgs:
        return BgpNodeArgs(neighbours=pulumi.Output.secret([neighbour(ip, password)]))

    nodes = {"lab-worker-0.lab.facility.test": "203.0.113.1", "lab-worker-1.lab.facility.test": "203.0.113.3"}
    bgp = BgpArgs(nodes={name: node(ip) for name, ip in nodes.items()})
    return MetalLbArgs(kubeconfig="apiVersion: v1", pools=pools(), announce=bgp)


def objects(recorder: Recorder) -> dict[tuple[str, str], Manifest]:
    """What would be applied, by kind and name."""
    found: dict[tuple[str, str], Manifest] = {}
    for args in recorder.resources:
        if args.typ in CUSTOM:
            inputs = {key: plain(value) for key, value in args.inputs.items()}
            found[inputs["kind"], inputs["metadata"]["name"]] = inputs
    return found


def rendered(documents: Sequence[Manifest]) -> dict[tuple[str, str], Manifest]:
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def test_the_component_applies_what_is_rendered() -> None:
    recorder, outputs = declared(lambda: announced(PASSWORD))
    found = objects(recorder)
    assert found == rendered(routed(PASSWORD))
    assert outputs["pools"] == POOLS
    [secret] = recorder.of("kubernetes:core/v1:Secret")
    assert is_secret(secret.inputs["stringData"])
    [peer, *_] = recorder.of("kubernetes:metallb.io/v1beta2:BGPPeer")
    assert not is_secret(peer.inputs["spec"])
    assert PASSWORD not in json.dumps(peer.inputs)
    [provider] = recorder.of("pulumi:providers:kubernetes")
    assert is_secret(provider.inputs["kubeconfig"])
    assert {name: provider.inputs[name] for name in ("enableServerSideApply", "enableSecretMutable")} == {
        "enableServerSideApply": "true",
        "enableSecretMutable": "true",
    }
    assert provider.inputs["deleteUnreachable"] == "true"


def test_without_a_password_nobody_refers_to_the_secret() -> None:
    recorder, _ = declared(lambda: announced(None))
    found = objects(recorder)
    assert found.pop(("Secret", "bgp-password")) == manifests.password_secret("")
    assert found == rendered(routed())


def test_what_comes_after_what() -> None:
    recorder, _ = declared(lambda: announced(PASSWORD))
    assert recorder.after("lb-public-pool") == set()
    assert recorder.after("lb-lab-worker-0.lab.facility.test-peer-0") == {"lb-bgp-password"}
    assert recorder.after("lb-public-bgp") >= {"lb-public-pool", "lb-named-pool", "lb-bgp-password"}
    providers = {recorder.requests[args.name].provider for args in recorder.resources if args.typ in CUSTOM}
    assert len(providers) == 1
    assert "pulumi:providers:kubernetes::lb-provider" in providers.pop()


def test_l2_and_an_operator() -> None:
    def args() -> MetalLbArgs:
        announce = L2Args(interfaces=("bond0", "bond0.100"))
        return MetalLbArgs(kubeconfig="apiVersion: v1", pools=pools(), announce=announce, operator=Operator())

    recorder, _ = declared(args)
    assert objects(recorder) == rendered(
        [manifests.namespace(), *near(["bond0", "bond0.100"]), *manifests.operator(Operator())]
    )
    chain = {"lb-namespace", "lb-operator-group", "lb-subscription", "lb-metallb"}
    assert recorder.after("lb-public-pool") == chain
    assert recorder.after("lb-l2") == {*chain, "lb-public-pool", "lb-named-pool"}


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (BgpNodeArgs(neighbours=[neighbour(password=PASSWORD)], peers=3), "node-b has 2 BGP peers, not 3"),
        (BgpNodeArgs(neighbours=[]), "node-b has 0 BGP peers, not 2"),
        (BgpNodeArgs(neighbours=[neighbour(password="Other1234567")]), "neighbour of node-b .* has another password"),
    ],
)
def test_what_the_platform_says_has_to_be_as_announced(args: BgpNodeArgs, why: str) -> None:
    def program() -> None:
        (peer, *_) = bgp_peers("node-b", args, password=pulumi.Output.secret(PASSWORD), hold_time=None)
        pulumi.export("spec", peer["spec"])

    with pytest.raises(ManifestError, match=why):
        run(program, Recorder({}), {})
