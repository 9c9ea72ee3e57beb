"""The rules of Cluster API's contract (v1beta2), and of our own, each on a real kube-apiserver.

Source: sigs.k8s.io/cluster-api v1.12.2, docs/book/src/developer/providers/contracts. The core's controllers are not
there: what they would write, the tests write. The providers have the rights that they ask for, and no others.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
import yaml

from lab.errors import LabError
from metal_ipi.cluster_api import absences, crds, rbac
from metal_ipi.cluster_api.absences import Absences, TooManyAway
from metal_ipi.cluster_api.api import LEASE, MACHINE, Api, ApiError
from metal_ipi.cluster_api.api import SECRET as SECRETS
from metal_ipi.cluster_api.claims import Claims
from metal_ipi.cluster_api.clusters import ASSETS, FORMED
from metal_ipi.cluster_api.engine.state import Entry, name_of
from metal_ipi.cluster_api.operator import FINALIZER
from metal_ipi.cluster_api.reconcilers.machine import HOOK
from metal_ipi.cluster_api.store import SecretStore
from tests.cluster_api import hub as hubs
from tests.cluster_api import objects as made
from tests.cluster_api.hub import OWN, Hub
from tests.cluster_api.test_going import Steps, work_of
from tests.stacks.answers import ASSETS as DOCUMENT
from tests.stacks.rack import SECRET

pytestmark = [
    pytest.mark.programs,
    pytest.mark.filterwarnings("ignore:HTTPResponse.getheaders:DeprecationWarning"),  # of the official client
]
_OTHER = "other"
_LEASES = "leases.coordination.k8s.io"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Generator[Hub]:
    with hubs.hub(tmp_path_factory.mktemp("hub")) as made, made.working(environment=hubs.ALONE):
        yield made


def provisioned(hub: Hub, name: str, namespace: str = "facility", **metadata: Any) -> None:
    """A facility whose preflight has passed."""
    made.facility(hub, *made.settings(name), namespace, **metadata)
    status = {"status": {"initialization": {"provisioned": True}}}
    hub.patch(made.FACILITIES, name, status, "status", namespace)


def control_plane_machine(hub: Hub, cluster: str, name: str, spec: dict[str, Any], namespace: str = "facility") -> None:
    """A Machine of the control plane, its server and what it boots, as the core leaves them."""
    labels = {"cluster.x-k8s.io/cluster-name": cluster, "cluster.x-k8s.io/control-plane": ""}
    body = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "clusterName": cluster,
            "bootstrap": {"configRef": made.reference("bootstrap", "OpenShiftConfig", name)},
            "infrastructureRef": made.reference("infrastructure", "MetalIpiMachine", name),
        },
    }
    owners = owned_by_machine(hub.make(made.MACHINES, body, namespace))
    metadata = {"name": name, "labels": labels, "ownerReferences": owners}
    for kind, group, place, own in (
        ("OpenShiftConfig", "bootstrap", made.CONFIGS, {}),
        ("MetalIpiMachine", "infrastructure", made.SERVERS, spec),
    ):
        body = {"apiVersion": f"{group}.cluster.x-k8s.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": own}
        hub.make(place, body, namespace)


def owned_by_machine(machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The owners of what a Machine has, as the core writes them."""
    reference = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": machine["metadata"]["name"]}
    return [{**reference, "uid": machine["metadata"]["uid"], "controller": True}]


def _said(hub: Hub, kind: str, name: str, reason: str, *, about: str = "Ready", namespace: str = "facility") -> str:
    """The message of a condition, once its reason is this."""
    hub.until(lambda: hub.condition(kind, name, about, namespace)[1] == reason, f"{kind} {name}: {reason}")
    return hub.condition(kind, name, about, namespace)[2]


# --- the kinds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("definition", crds.definitions(), ids=lambda each: each["spec"]["names"]["kind"])
def test_a_kind_is_as_the_contract_has_it(definition: dict[str, Any]) -> None:
    spec, metadata = definition["spec"], definition["metadata"]
    (version,) = spec["versions"]
    assert spec["scope"] == "Namespaced" and "cluster-api" in spec["names"]["categories"]
    # As sigs.k8s.io/cluster-api/util/contract.CalculateCRDName makes it.
    assert metadata["name"] == f"{spec['names']['kind'].lower()}s.{spec['group']}"
    assert metadata["labels"]["cluster.x-k8s.io/v1beta2"] == version["name"]
    assert "cluster.x-k8s.io/v1beta1" not in metadata["labels"]  # that contract has other fields
    assert metadata["labels"]["cluster.x-k8s.io/provider"].split("-")[0] in ("infrastructure", "bootstrap", "control")
    assert ("status" in version.get("subresources", {})) != spec["names"]["kind"].endswith("Template")


