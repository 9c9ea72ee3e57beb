"""Who waits for whom, what is secret, and what changes with the shape of a cluster."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import pytest
import yaml

from stacks.program import main
from tests.mocks import Recorder, config_text, is_secret, plain, run
from tests.stacks.answers import ANSWERS, ASSETS, SEED, left_behind, settings, stack_file

_DEVICE = "equinix-metal:index/device:Device"
_GATE = "metal-ipi:index:Gate"
_CHECK = "command:remote:Command"
_NODES = [f"da11-{role}-{number}" for role in ("control-plane", "worker") for number in range(3)]


def _run(**changes: Any) -> tuple[Recorder, dict[str, Any]]:
    recorder = Recorder(ANSWERS)
    return recorder, run(main, recorder, settings(**changes), stack="da11")


@cache
def _da11() -> tuple[Recorder, dict[str, Any]]:
    """The stack as it is committed; read only."""
    return _run()


def _platform(**changes: Any) -> dict[str, Any]:
    platform = {**stack_file("da11")["platform"], **changes}
    return {key: value for key, value in platform.items() if value is not None}


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("da11-bootstrap", {"boot-scripts", "identities", "bootstrap-ignition", "platform-ssh-key"}),
        (
            "da11-control-plane-0-device",
            {"control-plane-boot-scripts", "identities", "install-assets-create", "platform-ssh-key"},
        ),
        ("da11-worker-2-device", {"workers-boot-scripts", "identities", "install-assets-create", "platform-ssh-key"}),
        ("bootstrap-reachable", {"da11-bootstrap"}),
        ("api-answers", {"bootstrap-reachable", "dns-api-records", "dns-bootstrap-records"}),
        ("bootstrap-complete", {"api-answers"}),
        ("control-plane-checks-reachable", {f"da11-control-plane-{number}-device" for number in range(3)}),
        ("da11-control-plane-1-check", {"control-plane-checks-reachable"}),
        (
            "bootstrap-removal-removed",
            {"bootstrap-complete", *(f"da11-control-plane-{number}-check" for number in range(3))},
        ),
        ("da11-worker-1-check", {"worker-checks-reachable"}),
        ("nodes-ready", {"bootstrap-complete"}),
        (
            "install-complete",
            {
                "nodes-ready",
                "bootstrap-removal-removed",
                "dns-ingress-records",
                *(f"da11-worker-{number}-check" for number in range(3)),
            },
        ),
    ],
)
def test_each_step_waits_for_the_one_before(later: str, earlier: set[str]) -> None:
    recorder, _ = _da11()
    assert earlier <= recorder.depends_on(later)


def test_nothing_waits_that_need_not() -> None:
    recorder, _ = _da11()
    gates = {gate.name for gate in recorder.of(_GATE)}
    for node in _NODES:
        assert not recorder.after(f"{node}-device") & {*gates, "dns-api-records", "da11-bootstrap"}, "ordered at once"
    assert not {name for name in recorder.after("bootstrap-complete") if "worker" in name}, (
        "a slow worker delays nobody"
    )
    # Control plane and workers are checked while bootstrap goes on; only the removal waits for both.
    assert recorder.after("da11-control-plane-0-check") & gates == {"control-plane-checks-reachable"}
    assert recorder.after("da11-worker-0-check") & gates == {"worker-checks-reachable"}
    assert not {name for name in recorder.after("bootstrap-removal-removed") if name.endswith("-worker-0-check")}
    assert recorder.after("install-complete") >= gates - {"install-complete"}


def test_a_server_is_claimed_before_it_is_lent() -> None:
    recorder = Recorder(ANSWERS)
    stack = stack_file("rack7")
    boot = {**stack["boot"], "streamFile": "stacks/rhcos-4.21.json"}
    run(main, recorder, config_text({**stack, "boot": boot, "rehearsal": True}), stack="rack7", preview=True)
    assert "rack7-worker-0-server" in recorder.depends_on("rack7-bootstrap")
    assert recorder.after("rack7-worker-0-server") & {"rack7-bootstrap"} == set()


def test_every_resource_takes_its_explicit_provider() -> None:
    recorder, _ = _da11()
    for name, request in recorder.requests.items():
        wanted = {"metal-ipi:index": "::metal-ipi::", "equinix-metal:index/": "::platform-provider::"}
        for prefix, provider in wanted.items():
            if request.type.startswith(prefix):
                assert provider in request.provider, name


def test_gates_have_their_own_timeouts_and_kinds() -> None:
    timeouts = {
        "machinesActive": 11,
        "machinesReachable": 12,
        "apiAnswers": 13,
        "bootstrapComplete": 14,
        "nodesReady": 15,
        "installComplete": 16,
    }
    recorder, _ = _run(timeouts=timeouts)
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


@pytest.mark.parametrize(("stack", "stable"), [("da11", 30), ("lab", 1)])
def test_a_cluster_must_stay_complete_for_a_while(stack: str, stable: int) -> None:
    recorder = Recorder(ANSWERS)
    run(main, recorder, settings(stack), stack=stack)
    assert recorder.one("install-complete").inputs["stabilitySeconds"] == stable


def test_certificate_requests_are_approved_for_our_machines_only() -> None:
    recorder, _ = _da11()
    spec = plain(recorder.one("nodes-ready").inputs["spec"])
    full = [f"{node}.da11.metal.example.com" for node in _NODES]
    assert spec["names"] == full
    devices = {device.name: ANSWERS[_DEVICE](device) for device in recorder.of(_DEVICE)}
    assert spec["addresses"] == {
        f"{node}.da11.metal.example.com": [
            devices[f"{node}-device"]["accessPublicIpv4"],
            devices[f"{node}-device"]["accessPrivateIpv4"],
        ]
        for node in _NODES
    }


def test_what_is_secret_is_marked_and_what_is_not_is_readable() -> None:
    recorder, outputs = _da11()
    for section in ("metal", "dns", "artifacts"):
        assert is_secret(recorder.one("metal-ipi").inputs[section])
    assert is_secret(recorder.one("platform-provider").inputs["authToken"])
    for name in ("boot-scripts", "identities", "bootstrap-ignition"):
        assert is_secret(recorder.one(name).inputs["files"])
        assert is_secret(recorder.one(name).inputs["pathSeed"])
    assert is_secret(recorder.one("install-assets-create").inputs["stdin"])
    assert {"stdout", "stderr"} <= set(recorder.requests["install-assets-create"].additionalSecretOutputs)
    for check in recorder.of(_CHECK):
        assert is_secret(check.inputs["connection"])
        assert not is_secret(check.inputs["create"])
    for name in ("nodes-ready", "install-complete", "bootstrap-complete"):
        assert is_secret(recorder.one(name).inputs["spec"])
    for machine in [*recorder.of(_DEVICE), recorder.one("da11-bootstrap")]:
        assert is_secret(machine.inputs["userData"])
        assert not is_secret(machine.inputs["ipxeScriptUrl"])
    assert outputs["kubeadminPassword"] == "swordfish"


def test_secrets_stand_in_no_readable_input() -> None:
    recorder, _ = _da11()
    hidden = [SEED, "swordfish", "PRIVATE KEY", "BEGIN CERTIFICATE REQUEST", json.loads(ASSETS)["kubeconfig"]]
    for args in recorder.resources:
        readable = json.dumps(_without_secrets(args.inputs))
        assert not [secret for secret in hidden if json.dumps(secret)[1:-1] in readable], args.name


def _without_secrets(value: Any) -> Any:
    if is_secret(value):
        return None
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def _records(recorder: Recorder, name: str) -> dict[str, list[str]]:
    return {record["name"]: record["values"] for record in plain(recorder.one(name).inputs["records"]).values()}


def test_without_workers_the_control_plane_takes_ingress() -> None:
    recorder, outputs = _run(workers={"count": 0})
    domain = "da11.metal.example.com"
    records = _records(recorder, "dns-api-records") | _records(recorder, "dns-ingress-records")
    assert records[f"*.apps.{domain}"] == records[f"api.{domain}"] == records[f"api-int.{domain}"]
    assert len(records[f"api.{domain}"]) == 3
    assert "worker-checks" not in recorder.requests and "worker-checks-reachable" not in recorder.requests
    assert len(outputs["nodes"]) == 3
    assert {"nodes-ready", "bootstrap-removal-removed"} <= recorder.depends_on("install-complete")


def test_with_workers_they_take_ingress_and_the_bootstrap_address_stands_apart() -> None:
    recorder, _ = _da11()
    domain = "da11.metal.example.com"
    lasting = _records(recorder, "dns-api-records") | _records(recorder, "dns-ingress-records")
    temporary = _records(recorder, "dns-bootstrap-records")
    assert lasting[f"*.apps.{domain}"] == [lasting[f"da11-worker-{number}.{domain}"][0] for number in range(3)]
    assert set(temporary) == {f"api.{domain}", f"api-int.{domain}", f"da11-bootstrap.{domain}"}
    assert "198.51.100.250" not in lasting[f"api.{domain}"]
    removal = recorder.one("bootstrap-removal-removed").inputs
    assert {record["name"]: record["values"] for record in plain(removal["records"])} == temporary
    assert removal["drainSeconds"] == 30
    assert removal["artifactsFiles"] == ["bootstrap.ign"]
    assert recorder.one("bootstrap-ignition").inputs["ephemeral"] is True
    assert recorder.one("dns-bootstrap-records").inputs["ephemeral"] is True
    assert recorder.one("dns-api-records").inputs["ephemeral"] is False


def test_a_single_node_is_a_whole_cluster() -> None:
    recorder, outputs = _run(controlPlane={"count": 1}, workers={"count": 0})
    assert [device.name for device in recorder.of(_DEVICE)] == ["da11-control-plane-0-device"]
    assert [node["name"] for node in outputs["nodes"]] == ["da11-control-plane-0.da11.metal.example.com"]
    request = json.loads(plain(recorder.one("install-assets-create").inputs["stdin"]))
    assert yaml.safe_load(request["installConfig"])["controlPlane"]["replicas"] == 1


@pytest.mark.parametrize("workers", [0, 3])
def test_routers_run_where_their_names_point(workers: int) -> None:
    """With 0 workers told, the installer lets pods run on the control plane (pkg/asset/manifests/scheduler.go)."""
    recorder, _ = _run(workers={"count": workers})
    request = json.loads(plain(recorder.one("install-assets-create").inputs["stdin"]))
    (pool,) = yaml.safe_load(request["installConfig"])["compute"]
    role = "worker" if workers else "control-plane"
    nodes = [args.name.removesuffix("-device") for args in recorder.of(_DEVICE) if role in args.name]
    records = _records(recorder, "dns-api-records") | _records(recorder, "dns-ingress-records")
    domain = "da11.metal.example.com"
    assert pool["replicas"] == workers
    assert records[f"*.apps.{domain}"] == [records[f"{node}.{domain}"][0] for node in nodes]


@pytest.mark.parametrize(
    ("place", "metro", "facilities"),
    [
        ({"facilities": ["da6", "da11"]}, None, ["da6", "da11"]),
        ({"facilities": None, "metro": "da"}, "da", None),
    ],
)
def test_machines_are_ordered_in_a_facility_or_a_metro(
    place: dict[str, Any], metro: str | None, facilities: list[str] | None
) -> None:
    recorder, _ = _run(platform=_platform(**place))
    for args in [*recorder.of(_DEVICE), recorder.one("da11-bootstrap")]:
        assert (args.inputs.get("metro"), args.inputs.get("facilities")) == (metro, facilities), args.name


def test_machines_carry_the_plan_and_tags_of_their_role() -> None:
    recorder, _ = _da11()
    plans = {name: recorder.one(f"da11-{name}-0-device").inputs["plan"] for name in ("control-plane", "worker")}
    assert plans == {"control-plane": "c3.medium.x86", "worker": "m3.large.x86"}
    assert recorder.one("da11-bootstrap").inputs["plan"] == "c3.small.x86"
    assert recorder.one("da11-worker-1-device").inputs["tags"] == [
        "metal-ipi",
        "metal-ipi:stack=da11",
        "metal-ipi:cluster=da11.metal.example.com",
        "metal-ipi:name=da11-worker-1",
        "metal-ipi:role=worker",
        "metal-ipi:run=keys-id",
    ]


def test_nothing_reinstalls_or_reorders_running_machines_by_itself() -> None:
    recorder = Recorder(left_behind(bootstrap_complete=("metal-ipi:install:BootstrapGates$metal-ipi:index:Gate", {})))
    run(main, recorder, settings(), stack="da11")
    kept = {"userData", "plan", "metro", "facilities", "operatingSystem", "projectId", "projectSshKeyIds",
            "hardwareReservationId", "terminationTime", "customData", "ipAddresses"}  # fmt: skip
    assert set(recorder.requests["da11-worker-0-device"].ignoreChanges) == kept
    assert "stdin" in recorder.requests["install-assets-create"].ignoreChanges, "the cluster's certificates stay"


def test_an_existing_project_is_used() -> None:
    recorder, _ = _da11()
    assert recorder.of("equinix-metal:index/project:Project") == []
    ids = {device.inputs["projectId"] for device in recorder.of(_DEVICE)}
    assert ids == {stack_file("da11")["platform"]["projectId"]}


def test_a_project_is_created_when_asked_for() -> None:
    owner = "11111111-2222-4333-8444-555555555555"
    recorder, _ = _run(platform=_platform(projectId=None, projectName="ocp", organizationId=owner))
    (project,) = recorder.of("equinix-metal:index/project:Project")
    assert (project.inputs["name"], project.inputs["organizationId"]) == ("ocp", owner)
    assert project.inputs["bgpConfig"] == {"deploymentType": "local", "asn": 65000}
    users = [*recorder.of(_DEVICE), recorder.one("da11-bootstrap"), recorder.one("platform-ssh-key")]
    assert {user.inputs["projectId"] for user in users} == {"platform-project-id"}


def test_an_installed_machine_does_not_loop_into_the_network() -> None:
    for stack, always in (("da11", False), ("lab", True)):
        recorder = Recorder(ANSWERS)
        run(main, recorder, settings(stack))
        assert {args.inputs["alwaysPxe"] for args in recorder.of(_DEVICE)} == {always}
        assert recorder.one(f"{stack}-bootstrap").inputs["alwaysPxe"] is True, "it runs from memory, wherever it is"


def test_an_installed_machine_is_installed_again_by_what_it_was_ordered_with() -> None:
    recorder, _ = _run(boot={**stack_file("da11")["boot"], "install": {"device": {"smallest": True}}})
    devices = recorder.of(_DEVICE)
    scripts = {device.inputs["ipxeScriptUrl"] for device in devices}
    assert len(scripts) == len(devices), "each has its own"
    for device in devices:
        installation = recorder.one(f"{device.name.removesuffix('-device')}-installation").inputs
        assert (installation["platform"], installation["ordered"]) == ("equinix-metal", True)
        assert plain(installation["ipxeScriptUrl"]) == device.inputs["ipxeScriptUrl"]
        assert plain(installation["userData"]) == plain(device.inputs["userData"])


_VIP_UNIT = "metal-ipi-kube-vip.service"


def _units(machine: Any) -> set[str]:
    config = json.loads(plain(machine.inputs["userData"]))
    return {unit["name"] for unit in config["systemd"]["units"]}


def test_an_address_is_announced_by_whoever_serves_the_api() -> None:
    recorder, outputs = _run(apiAddress={"type": "kube-vip"})
    domain = "da11.metal.example.com"
    assert outputs["api"]["address"] == "192.0.2.130"
    lasting = _records(recorder, "dns-api-records")
    assert lasting[f"api.{domain}"] == lasting[f"api-int.{domain}"] == ["192.0.2.130"]
    assert list(_records(recorder, "dns-bootstrap-records")) == [f"da11-bootstrap.{domain}"]
    block = recorder.one("api-address").inputs
    assert (block["type"], block["quantity"], block["facility"]) == ("public_ipv4", 1, "da11")
    assert set(block["tags"]) >= {"metal-ipi:stack=da11", f"metal-ipi:cluster={domain}"}
    announcing = {f"da11-control-plane-{number}" for number in range(3)}
    sessions = recorder.of("equinix-metal:index/bgpSession:BgpSession")
    assert {session.name.removesuffix("-bgp") for session in sessions} == announcing
    assert all(session.inputs["addressFamily"] == "ipv4" for session in sessions)
    assert recorder.one("da11-bootstrap").inputs["bgp"] is True
    for machine in [*recorder.of(_DEVICE), recorder.one("da11-bootstrap")]:
        name = machine.name.removesuffix("-device")
        assert (_VIP_UNIT in _units(machine)) == (name in {*announcing, "da11-bootstrap"}), name


def test_an_address_of_ones_own_is_not_reserved() -> None:
    recorder, outputs = _run(apiAddress={"type": "kube-vip", "address": "198.51.100.77"})
    assert outputs["api"]["address"] == "198.51.100.77"
    assert recorder.of("equinix-metal:index/reservedIpBlock:ReservedIpBlock") == []
    files = json.loads(plain(recorder.one("da11-bootstrap").inputs["userData"]))["storage"]["files"]
    text = next(file for file in files if file["path"] == "/etc/metal-ipi/kube-vip.env")["contents"]["source"]
    assert "ADDRESS=198.51.100.77\n" in base64.b64decode(text.partition(",")[2]).decode()


def test_an_external_load_balancer_is_only_named() -> None:
    recorder, _ = _run(
        apiAddress={"type": "external", "address": "198.51.100.77"},
        machineConfigServer={"allowedNetworks": ["198.51.100.64/28"]},
    )
    assert _records(recorder, "dns-api-records")["api.da11.metal.example.com"] == ["198.51.100.77"]
    assert recorder.of("equinix-metal:index/bgpSession:BgpSession") == []
    machines = [*recorder.of(_DEVICE), recorder.one("da11-bootstrap")]
    assert not any(_VIP_UNIT in _units(machine) for machine in machines)
    assert "bgp" not in recorder.one("da11-bootstrap").inputs
