"""What the hub's API is given first."""

from __future__ import annotations

import json
from pathlib import Path

from lab.hub import images, objects

ALL = objects.all_of(Path("/volumes"))


def of(kind: str) -> list[objects.Object]:
    return [each for each in ALL if each["kind"] == kind]


def test_paths_are_the_apis() -> None:
    """With the namespace where the kind has one."""
    paths = [objects.path(each) for each in ALL]
    assert len(set(paths)) == len(paths)
    assert "/api/v1/namespaces/kube-system/services/kube-dns" in paths
    assert "/apis/apps/v1/namespaces/local-path-storage/deployments/local-path-provisioner" in paths
    assert "/apis/storage.k8s.io/v1/storageclasses/local-path" in paths


def test_roles_are_given_to_the_accounts_that_pods_have() -> None:
    """Also to the one that the provisioner's own pods get from its command line."""
    accounts = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in of("ServiceAccount")}
    bound = of("ClusterRoleBinding") + of("RoleBinding")
    assert {(who["namespace"], who["name"]) for each in bound for who in each["subjects"]} == accounts
    roles = {each["metadata"]["name"] for each in of("ClusterRole") + of("Role")}
    assert {each["roleRef"]["name"] for each in bound} == roles
    pods = [(each["metadata"]["namespace"], each["spec"]["template"]["spec"]) for each in of("Deployment")]
    assert {(namespace, pod["serviceAccountName"]) for namespace, pod in pods} == accounts
    (provisioner,) = dict(pods)["local-path-storage"]["containers"]
    assert "--service-account-name=local-path-provisioner" in provisioner["command"]


def test_images_are_the_hubs_own() -> None:
    """Nothing is pulled from outside, not even by the pods that make directories."""
    known = {each.reference for each in images.ALL}
    used = [
        each["image"]
        for deployment in of("Deployment")
        for each in deployment["spec"]["template"]["spec"]["containers"]
    ]
    (config,) = (each["data"] for each in of("ConfigMap") if "helperPod.yaml" in each["data"])
    used += [each["image"] for each in json.loads(config["helperPod.yaml"])["spec"]["containers"]]
    assert set(used) <= known
    assert len(used) == 4


def test_volumes_are_below_the_directory_that_is_named() -> None:
    (config,) = (each["data"] for each in of("ConfigMap") if "config.json" in each["data"])
    assert json.loads(config["config.json"])["nodePathMap"][0]["paths"] == ["/volumes"]