def test_what_is_misspelt_is_refused_by_the_api(hub: Hub) -> None:
    body = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "MetalIpiMachine",
        "metadata": {"name": "misspelt"},
    }
    with pytest.raises(LabError, match="sever"):
        hub.make(made.SERVERS, {**body, "spec": {"sever": "worker-0"}})
    with pytest.raises(LabError, match=r"spec\.pool"):
        hub.make(made.SERVERS, {**body, "spec": {"pool": "master"}})
    for wrong in ({"powerCycles": 11}, {"timeoutSeconds": 9}):
        with pytest.raises(LabError, match=next(iter(wrong))):
            made.remediation_template(hub, "wrong", **wrong)


# --- the providers -------------------------------------------------------------------------------------------------


def test_settings_that_are_wrong_are_told_with_their_paths(hub: Hub) -> None:
    tree, secrets = made.settings("wrong")
    made.facility(hub, {**tree, "platform": {**tree["platform"], "prefix": 77}}, secrets)
    assert "metal-ipi:platform.prefix = 77" in _said(hub, made.FACILITIES, "wrong", "SettingsRefused")
    seen = json.dumps(hub.get(made.FACILITIES, "wrong"))
    assert SECRET not in seen and "last-handled-configuration" not in seen, "no copy of it is kept in an annotation"
    hub.patch(made.FACILITIES, "wrong", {"spec": {"secretsRef": {"name": "nowhere"}}})
    assert "there is no Secret facility/nowhere" in _said(hub, made.FACILITIES, "wrong", "NoSecrets")


def test_what_is_paused_is_left_alone(hub: Hub) -> None:
    tree, secrets = made.settings("paused")
    made.facility(hub, tree, secrets)
    hub.until(lambda: hub.condition(made.FACILITIES, "paused", "Paused")[0] == "False", "it is looked at")
    hub.patch(made.CLUSTERS, "paused", {"spec": {"paused": True}})
    hub.until(lambda: hub.condition(made.FACILITIES, "paused", "Paused")[0] == "True", "it says that it is paused")
    hub.patch(made.FACILITIES, "paused", {"spec": {"settings": {"clusterName": "another"}}})
    hub.delete(made.FACILITIES, "paused")
    before = hub.condition(made.FACILITIES, "paused", "Ready")
    _settle(hub)
    # It is kept, too: `clusterctl move` pauses before it deletes.
    assert hub.condition(made.FACILITIES, "paused", "Ready") == before
    assert FINALIZER in hub.get(made.FACILITIES, "paused")["metadata"]["finalizers"]  # type: ignore[index]
    hub.patch(made.FACILITIES, "paused", {"spec": {"settings": {"clusterName": "paused"}}})
    hub.patch(made.CLUSTERS, "paused", {"spec": {"paused": False}})
    # It goes with its Cluster only.
    assert "delete Cluster facility/paused" in _said(hub, made.FACILITIES, "paused", "Deleting")
    hub.delete(made.CLUSTERS, "paused")
    hub.until(lambda: hub.get(made.FACILITIES, "paused") is None, "it goes")


def _settle(hub: Hub) -> None:
    """Another object's end shows that the providers had their time: they look at all of them when one changes."""
    tree, secrets = made.settings("bell")
    made.facility(hub, tree, secrets)
    hub.until(lambda: hub.condition(made.FACILITIES, "bell", "Paused")[0] == "False", "another one is looked at")
    for kind in (made.FACILITIES, made.CLUSTERS):
        hub.delete(kind, "bell")


