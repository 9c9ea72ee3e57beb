"""Who waits for whom, what is secret, and what changes with the shape of a cluster."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from metal_ipi.components.boot import node_image
from metal_ipi.stacks.settings import SettingsError
from tests.mocks import Recorder, is_secret, plain
from tests.stacks.answers import (
    ANSWERS,
    ASSETS,
    SEED,
    declared,
    left_behind,
    node_files,
    rehearsed,
    settings,
    stack_file,
)
from tests.stacks.rack import rack7

_DEVICE = "equinix-metal:index/device:Device"
_BLOCK = "equinix-metal:index/reservedIpBlock:ReservedIpBlock"
_SESSION = "equinix-metal:index/bgpSession:BgpSession"
_GATE = "metal-ipi:index:Gate"
_DOMAIN = "da11.metal.example.com"
_NODES = [f"da11-{role}-{number}" for role in ("control-plane", "worker") for number in range(3)]
_CHECKS = ("control-plane-checks-0", "worker-checks-0")
_CONTROL_PLANE = _NODES[:3]
_STACKS = {path.name.split(".")[1] for path in (Path(__file__).parents[2] / "stacks").glob("Pulumi.*.yaml")}


@cache
def _da11() -> Recorder:
    """The stack as it is committed; read only."""
    return declared()


def _platform(**changes: Any) -> dict[str, Any]:
    platform = {**stack_file("da11")["platform"], **changes}
    return {key: value for key, value in platform.items() if value is not None}


def _machines(recorder: Recorder) -> dict[str, dict[str, Any]]:
    """The inputs of all machines, the bootstrap machine among them, by name."""
    found = [*recorder.of(_DEVICE), recorder.one("da11-bootstrap")]
    return {each.name.removesuffix("-device"): plain(each.inputs) for each in found}


def _records(recorder: Recorder, *names: str) -> dict[str, list[str]]:
    found = (record for name in names for record in recorder.inputs(name)["records"].values())
    return {record["name"]: record["values"] for record in found}


def _lasting(recorder: Recorder) -> dict[str, list[str]]:
    return _records(recorder, "dns-api-records", "dns-ingress-records")


def _install_config(recorder: Recorder) -> dict[str, Any]:
    return yaml.safe_load(json.loads(recorder.inputs("install-assets-create")["stdin"])["installConfig"])


# --- every stack ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stack", sorted(_STACKS - {"sno1", "hub", "capi7"}))  # test_in_place, _hub, _cluster_api
def test_every_committed_stack_can_be_rehearsed(stack: str) -> None:
    recorder = declared(stack, values=rehearsed(stack), preview=True)
    assert recorder.outputs["cluster"]["name"] == stack
    assert recorder.after("install-complete") >= {"bootstrap-complete", "preflight"}


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        (rehearsed(), ["rehearsal"]),
        (settings(clusterName="Bad_Name", workers={"cuont": 1}), ["clusterName", "workers.cuont"]),
    ],
    ids=["a rehearsal that would change something", "wrong settings"],
)
def test_problems_are_told_before_any_resource(values: dict[str, str], paths: list[str]) -> None:
    asked: list[str] = []
    answers = {typ: lambda args: asked.append(args.typ) or {} for typ in ANSWERS}
    with pytest.raises(SettingsError) as caught:
        declared(answers=answers, values=values)
    assert [problem.path.partition(":")[2] for problem in caught.value.problems] == paths and asked == []


@pytest.mark.parametrize(("stack", "most"), [("lab", 3), ("da11", 4)])
def test_a_worker_is_few_resources(stack: str, most: int) -> None:
    few, many = (declared(stack, workers={"count": count}) for count in (2, 12))
    assert (len(many.resources) - len(few.resources)) / 10 <= most


def _named(recorder: Recorder, name: str) -> int:
    """How often the state names a resource where others say what they depend on."""
    found = 0
    for request in recorder.requests.values():
        told = [*request.dependencies, *(urn for each in request.propertyDependencies.values() for urn in each.urns)]
        found += sum(urn.endswith(f"::{name}") for urn in told)
    return found


@pytest.mark.parametrize(("stack", "most"), [("lab", 3), ("da11", 5)])
def test_few_resources_name_a_worker(stack: str, most: int) -> None:
    """Each of them has its URN, 114 bytes, once more: the gate that waits for it and its name; its installation."""
    assert _named(declared(stack), f"{stack}-worker-0-device") <= most


def test_an_installation_does_not_grow_with_its_pool() -> None:
    few, many = (declared("da11", workers={"count": count}) for count in (2, 30))
    sizes = [len(json.dumps(plain(each.one("da11-worker-0-installation").inputs))) for each in (few, many)]
    assert sizes[0] == sizes[1] and sizes[1] < 3500
    assert not {"members", "credentials", "script", "userData"} & many.one("da11-worker-0-installation").inputs.keys()


# --- who waits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("da11-bootstrap", {"boot-scripts", "identities", "bootstrap-ignition", "platform-ssh-key"}),
        ("da11-control-plane-0-device", {"control-plane-boot-scripts", "identities", "install-assets-create"}),
        ("da11-worker-2-device", {"workers-boot-scripts", "identities", "install-assets-create", "platform-ssh-key"}),
        ("bootstrap-reachable", {"da11-bootstrap"}),
        ("api-answers", {"bootstrap-reachable", "dns-api-records", "dns-bootstrap-records"}),
        ("bootstrap-complete", {"api-answers"}),
        ("control-plane-checks-reachable", {f"{node}-device" for node in _CONTROL_PLANE}),
        ("control-plane-checks-0", {"control-plane-checks-reachable"}),
        ("bootstrap-removal-removed", {"bootstrap-complete", "control-plane-checks-0"}),
        ("worker-checks-0", {"worker-checks-reachable"}),
        ("nodes-ready", {"bootstrap-complete"}),
        ("install-complete", {"bootstrap-complete", "bootstrap-removal-removed", "dns-ingress-records"}),
    ],
)
def test_each_step_waits_for_the_one_before(later: str, earlier: set[str]) -> None:
    assert earlier <= _da11().after(later)


def test_nothing_waits_that_need_not() -> None:
    recorder = _da11()
    gates = {gate.name for gate in recorder.of(_GATE)}
    for node in _NODES:
        assert not recorder.after(f"{node}-device") & {*gates, "dns-api-records", "da11-bootstrap"}, "ordered at once"
    assert not {name for name in recorder.after("bootstrap-complete") if "worker" in name}, "a slow one delays nobody"
    # Control plane and workers are checked while bootstrap goes on; only the removal waits for both.
    assert recorder.after("control-plane-checks-0") & gates == {"control-plane-checks-reachable"}
    assert recorder.after("worker-checks-0") & gates == {"worker-checks-reachable"}
    assert "worker-checks-0" not in recorder.after("bootstrap-removal-removed")
    # What they wait for comes about at the same time.
    beside = {"install-complete", "nodes-ready", "worker-checks-reachable"}
    assert recorder.after("install-complete") & gates == gates - beside
    assert set(recorder.inputs("install-complete")["givesUpWith"]) == beside - {"install-complete"}


def test_every_resource_takes_its_explicit_provider() -> None:
    wanted = {"metal-ipi:index": "::metal-ipi::", "equinix-metal:index/": "::platform-provider::"}
    for name, request in _da11().requests.items():
        for prefix, provider in wanted.items():
            assert not request.type.startswith(prefix) or provider in request.provider, name


def test_gates_have_their_own_timeouts_and_kinds() -> None:
    names = ("machinesActive", "machinesReachable", "apiAnswers", "bootstrapComplete", "nodesReady", "installComplete")
    recorder = declared(timeouts={name: 11 + number for number, name in enumerate(names)})
    assert {gate.name: (gate.inputs["kind"], gate.inputs["timeoutSeconds"]) for gate in recorder.of(_GATE)} == {
        "bootstrap-reachable": ("ssh-reachable", 12),
        "bootstrap-machine-config-access": ("machine-config-access", 12),
        "machine-config-access": ("machine-config-access", 12),
        "control-plane-checks-reachable": ("ssh-reachable", 12),
        # Workers wait for the control plane, too: the bootstrap machine serves them no configuration.
        "worker-checks-reachable": ("ssh-reachable", 12 + 14),
        "api-answers": ("api-answers", 13),
        "bootstrap-complete": ("bootstrap-complete", 14),
        "nodes-ready": ("nodes-ready", 15),
        "install-complete": ("install-complete", 16),
    }
    assert recorder.one("da11-bootstrap").inputs["timeoutSeconds"] == 11
    assert recorder.requests["da11-worker-0-device"].customTimeouts.create == "11s"
    assert recorder.one("install-complete").inputs["stabilitySeconds"] == 30
    assert declared("lab").one("install-complete").inputs["stabilitySeconds"] == 1


def test_certificate_requests_are_approved_for_our_machines_only() -> None:
    spec = _da11().inputs("nodes-ready")["spec"]
    assert spec["names"] == [f"{node}.{_DOMAIN}" for node in _NODES]
    devices = {device.name: ANSWERS[_DEVICE](device) for device in _da11().of(_DEVICE)}
    assert spec["addresses"] == {
        f"{node}.{_DOMAIN}": [devices[f"{node}-device"][f"access{kind}Ipv4"] for kind in ("Public", "Private")]
        for node in _NODES
    }


# --- secrets -------------------------------------------------------------------------------------------------------


def test_what_is_secret_is_marked_and_what_is_not_is_readable() -> None:
    recorder = _da11()
    secret = [
        *(("metal-ipi", section) for section in ("metal", "dns", "artifacts")),
        ("platform-provider", "authToken"),
        *(
            (name, key)
            for name in ("boot-scripts", "identities", "bootstrap-ignition")
            for key in ("files", "pathSeed")
        ),
        ("install-assets-create", "stdin"),
        *((name, "environment") for name in _CHECKS),
        *((name, "spec") for name in ("nodes-ready", "install-complete", "bootstrap-complete")),
        *((name, "userData") for name in ("da11-bootstrap", *(f"{node}-device" for node in _NODES))),
    ]
    readable = [
        *((name, key) for name in _CHECKS for key in ("create", "stdin")),
        *((name, "ipxeScriptUrl") for name in ("da11-bootstrap", *(f"{node}-device" for node in _NODES))),
    ]
    assert [each for each in secret if not is_secret(recorder.one(each[0]).inputs[each[1]])] == []
    assert [each for each in readable if is_secret(recorder.one(each[0]).inputs[each[1]])] == []
    assert {"stdout", "stderr"} <= set(recorder.requests["install-assets-create"].additionalSecretOutputs)
    assert recorder.outputs["kubeadminPassword"] == "swordfish"


def test_secrets_stand_in_no_readable_input_and_not_in_userdata() -> None:
    hidden = [SEED, "swordfish", "PRIVATE KEY", "BEGIN CERTIFICATE REQUEST", json.loads(ASSETS)["kubeconfig"]]
    for args in _da11().resources:
        readable = json.dumps(_without_secrets(args.inputs))
        assert not [secret for secret in hidden if json.dumps(secret)[1:-1] in readable], args.name
    for name, machine in _machines(_da11()).items():
        assert not [secret for secret in hidden[:3] if secret in machine["userData"]], name
        merged = json.loads(machine["userData"])["ignition"]["config"]["merge"]
        assert merged[-1]["verification"]["hash"].startswith("sha512-")


def _without_secrets(value: Any) -> Any:
    if is_secret(value):
        return None
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


# --- names and shapes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 3])
def test_routers_run_where_their_names_point(workers: int) -> None:
    """With 0 workers told, the installer lets pods run on the control plane (pkg/asset/manifests/scheduler.go)."""
    recorder = declared(workers={"count": workers})
    (pool,) = _install_config(recorder)["compute"]
    records = _lasting(recorder)
    nodes = _NODES[3:] if workers else _CONTROL_PLANE
    assert pool["replicas"] == workers
    assert records[f"*.apps.{_DOMAIN}"] == [records[f"{node}.{_DOMAIN}"][0] for node in nodes]
    api = [records[f"{node}.{_DOMAIN}"][0] for node in _CONTROL_PLANE]
    assert records[f"api.{_DOMAIN}"] == records[f"api-int.{_DOMAIN}"] == api
    assert [node["name"] for node in recorder.outputs["nodes"]] == [
        f"{node}.{_DOMAIN}" for node in _NODES[: 3 + workers]
    ]
    assert ("worker-checks-reachable" in recorder.requests) == bool(workers)
    assert "bootstrap-removal-removed" in recorder.depends_on("install-complete")


def test_the_bootstrap_address_stands_apart_and_is_withdrawn() -> None:
    recorder = _da11()
    temporary = _records(recorder, "dns-bootstrap-records")
    assert set(temporary) == {f"api.{_DOMAIN}", f"api-int.{_DOMAIN}", f"da11-bootstrap.{_DOMAIN}"}
    assert "198.51.100.250" not in _lasting(recorder)[f"api.{_DOMAIN}"]
    removal = recorder.inputs("bootstrap-removal-removed")
    assert {record["name"]: record["values"] for record in removal["records"]} == temporary
    assert (removal["drainSeconds"], removal["artifactsFiles"]) == (30, ["bootstrap.ign"])
    assert recorder.one("bootstrap-ignition").inputs["ephemeral"] is True
    assert recorder.one("dns-bootstrap-records").inputs["ephemeral"] is True
    assert recorder.one("dns-api-records").inputs["ephemeral"] is False
    assert recorder.outputs["bootstrap"] == {"present": False}


@pytest.mark.parametrize(("masters", "workers"), [(1, 0), (1, 2), (4, 2), (5, 0)])
def test_each_size_is_a_whole_cluster(masters: int, workers: int) -> None:
    recorder = declared(controlPlane={"count": masters}, workers={"count": workers})
    names = [f"da11-control-plane-{n}" for n in range(masters)] + [f"da11-worker-{n}" for n in range(workers)]
    assert [device.name for device in recorder.of(_DEVICE)] == [f"{name}-device" for name in names]
    assert [node["name"] for node in recorder.outputs["nodes"]] == [f"{name}.{_DOMAIN}" for name in names]
    config, records = _install_config(recorder), _lasting(recorder)
    assert (config["controlPlane"]["replicas"], config["compute"][0]["replicas"]) == (masters, workers)
    assert (len(records[f"api.{_DOMAIN}"]) == masters and len(records[f"*.apps.{_DOMAIN}"]) == workers) or masters
    assert recorder.inputs("nodes-ready")["spec"].get("etcdMembers") == (masters if masters > 3 else None)


# --- what is ordered -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "metro", "facilities"),
    [({"facilities": ["da6", "da11"]}, None, ["da6", "da11"]), ({"facilities": None, "metro": "da"}, "da", None)],
)
def test_machines_are_ordered_in_a_facility_or_a_metro(
    place: dict[str, Any], metro: str | None, facilities: list[str] | None
) -> None:
    for name, machine in _machines(declared(platform=_platform(**place))).items():
        assert (machine.get("metro"), machine.get("facilities")) == (metro, facilities), name


def test_machines_carry_the_plan_and_tags_of_their_role() -> None:
    machines = _machines(_da11())
    plans = {"bootstrap": "c3.small.x86", "control-plane": "c3.medium.x86", "worker": "m3.large.x86"}
    assert {name: machine["plan"] for name, machine in machines.items()} == {
        name: next(plan for role, plan in plans.items() if role in name) for name in machines
    }
    assert machines["da11-worker-1"]["tags"] == [
        "metal-ipi",
        "metal-ipi:stack=da11",
        f"metal-ipi:cluster={_DOMAIN}",
        "metal-ipi:name=da11-worker-1",
        "metal-ipi:role=worker",
        "metal-ipi:run=keys-id",
    ]


def test_nothing_reinstalls_or_reorders_running_machines_by_itself() -> None:
    recorder = declared(
        answers=left_behind(bootstrap_complete=("metal-ipi:install:BootstrapGates$metal-ipi:index:Gate", {}))
    )
    kept = {"userData", "plan", "metro", "facilities", "operatingSystem", "projectId", "projectSshKeyIds",
            "hardwareReservationId", "terminationTime", "customData", "ipAddresses"}  # fmt: skip
    assert set(recorder.requests["da11-worker-0-device"].ignoreChanges) == kept
    assert "stdin" in recorder.requests["install-assets-create"].ignoreChanges, "the cluster's certificates stay"


def test_a_project_is_used_or_created() -> None:
    assert _da11().of("equinix-metal:index/project:Project") == []
    used = stack_file("da11")["platform"]["projectId"]
    assert {machine["projectId"] for machine in _machines(_da11()).values()} == {used}
    owner = "11111111-2222-4333-8444-555555555555"
    recorder = declared(platform=_platform(projectId=None, projectName="ocp", organizationId=owner))
    (project,) = recorder.of("equinix-metal:index/project:Project")
    assert (project.inputs["name"], project.inputs["organizationId"]) == ("ocp", owner)
    assert project.inputs["bgpConfig"] == {"deploymentType": "local", "asn": 65000}
    users = [*_machines(recorder).values(), recorder.inputs("platform-ssh-key")]
    assert {user["projectId"] for user in users} == {"platform-project-id"}


def test_an_installed_machine_does_not_loop_into_the_network() -> None:
    for stack, always in (("da11", False), ("lab", True)):
        recorder = declared(stack)
        assert {args.inputs["alwaysPxe"] for args in recorder.of(_DEVICE)} == {always}
        assert recorder.one(f"{stack}-bootstrap").inputs["alwaysPxe"] is True, "it runs from memory, wherever it is"


def test_an_installed_machine_is_installed_again_by_what_it_was_ordered_with() -> None:
    devices = {name: each for name, each in _machines(_da11()).items() if name != "da11-bootstrap"}
    assert len({device["ipxeScriptUrl"] for device in devices.values()}) == len(devices), "each has its own"
    for name, device in devices.items():
        installation = _da11().inputs(f"{name}-installation")
        assert (installation["platform"], installation["ordered"]) == ("equinix-metal", True)
        assert [installation[key] for key in ("ipxeScriptUrl", "userData")] == [
            device[key] for key in ("ipxeScriptUrl", "userData")
        ]


# --- the API's address ---------------------------------------------------------------------------------------------


def _announcing(recorder: Recorder) -> set[str]:
    """The machines that run kube-vip."""
    configs = {name: json.loads(machine["userData"]) for name, machine in _machines(recorder).items()}
    units = {name: [unit["name"] for unit in config["systemd"]["units"]] for name, config in configs.items()}
    return {name for name, names in units.items() if "metal-ipi-kube-vip.service" in names}


def test_an_address_is_announced_by_whoever_serves_the_api() -> None:
    recorder = declared(apiAddress={"type": "kube-vip"})
    assert recorder.outputs["api"]["address"] == "192.0.2.130"
    lasting = _records(recorder, "dns-api-records")
    assert lasting[f"api.{_DOMAIN}"] == lasting[f"api-int.{_DOMAIN}"] == ["192.0.2.130"]
    assert list(_records(recorder, "dns-bootstrap-records")) == [f"da11-bootstrap.{_DOMAIN}"]
    block = recorder.one("api-address").inputs
    assert (block["type"], block["quantity"], block["facility"]) == ("public_ipv4", 1, "da11")
    assert set(block["tags"]) >= {"metal-ipi:stack=da11", f"metal-ipi:cluster={_DOMAIN}"}
    sessions = {session.name: session.inputs["addressFamily"] for session in recorder.of(_SESSION)}
    assert sessions == {f"{node}-bgp": "ipv4" for node in _CONTROL_PLANE}
    assert recorder.one("da11-bootstrap").inputs["bgp"] is True
    assert _announcing(recorder) == {*_CONTROL_PLANE, "da11-bootstrap"}


def test_an_address_of_ones_own_is_not_reserved() -> None:
    recorder = declared(apiAddress={"type": "kube-vip", "address": "198.51.100.77"})
    assert recorder.outputs["api"]["address"] == "198.51.100.77" and recorder.of(_BLOCK) == []
    files = node_files(recorder.inputs("da11-bootstrap")["userData"])
    assert "ADDRESS=198.51.100.77\n" in files["/etc/metal-ipi/kube-vip.env"]


def test_an_external_load_balancer_is_only_named() -> None:
    balancer = {"type": "external", "address": "198.51.100.77"}
    recorder = declared(apiAddress=balancer, machineConfigServer={"allowedNetworks": ["198.51.100.64/28"]})
    assert _records(recorder, "dns-api-records")[f"api.{_DOMAIN}"] == ["198.51.100.77"]
    assert recorder.of(_SESSION) == [] and _announcing(recorder) == set()
    assert "bgp" not in recorder.one("da11-bootstrap").inputs


# --- the node image ------------------------------------------------------------------------------------------------


def _ordered(recorder: Recorder) -> list[str]:
    """Machines, and what installs them."""
    kinds = {_DEVICE, "metal-ipi:index:EphemeralMachine", "metal-ipi:index:Installation"}
    return [each.name for each in recorder.resources if each.typ in kinds]


def test_what_forms_a_cluster_in_memory_gives_back_the_node_image_and_nothing_else_does() -> None:
    (file,) = node_image.files()
    # `-`: a step that fails does not fail the service, on which all of the bootstrap machine's services wait.
    step = "ExecStartPost=-/usr/bin/rm -rf /var/ostree-container/repo /var/ostreecontainer/repo"
    assert (file.text, file.mode) == (f"[Service]\n{step}\n", 0o644)
    assert file.path == "/etc/systemd/system/node-image-pull.service.d/10-metal-ipi.conf"
    given = {each: _da11().inputs(each).get("userData") for each in _ordered(_da11())}
    pointers = {name: text for name, text in given.items() if text is not None}
    assert len(pointers) == 13, "of seven machines, and of six installations"
    assert [name for name, text in pointers.items() if file.path in node_files(text)] == ["da11-bootstrap"]
    rack = rack7()
    assert file.path in node_files(rack.inputs("bootstrap-ignition")["files"]["bootstrap.ign"])
    # The live systems that install servers form no cluster; that of a single node does: see test_in_place.
    live = [text for name, text in rack.inputs("control-plane-installers")["files"].items() if name.endswith(".ign")]
    assert len(live) == 3 and not [text for text in live if file.path in node_files(text)]


@pytest.mark.parametrize(("stack", "protects"), [("da11", True), ("lab", False)])
def test_what_is_lost_for_good_is_protected_unless_the_stack_says_otherwise(stack: str, protects: bool) -> None:
    requests = declared(stack).requests
    found = {name for name, request in requests.items() if request.protect}
    assert found == ({"keys", *(f"{node}-device" for node in _CONTROL_PLANE)} if protects else set())
