"""What comes when a cluster is complete: what cannot go together, what is declared, in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.addons.objects import ObjectsError
from tests.mocks import is_secret, plain
from tests.stacks.answers import declared, problems, settings, tells
from tests.stacks.rack import SECRET, rack_declared, rack_problems

_LVM = {"disks": ["/dev/disk/by-path/pci-1"], "role": "worker"}
_OKD = {"distribution": "okd"}
_WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "namespace": "example"},
    "spec": {"size": 1},
}
_OPERATOR: dict[str, Any] = {
    "package": "example-operator",
    "namespace": "example",
    "objects": [{"manifest": _WIDGET, "waitFor": "condition=Ready"}],
}
_HEALTH = {"minHealthyPercent": 50}
_BEGUN = {"capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["marketplace"]}}


@pytest.mark.parametrize(
    ("changes", "path", "why", "remedy"),
    [
        ({"install": _OKD, "dayTwo": {"lvmStorage": _LVM}}, "dayTwo.catalog", "OKD has no such", "community-operators"),
        (
            {
                "dayTwo": {"catalog": "mine", "operators": [{**_OPERATOR, "catalog": "redhat-operators"}]},
                "install": _OKD,
            },
            "dayTwo.operators[0].catalog",
            "OKD has no such catalogue",
            "community-operators",
        ),
        (
            {"dayTwo": {"operators": [_OPERATOR]}, "installConfig": _BEGUN},
            "installConfig.capabilities.additionalEnabledCapabilities",
            "dayTwo needs OperatorLifecycleManager",
            "add OperatorLifecycleManager",
        ),
        (
            {
                "dayTwo": {"lvmStorage": _LVM},
                "boot__install__device": {"deviceName": _LVM["disks"][0]},
            },
            "dayTwo.lvmStorage.disks[0]",
            "worker-0, worker-4 would be installed to this disk",
            "give another disk",
        ),
        (
            {"dayTwo": {"nodeHealthCheck": {}}},
            "dayTwo.nodeHealthCheck.minHealthyPercent",
            "all 2 nodes would have to be healthy",
            "set it to 50 or less",
        ),
        (
            {"dayTwo": {"nodeHealthCheck": _HEALTH}, "platform__bmc__fingerprint": f"sha256:{'0' * 64}"},
            "dayTwo.nodeHealthCheck.verifyCertificates",
            "an authority that the fence agent does not trust",
            "set it to false",
        ),
        (
            {
                "dayTwo": {"nodeHealthCheck": _HEALTH},
                "platform__servers__0__bmc": {"address": "https://10.0.0.14", "systemId": "blade-1"},
            },
            "dayTwo.nodeHealthCheck",
            "not for those of worker-0",
            "set bmc.systemId for all",
        ),
        (
            {"dayTwo": {"operators": [_OPERATOR, {**_OPERATOR, "objects": []}]}},
            "dayTwo.operators[1].package",
            "dayTwo.operators[0] has it already",
            "keep one of the two",
        ),
        (
            {"dayTwo": {"lvmStorage": _LVM, "operators": [{"package": "lvms-operator", "namespace": "x"}]}},
            "dayTwo.operators[0].package",
            "dayTwo.lvmStorage has it already",
            "keep one of the two",
        ),
        (
            {"dayTwo": {"operators": [_OPERATOR, {"package": "b", "namespace": "example"}]}},
            "dayTwo.operators[1].namespace",
            "dayTwo.operators[0] is in it, too",
            "a namespace of its own",
        ),
        (
            {"dayTwo": {"lvmStorage": _LVM, "operators": [{"package": "b", "namespace": "openshift-storage"}]}},
            "dayTwo.operators[0].namespace",
            "dayTwo.lvmStorage is in it, too",
            "a namespace of its own",
        ),
        (
            {"dayTwo": {"lvmStorage": _LVM}, "workers__taints": [{"key": "a", "effect": "NoExecute"}]},
            "workers.taints",
            "worker-0, worker-4 are the only nodes for pods",
            "PreferNoSchedule",
        ),
        (
            {"dayTwo": {"registry": {"type": "claim", "replicas": 2}}},
            "dayTwo.registry.replicas",
            "mounted by one pod",
            "ReadWriteMany",
        ),
        (
            {"dayTwo": {"lvmStorage": _LVM, "registry": {"type": "claim", "storageClass": "lvms-vg2"}}},
            "dayTwo.registry.storageClass",
            "LVM Storage has no such storage class",
            "set it to lvms-vg1",
        ),
        (
            {"dayTwo": {"lvmStorage": _LVM, "registry": {"type": "claim", "access": "ReadWriteMany"}}},
            "dayTwo.registry.access",
            "is on one node",
            "ReadWriteOnce",
        ),
    ],
)
def test_what_cannot_go_together(changes: dict[str, Any], path: str, why: str, remedy: str) -> None:
    assert tells(rack_problems(**changes), path, why, remedy)


def test_machines_whose_bmcs_nobody_reaches_are_not_fenced() -> None:
    found = problems(settings(dayTwo={"nodeHealthCheck": {"minHealthyPercent": 1}}))
    assert tells(found, "dayTwo.nodeHealthCheck", "Equinix Metal gives no access to the BMCs", "platform.type redfish")


def test_roles_without_machines_are_told() -> None:
    found = problems(settings(workers={"count": 0}, dayTwo={"lvmStorage": _LVM}, serviceAddresses={"type": "none"}))
    assert tells(found, "dayTwo.lvmStorage.role", "there is no machine of this role", "name the other role")


def test_operators_come_when_the_cluster_is_complete_and_one_waits_for_the_other_only_where_it_must() -> None:
    recorder = rack_declared(
        dayTwo={
            "lvmStorage": _LVM,
            "nodeHealthCheck": _HEALTH,
            "operators": [_OPERATOR],
            "registry": {"type": "claim", "storageClass": "lvms-vg1"},
        }
    )
    for first, second in (
        ("install-complete", "day-two-example-namespace"),
        ("day-two-example-namespace", "day-two-example-operator-group"),
        ("day-two-example-operator-group", "day-two-example-operator-subscription"),
        ("day-two-example-operator-subscription", "day-two-example-operator"),
        ("day-two-example-operator", "day-two-example-operator-widget-example.a"),
        (
            "day-two-fence-agents-remediation-fenceagentsremediationtemplate-openshift-workload-availability.bmc",
            "day-two-node-healthcheck-operator-nodehealthcheck-worker-bmc",
        ),
        ("day-two-lvms-operator-lvmcluster-openshift-storage.lvmcluster", "image-registry-claim"),
        ("image-registry-claim", "image-registry-configuration"),
        ("image-registry-configuration", "image-registry-available"),
    ):
        assert first in recorder.after(second), second
    assert not any("lvms" in name for name in recorder.after("day-two-example-operator-widget-example.a"))
    widget = recorder.inputs("day-two-example-operator-widget-example.a")
    assert widget["metadata"]["annotations"] == {"pulumi.com/waitFor": "condition=Ready"}
    configuration = recorder.inputs("image-registry-configuration")
    claim = recorder.inputs("image-registry-claim")["metadata"]["name"]
    assert configuration["spec"]["storage"] == {"managementState": "Unmanaged", "pvc": {"claim": claim}}
    assert configuration["spec"]["rolloutStrategy"] == "Recreate"
    for name in ("image-registry-claim", "image-registry-configuration"):
        assert recorder.requests[name].retainOnDelete, "images stay when the setting goes"
    assert recorder.inputs("image-registry-provider")["upsertExistingObjects"], "and are there when it comes again"


@pytest.mark.parametrize("changes", [{"size": 20}, {"storageClass": "b"}, {"access": "ReadWriteMany"}])
def test_another_volume_has_another_name_so_that_it_is_there_before_the_one_in_use_goes(
    changes: dict[str, Any],
) -> None:
    names = [
        rack_declared(dayTwo={"registry": {"type": "claim", **each}}).inputs("image-registry-claim")["metadata"]["name"]
        for each in ({}, changes, {})
    ]
    assert names[0] == names[2] != names[1]


def test_objects_of_a_kind_may_have_the_same_name_in_several_namespaces() -> None:
    objects = [
        {"manifest": {**_WIDGET, "metadata": {"name": name, **space}}}
        for name, space in (
            *(("b-c", {"namespace": "a"}), ("c", {"namespace": "a-b"})),
            *(("a", {"namespace": "b"}), ("b-a", {})),
        )
    ]
    recorder = rack_declared(dayTwo={"operators": [{**_OPERATOR, "objects": objects}]})
    assert len([name for name in recorder.requests if "-widget-" in name]) == len(objects)


def test_accounts_of_bmcs_stand_in_one_secret_and_nowhere_else() -> None:
    recorder = rack_declared(dayTwo={"nodeHealthCheck": _HEALTH})
    secret = recorder.one("day-two-fence-agents-remediation-bmc-of-worker-0")
    assert is_secret(secret.inputs["stringData"])
    assert plain(secret.inputs["stringData"])["--password"] == SECRET
    template: dict[str, Any] = recorder.inputs(
        "day-two-fence-agents-remediation-fenceagentsremediationtemplate-openshift-workload-availability.bmc"
    )["spec"]["template"]["spec"]
    assert SECRET not in json.dumps(template)
    nodes = ["rack-worker-0.rack.example.com", "rack-worker-4.rack.example.com"]
    assert template["nodeparameters"]["--ip"] == dict(zip(nodes, ("10.0.0.13", "10.0.0.14"), strict=True))
    assert template["nodeSecretNames"] == dict.fromkeys(nodes, "bmc-of-worker-0")


def test_the_keys_of_an_object_store_are_secret() -> None:
    registry = {"type": "s3", "bucket": "images", "endpoint": "https://store.example.com", "pathStyle": True}
    recorder = rack_declared(dayTwo={"registry": {**registry, "accessKeyId": "AK", "secretAccessKey": SECRET}})
    keys = recorder.one("image-registry-keys").inputs
    assert recorder.requests["image-registry-keys"].retainOnDelete, "the configuration still names it"
    assert is_secret(keys["stringData"])
    assert plain(keys["stringData"])["REGISTRY_STORAGE_S3_SECRETKEY"] == SECRET
    spec = recorder.inputs("image-registry-configuration")["spec"]
    assert spec["storage"]["s3"] == {
        "bucket": "images",
        "region": "us-east-1",
        "virtualHostedStyle": False,
        "regionEndpoint": "https://store.example.com",
    }
    assert SECRET not in json.dumps(spec)


@pytest.mark.parametrize(
    "registry",
    [
        {"type": "claim"},
        {"type": "s3", "bucket": "b", "accessKeyId": "AK", "secretAccessKey": SECRET},
        {"type": "removed"},
    ],
    ids=lambda registry: str(registry["type"]),
)
def test_the_registrys_operator_is_told_never_to_delete_images(registry: dict[str, Any]) -> None:
    """It says `Managed` of a temporary volume, and keeps saying so when the storage becomes a claim."""
    spec = rack_declared(dayTwo={"registry": registry}).inputs("image-registry-configuration")["spec"]
    assert spec["storage"]["managementState"] == "Unmanaged"


def test_nodes_get_the_marks_of_their_role_and_their_own() -> None:
    own = {"key": "a", "value": "own", "effect": "NoSchedule"}
    recorder = rack_declared(
        workers={"labels": {"x": "role", "y": "role"}, "taints": [{"key": "a", "effect": "NoSchedule"}]},
        platform__servers__0__labels={"x": "own"},
        platform__servers__0__taints=[own],
    )
    nodes = {each["name"]: each for each in recorder.inputs("node-marks")["nodes"]}
    worker = nodes["rack-worker-4.rack.example.com"]
    assert worker["labels"] == {"x": "own", "y": "role"}
    assert worker["taints"] == [own]
    assert set(nodes) == {"rack-worker-0.rack.example.com", "rack-worker-4.rack.example.com"}


def test_lvm_storage_tolerates_the_taints_of_its_nodes() -> None:
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    recorder = rack_declared(
        dayTwo={"lvmStorage": _LVM},
        workers={"taints": [{"key": "c", "effect": "PreferNoSchedule"}]},
        platform__servers__0__taints=[taint],
    )
    spec = recorder.inputs("day-two-lvms-operator-lvmcluster-openshift-storage.lvmcluster")["spec"]
    assert spec["tolerations"] == [{**taint, "operator": "Equal"}]


def test_a_cluster_without_any_of_this_has_no_resource_more() -> None:
    names = {each.name for each in declared().resources}
    assert not any(name.startswith(("day-two", "image-registry", "node-marks")) for name in names)


def test_objects_in_files_are_checked_before_anything_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metal_ipi.stacks.day_two.PROJECT", tmp_path)
    (tmp_path / "objects.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\nkind: [\n")
    (tmp_path / "second.yaml").write_text(f"{json.dumps(_WIDGET)}\n---\n{json.dumps({**_WIDGET, 'status': {}})}\n")
    objects = [{"file": name} for name in ("objects.yaml", "second.yaml", "third.yaml")]
    with pytest.raises(ObjectsError) as caught:
        rack_declared(dayTwo={"operators": [{**_OPERATOR, "objects": objects}]})
    told = "\n".join(caught.value.problems)
    assert "objects[0]: objects.yaml:6:" in told
    assert "objects[1]: second.yaml:3: it has status -> give apiVersion, kind, metadata, spec only" in told
    assert "objects[2]: third.yaml cannot be read" in told