def test_two_clusters_that_claim_one_server_are_told(hub: Hub) -> None:
    for name, namespace in (("first", "facility"), ("second", _OTHER)):
        provisioned(hub, name, namespace)
    control_plane_machine(hub, "first", "first-0", {"server": "control-plane-1"})
    hub.until(lambda: hub.list(_LEASES, OWN)[1:], "the first has its server")
    control_plane_machine(hub, "second", "second-0", {"server": "control-plane-1"}, _OTHER)
    message = _said(hub, made.SERVERS, "second-0", "ServerRefused", namespace=_OTHER)
    assert "control-plane-1" in message and "is claimed by MetalIpiMachine facility/first-0" in message
    # One that may choose takes another one; within a cluster no server is given twice.
    control_plane_machine(hub, "second", "second-1", {}, _OTHER)
    hub.until(lambda: hub.get(made.SERVERS, "second-1", _OTHER)["spec"].get("server"), "a server")  # type: ignore[index]
    assert hub.get(made.SERVERS, "second-1", _OTHER)["spec"]["server"] == "control-plane-0"  # type: ignore[index]
    # What is deleted gives its server back, and the other one takes it.
    hub.delete(made.SERVERS, "first-0")
    hub.until(lambda: hub.get(made.SERVERS, "first-0") is None, "the first goes")
    hub.until(lambda: hub.condition(made.SERVERS, "second-0", "Ready", _OTHER)[1] != "ServerRefused", "it is free")


def test_failure_domains_are_told_or_refused(hub: Hub) -> None:
    tree, secrets = made.settings("rooms")
    made.facility(hub, tree, secrets)
    wrong = [{"name": "a", "servers": ["control-plane-7"]}]
    hub.patch(made.FACILITIES, "rooms", {"spec": {"failureDomains": wrong}})
    assert "control-plane-7" in _said(hub, made.FACILITIES, "rooms", "FailureDomainsRefused")
    rooms = [{"name": "a", "servers": ["control-plane-0", "worker-0"]}, {"name": "b", "servers": ["worker-4"]}]
    hub.patch(made.FACILITIES, "rooms", {"spec": {"failureDomains": rooms}})

    def told() -> list[dict[str, Any]]:
        return ((hub.get(made.FACILITIES, "rooms") or {}).get("status") or {}).get("failureDomains") or []

    hub.until(told, "they are told")
    assert told() == [{"name": "a", "controlPlane": True}, {"name": "b", "controlPlane": False}]


def test_a_machine_that_is_away_has_a_lease(hub: Hub) -> None:
    """With the rights that the providers have."""
    provisioned(hub, "away")
    labels = {"metadata": {"labels": {"cluster.x-k8s.io/deployment-name": "away-workers"}}}
    for name in ("away-0", "away-1"):
        control_plane_machine(hub, "away", name, {"server": f"worker-{name[-1]}"})
        hub.patch(made.MACHINES, name, labels)
        hub.patch(made.MACHINES, name, {"status": {"nodeRef": {"name": name}}}, "status")
    api, cluster = Api(str(hub.providers)), hub.get(made.CLUSTERS, "away")
    assert cluster is not None
    work, limit = replace(work_of(Steps(FORMED)), cluster=cluster), Absences(api, OWN, 1, least=0.0)
    first, second = (hub.get(made.MACHINES, name) for name in ("away-0", "away-1"))
    assert first is not None and second is not None

    async def whole() -> None:
        await limit.take(work, first, "worker-0", "deleted")
        with pytest.raises(TooManyAway, match=r"facility/away/worker-0 \(deleted, since 20"):
            await limit.take(work, second, "worker-1", "deleted")
        (lease,) = await api.list(LEASE, OWN, absences.LABEL)
        assert lease["spec"]["holderIdentity"] == "facility/away/worker-0"
        await api.patch(MACHINE, "facility", "away-0", {"metadata": {"annotations": {HOOK: "metal-ipi"}}})

    asyncio.run(whole())
    found = hub.get(made.MACHINES, "away-0")
    assert found is not None and found["metadata"]["annotations"][HOOK] == "metal-ipi"
    hub.delete(made.CLUSTERS, "away")
    asyncio.run(Absences(api, OWN, 1, least=0.0).settle(work))
    assert [each for each in hub.list(_LEASES, OWN) if absences.LABEL in (each["metadata"].get("labels") or {})] == []


