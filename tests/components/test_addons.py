"""What operators are given: what is wrong with objects, and what is made of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from metal_ipi.components.addons import ready_made
from metal_ipi.components.addons.objects import Given, ObjectsError, read
from metal_ipi.components.addons.operators import OperatorArgs, operator_group, subscription
from metal_ipi.provider.types import BEING_INSTALLED
from tests import golden

_WIDGET: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"apiVersion": "v1", "kind": "Secret"}, "apiVersion v1, kind Secret -> give those of a custom resource"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "Deployment of apps/v1 is Kubernetes' own"),
        ({"metadata": {"name": "A"}}, "metadata.name is 'A'"),
        ({"metadata": {}}, "metadata.name is None"),
        ({"metadata": {"name": "a", "namespace": "B"}}, "metadata.namespace is 'B'"),
        ({"metadata": {"name": "a", "uid": "1"}}, "it has metadata.uid -> give name, namespace, labels, annotations"),
        ({"metadata": {"name": "a", "labels": {"x": 1}}}, "metadata.labels are not texts"),
        ({"spec": []}, "spec is not an object"),
        ({"data": {}}, "it has data -> give apiVersion, kind, metadata, spec only"),
    ],
)
def test_what_is_wrong_with_an_object_is_told_with_its_place(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ObjectsError) as caught:
        read([Given(where="here", manifest={**_WIDGET, **change})])
    (problem,) = caught.value.problems
    assert problem.startswith("here: ")
    assert told in problem


def test_files_have_several_objects_and_one_may_say_itself_what_it_is_waited_for(tmp_path: Path) -> None:
    own = {"name": "b", "annotations": {"pulumi.com/waitFor": "condition=Own"}}
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump_all([_WIDGET, {**_WIDGET, "metadata": own}]))
    ((first, second),) = read([Given(where="here", file=file, wait_for="condition=Ready")])
    assert first["metadata"]["annotations"] == {"pulumi.com/waitFor": "condition=Ready"}
    assert second["metadata"]["annotations"] == own["annotations"]
    with pytest.raises(ObjectsError, match=r"Widget a is in here: two.yaml:1, too"):
        read([Given(where="here", file=file), Given(where="there", manifest=_WIDGET)])


def test_what_is_made_of_settings() -> None:
    bmcs = [
        ready_made.NodeBmc(node="w0", address="https://10.0.0.1", system_id=None, secret="bmc"),
        ready_made.NodeBmc(node="w1", address="https://10.0.0.2:8443", system_id="blade-2", secret="own"),
    ]
    args = OperatorArgs(package="p", namespace="n", catalog="c", channel="stable", starting_csv="p.v1", manual=True)
    made = [
        operator_group("n", everywhere=False),
        subscription(args),
        ready_made.lvm_cluster(
            name="vg1",
            disks=["/dev/disk/by-id/x"],
            role=None,
            wipe=True,
            filesystem="xfs",
            size_percent=90,
            overprovision_ratio=10,
        ),
        ready_made.nmstate(),
        ready_made.network_policy("a", {"routes": {}}, role="worker", max_unavailable=2),
        ready_made.fencing_template(bmcs, verify=True),
        ready_made.health_check("worker", spared=BEING_INSTALLED, unhealthy_after=300, min_healthy_percent=51),
    ]
    golden.check("day-two.yaml", yaml.safe_dump_all(made, sort_keys=False))