def test_what_a_move_takes_along_and_what_it_leaves(hub: Hub) -> None:
    provisioned(hub, "goes")
    move = "clusterctl.cluster.x-k8s.io/move"
    state = {"metadata": {"name": "goes-install-state"}, "type": "cluster.x-k8s.io/secret"}
    hub.make("secrets", state)  # as a cluster has it that was made elsewhere

    def metadata(name: str) -> dict[str, Any]:
        return (hub.get("secrets", name) or {"metadata": {}})["metadata"]

    hub.until(lambda: move in (metadata("goes-settings").get("labels") or {}), "the settings go along")
    hub.until(lambda: metadata("goes-install-state").get("ownerReferences"), "the install state has its owner")
    facility = hub.get(made.FACILITIES, "goes")
    assert facility is not None
    assert metadata("goes-install-state")["ownerReferences"][0]["uid"] == facility["metadata"]["uid"]
    # The claim of a machine that went is nobody's.
    server = next(each for each in made.settings("goes")[0]["platform"]["servers"] if each["name"] == "control-plane-2")
    claims = Claims(Api(str(hub.admin)), OWN)
    assert asyncio.run(claims.claim(server["mac"], "facility/moved")) == "facility/moved"
    control_plane_machine(hub, "goes", "goes-0", {"server": "control-plane-2"})
    hub.until(lambda: asyncio.run(claims.holder(server["mac"])) == "facility/goes-0", "it is taken over")


def test_machines_have_their_servers_before_the_preflight_passes_but_nothing_is_done_to_them(hub: Hub) -> None:
    """Nobody is where the BMCs are: the preflight does not pass."""
    tree, secrets = made.settings("early")
    # Other tests' clusters have claimed the servers of the rack: these are others.
    for number, server in enumerate(tree["platform"]["servers"]):
        server["mac"] = f"52:54:00:ea:00:{number:02x}"
    made.create(hub, tree, secrets, workers=0)
    labels = {"cluster.x-k8s.io/cluster-name": "early"}
    hub.patch(made.CONTROL_PLANES, "early", {"metadata": {"labels": labels}})  # as the core labels it
    machines = {f"early-{number}" for number in range(3)}
    hub.until(lambda: {each["metadata"]["name"] for each in hub.list(made.MACHINES)} >= machines, "they are made")
    facility = hub.get(made.FACILITIES, "early")
    assert facility is not None
    for name in machines:
        machine = hub.get(made.MACHINES, name)
        assert machine is not None
        hub.patch(made.SERVERS, name, {"metadata": {"ownerReferences": owned_by_machine(machine)}})
        assert "preflight has not passed" in _said(hub, made.SERVERS, name, "WaitingForFacility")
        server = hub.get(made.SERVERS, name)
        assert server is not None and server["spec"]["server"].startswith("control-plane-")
    assert hub.condition(made.FACILITIES, "early", "PreflightPassed")[0] != "True"
    state = asyncio.run(SecretStore(Api(str(hub.admin)), facility, "early").load())
    assert {name_of(urn) for urn in state.entries} <= {"keys", "preflight", ASSETS}


def test_no_secret_of_another_namespace_is_read(hub: Hub) -> None:
    tree, secrets = made.settings("mine")
    made.facility(hub, tree, secrets)
    made.facility(hub, {**tree, "clusterName": "theirs"}, {}, _OTHER)
    hub.patch(made.FACILITIES, "theirs", {"spec": {"secretsRef": {"name": "mine-settings"}}}, namespace=_OTHER)
    message = _said(hub, made.FACILITIES, "theirs", "NoSecrets", namespace=_OTHER)
    assert "there is no Secret other/mine-settings" in message


@pytest.mark.parametrize("name", ["../../facility/secrets/path-settings", "..", "a%2Fb"])
def test_a_name_is_no_path_to_another_namespace(hub: Hub, name: str) -> None:
    if hub.get(made.FACILITIES, "path") is None:
        made.facility(hub, *made.settings("path"))
    with pytest.raises(ApiError, match="is not the name of an object"):
        asyncio.run(Api(str(hub.providers)).get(SECRETS, _OTHER, name))
    change = {"spec": {"secretsRef": {"name": name}}}
    with pytest.raises(LabError, match=r"spec\.secretsRef\.name"):
        hub.patch(made.FACILITIES, "path", change)


def test_a_release_that_is_another_than_the_settings_is_refused(hub: Hub) -> None:
    provisioned(hub, "release")
    body = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
        "kind": "OpenShiftControlPlane",
        "metadata": {"name": "release", "labels": {"cluster.x-k8s.io/cluster-name": "release"}},
        "spec": {
            "version": "v4.20.0",
            "machineTemplate": {
                "spec": {"infrastructureRef": made.reference("infrastructure", "MetalIpiMachineTemplate", "release")}
            },
        },
    }
    hub.make(made.CONTROL_PLANES, body)
    message = _said(hub, made.CONTROL_PLANES, "release", "VersionRefused", about="Available")
    assert "v4.20.0" in message and "v4.21.3" in message
    hub.patch(made.CONTROL_PLANES, "release", {"spec": {"version": "v4.21.3", "replicas": 1}})
    assert "lists 3" in _said(hub, made.CONTROL_PLANES, "release", "ReplicasRefused", about="Available")
    hub.patch(made.CONTROL_PLANES, "release", {"spec": {"replicas": 3}})
    assert "release" in _said(hub, made.CONTROL_PLANES, "release", "NoTemplate", about="Available")
    # The subresource scale is what `kubectl scale` and the core write to.
    scaled = hub.client.get(f"{hub.path(made.CONTROL_PLANES, 'release')}/scale").json()
    assert scaled["spec"]["replicas"] == 3


def test_manifests_of_the_users_are_checked_as_previews_check_them(hub: Hub) -> None:
    provisioned(hub, "extra")
    control_plane = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
        "kind": "OpenShiftControlPlane",
        "metadata": {"name": "extra", "labels": {"cluster.x-k8s.io/cluster-name": "extra"}},
        "spec": {
            "version": "v4.21.3",
            "machineTemplate": {
                "spec": {"infrastructureRef": made.reference("infrastructure", "MetalIpiMachineTemplate", "none")}
            },
            "manifestSecretRefs": [{"name": "extra-files"}],
        },
    }
    hub.make(made.CONTROL_PLANES, control_plane)

    def refused(kind: str = made.CONTROL_PLANES, about: str = "Available") -> str:
        return _said(hub, kind, "extra", "ManifestsRefused", about=about)

    assert "Secret facility/extra-files" in refused() and "does not exist" in refused()
    text = "apiVersion: v1\nkind: Motd\nmetadata: {name: motd}\n"
    body = {"metadata": {"name": "extra-files"}, "data": {"motd.yaml": base64.b64encode(text.encode()).decode()}}
    hub.make("secrets", body)
    hub.until(lambda: "set it to openshift or manifests" in refused(), "it says nothing of its folder")
    annotation = {"annotations": {"metal-ipi.cluster.x-k8s.io/manifests": "openshift"}}
    hub.patch("secrets", "extra-files", {"metadata": annotation})
    hub.until(lambda: "Secret extra-files/motd.yaml:1: " in refused(made.FACILITIES, "Ready"), "file and line are told")
    text = text.replace("Motd", "Namespace")
    hub.patch("secrets", "extra-files", {"data": {"motd.yaml": base64.b64encode(text.encode()).decode()}})
    assert "none" in _said(hub, made.CONTROL_PLANES, "extra", "NoTemplate", about="Available")
    moved = "clusterctl.cluster.x-k8s.io/move"
    hub.until(lambda: moved in (hub.get("secrets", "extra-files") or {})["metadata"].get("labels", {}), "it goes along")


def test_a_machine_is_told_where_its_configuration_is(hub: Hub) -> None:
    # Nobody reads its state before it is there.
    provisioned(hub, "told", annotations={"cluster.x-k8s.io/paused": ""})
    facility = hub.get(made.FACILITIES, "told")
    assert facility is not None
    urn = f"urn:pulumi:told::metal-ipi::metal-ipi:install:InstallAssets$command:local:Command::{ASSETS}"
    pointer = {"ignition": {"config": {"merge": [{"source": "https://api-int.told.example.com:22623/config/worker"}]}}}
    document = {**json.loads(DOCUMENT), "worker": json.dumps(pointer)}
    entry = Entry(urn=urn, id="x", inputs={}, outputs={"stdout": json.dumps(document)})
    asyncio.run(SecretStore(Api(str(hub.providers)), facility, "told").save(urn, entry))
    state = hub.get("secrets", "told-install-state")
    assert state is not None and state["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "told"
    assert state["metadata"]["ownerReferences"][0]["uid"] == facility["metadata"]["uid"]
    control_plane_machine(hub, "told", "told-0", {})
    hub.until(lambda: hub.condition(made.CONFIGS, "told-0", "Ready")[0] == "True", "the Secret is there")
    config, secret = hub.get(made.CONFIGS, "told-0"), hub.get("secrets", "told-0")
    assert config is not None and secret is not None
    assert config["status"]["initialization"] == {"dataSecretCreated": True}
    assert config["status"]["dataSecretName"] == secret["metadata"]["name"]
    assert secret["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "told"
    assert list(secret["data"]) == ["value"] and secret["type"] == "cluster.x-k8s.io/secret"
    (owner,) = secret["metadata"]["ownerReferences"]
    assert owner["controller"] and owner["uid"] == config["metadata"]["uid"]
    # As the installer writes it, for the pool of the machine's role.
    assert "/config/master" in base64.b64decode(secret["data"]["value"]).decode()


def test_all_clusters_of_a_hub_are_told_with_their_conditions(hub: Hub) -> None:
    tree, secrets = made.settings("listed")
    made.facility(hub, {**tree, "platform": {**tree["platform"], "prefix": 77}}, secrets)
    _said(hub, made.FACILITIES, "listed", "SettingsRefused")
    control_plane_machine(hub, "listed", "listed-0", {})
    command = [sys.executable, "-m", "metal_ipi.cluster_api.fleet", "--kubeconfig", str(hub.admin)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = {each["name"]: each for each in yaml.safe_load_all(done.stdout)}
    assert SECRET not in done.stdout
    listed = found["listed"]
    assert listed["domain"] == "listed.example.com" and listed["namespace"] == "facility"
    assert listed["machines"]["control-plane"] == {"there": 1, "available": 0, "leaving": 0}
    condition = listed["conditions"]["MetalIpiCluster/Ready"]
    assert condition["status"] == "False" and "platform.prefix = 77" in condition["message"]
    assert not listed["paused"] and not listed["deleted"]


def test_prometheus_reads_what_is_done(hub: Hub) -> None:
    made.facility(hub, *made.settings("measured"))
    hub.until(lambda: "metal_ipi_reconcile_seconds_count{" in _figures(hub), "a look was counted")
    assert "metal_ipi_steps_running " in _figures(hub)
    assert 'metal_ipi_api_requests_total{method="GET"}' in _figures(hub)


def _figures(hub: Hub) -> str:
    try:
        return httpx.get(f"http://127.0.0.1:{hub.metrics}/metrics", trust_env=False).text
    except httpx.ConnectError:  # the process is starting
        return ""


def test_no_secret_is_seen_that_is_not_named(hub: Hub) -> None:
    rules = [rule for rule in rbac.rules() if rule["resources"] == ["secrets"]]
    assert not {"list", "watch"}.intersection(*(rule["verbs"] for rule in rules))
    with pytest.raises(Exception, match="403"):
        asyncio.run(_listed(hub))


async def _listed(hub: Hub) -> None:
    from metal_ipi.cluster_api.api import SECRET as KIND

    await Api(str(hub.providers)).list(KIND, "facility")


def test_another_process_takes_over(hub: Hub) -> None:
    def holder() -> str:
        found = hub.get(_LEASES, "metal-ipi-cluster-api", OWN) or {"spec": {}}
        return str(found["spec"].get("holderIdentity") or "")

    hub.until(holder, "somebody leads")
    first = holder()
    with hub.working("second", hubs.ALONE):
        tree, secrets = made.settings("waits")
        made.facility(hub, tree, secrets)
        hub.until(lambda: hub.condition(made.FACILITIES, "waits", "Paused")[0] == "False", "the first works on")
        assert holder() == first
        # Whoever says nothing any more is followed: here its Lease is another's, as after a long pause.
        hub.patch(_LEASES, "metal-ipi-cluster-api", {"spec": {"holderIdentity": "nobody"}}, namespace=OWN)
        hub.until(lambda: holder() not in ("", first, "nobody"), "the second leads", 90)
