"""A stack that Cluster API installs on a hub: its objects, what is declared, what is refused, what stays secret."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pulumi
import pytest
import trustme
import yaml
from pydantic import BaseModel, SecretStr

from metal_ipi.components.cluster_api.objects import manifest_secrets, objects, template
from metal_ipi.components.install.manifests import ManifestsError
from metal_ipi.stacks.cluster_api.program import wanted
from metal_ipi.stacks.cluster_api.settings import without_secrets
from metal_ipi.stacks.problems import SECRET_NAMES, SECRET_SECTIONS
from metal_ipi.stacks.settings import Settings
from tests import golden
from tests.conformance.facilities import ARBITER
from tests.mocks import Recorder, config_text, plain
from tests.stacks.answers import declared, rehearsed, settings, stack_file
from tests.stacks.rack import SECRET, rack, rack_problems, rack_settings


def _kubeconfig() -> str:
    authority = trustme.CA()
    client = authority.issue_cert("hub.test")

    def data(blob: trustme.Blob) -> str:
        return base64.b64encode(blob.bytes()).decode()

    cluster = {"server": "https://hub.test:6443", "certificate-authority-data": data(authority.cert_pem)}
    user = {
        "client-certificate-data": data(client.cert_chain_pems[0]),
        "client-key-data": data(client.private_key_pem),
    }
    return yaml.safe_dump({"clusters": [{"cluster": cluster}], "users": [{"user": user}]})


_THROUGH: dict[str, Any] = {
    "clusterApi": {"hub": {"kubeconfig": _kubeconfig()}},
    "boot": {"streamUrl": "https://mirror.test/stream.json", "install": {"device": {"smallest": True}}},
}


def _tree(**changes: Any) -> dict[str, Any]:
    return rack(**{**_THROUGH, **changes})


def _answer(args: pulumi.runtime.MockResourceArgs) -> Mapping[str, Any]:
    return {}


_HELD = {
    "cluster-api-kubeconfig": "the cluster's",
    "cluster-api-outputs": json.dumps({"nodes": [{"name": "a"}], "kubeadminPassword": SECRET, "api": {"url": "u"}}),
}
"""What Secrets of the cluster hold."""
_ANSWERS: dict[str, Any] = {
    **dict.fromkeys(
        (
            "metal-ipi:cluster_api:ManagedCluster",
            "kubernetes:core/v1:Namespace",
            "kubernetes:infrastructure.cluster.x-k8s.io/v1alpha1:MetalIpiCluster",
            "kubernetes:infrastructure.cluster.x-k8s.io/v1alpha1:MetalIpiMachineTemplate",
            "kubernetes:bootstrap.cluster.x-k8s.io/v1alpha1:OpenShiftConfigTemplate",
            "kubernetes:controlplane.cluster.x-k8s.io/v1alpha1:OpenShiftControlPlane",
            "kubernetes:cluster.x-k8s.io/v1beta2:Cluster",
            "kubernetes:cluster.x-k8s.io/v1beta2:MachineDeployment",
        ),
        _answer,
    ),
    "kubernetes:core/v1:Secret": lambda args: {
        "data": {"value": base64.b64encode(_HELD.get(args.name, "").encode()).decode()}
    },
    "metal-ipi:index:Gate": lambda args: {"passedAt": "now", "observed": "so", "waitedSeconds": 1.0},
}


def _declared(*, preview: bool = False, **changes: Any) -> Recorder:
    return declared("rack", _ANSWERS, values=config_text(_tree(**changes)), preview=preview)


def test_the_objects_of_a_rack() -> None:
    settings = rack_settings(**_THROUGH)
    public, secrets = without_secrets(_tree())
    assert sorted(secrets) == [
        "artifacts.secretAccessKey",
        "install.pullSecret",
        "platform.bmc.password",
    ]
    found = objects(wanted(settings, public, {}))
    assert SECRET not in str(found)
    golden.check("cluster-api-rack.yaml", yaml.safe_dump_all(found, sort_keys=False))


def _manifest(folder: Path, name: str, text: str = "kind: ConfigMap") -> str:
    """A folder with one manifest more."""
    (folder / f"{name}.yaml").write_text(
        f"apiVersion: v1\n{text}\nmetadata: {{name: {name}, namespace: default}}\ndata: {{key: {SECRET}}}\n"
    )
    return str(folder)


def test_manifests_become_secrets_that_the_control_plane_names(tmp_path: Path) -> None:
    chrony = {"machineConfig": {"ntpServers": ["ntp1.example.com"]}}  # the providers make these themselves
    recorder = _declared(install__manifests=[_manifest(tmp_path, "motd")], preview=True, **chrony)
    secret = plain(recorder.inputs("cluster-api-manifests-1"))
    assert list(secret["stringData"]) == ["motd.yaml"] and SECRET in secret["stringData"]["motd.yaml"]
    metadata = secret["metadata"]
    assert metadata["annotations"] == {"metal-ipi.cluster.x-k8s.io/manifests": "openshift"}
    assert "clusterctl.cluster.x-k8s.io/move" in metadata["labels"]
    control_plane = plain(recorder.inputs("cluster-api-openshiftcontrolplane"))["spec"]
    assert control_plane["manifestSecretRefs"] == [{"name": metadata["name"]}]
    assert "cluster-api-manifests-1" in recorder.after("cluster-api-openshiftcontrolplane")
    assert not recorder.requests["cluster-api-manifests-1"].protect
    told = plain(recorder.inputs("cluster-api-metalipicluster"))["spec"]["settings"]
    assert "manifests" not in told["install"], "the folder is on this machine"
    # Another content is another Secret: the providers see the one or the other.
    _manifest(tmp_path, "another")
    changed = _declared(install__manifests=[str(tmp_path)], preview=True, **chrony)
    assert plain(changed.inputs("cluster-api-manifests-1"))["metadata"]["name"] != metadata["name"]


def test_manifests_are_checked_before_anything_is_declared(tmp_path: Path) -> None:
    with pytest.raises(ManifestsError, match=r"motd\.yaml:1: Motd of v1 is not a kind"):
        _declared(install__manifests=[_manifest(tmp_path, "motd", "kind: Motd")], preview=True)


def test_no_secret_has_more_than_kubernetes_takes() -> None:
    files = {f"{number}.yaml": "x" * 400_000 for number in range(5)}
    found = manifest_secrets(wanted(rack_settings(**_THROUGH), {}, files))
    assert [list(each["stringData"]) for each in found] == [["0.yaml", "1.yaml"], ["2.yaml", "3.yaml"], ["4.yaml"]]


def test_clusterctl_s_template_has_the_same_objects_with_its_variables() -> None:
    golden.check("cluster-template.yaml", template())


def test_what_is_encrypted_or_in_a_list_is_a_secret_of_its_own_path() -> None:
    tree = {"lab": {"machines": "simulated"}, "platform": {"servers": [{"bmc": {"password": "x"}}, {"name": "b"}]}}
    encrypted = {"dns": {"tsig": {"secret": {"secure": "v1:abc"}, "name": "n"}}}
    public, secrets = without_secrets({**tree, **encrypted})
    assert public == {"platform": {"servers": [{"bmc": {}}, {"name": "b"}]}, "dns": {"tsig": {"name": "n"}}}
    assert secrets == {"platform.servers.0.bmc.password": "x", "dns.tsig.secret": {"secure": "v1:abc"}}


def test_options_of_lexicon_are_secrets_whatever_their_names() -> None:
    options = {"auth_token": SECRET, "auth_username": SECRET}
    public, secrets = without_secrets({"dns": {"type": "lexicon", "service": "gandi", "options": options}})
    assert public == {"dns": {"type": "lexicon", "service": "gandi", "options": {}}}
    assert secrets == {"dns.options.auth_token": SECRET, "dns.options.auth_username": SECRET}


def test_every_secret_of_the_model_is_known_by_its_path() -> None:
    found = set(_secrets(Settings, ()))
    assert "dns.options.*" in found
    assert "platform.bmc.password" in found
    known = {each for each in found if each.split(".")[-1] in SECRET_NAMES}
    assert {each.removesuffix(".*") for each in found - known} == SECRET_SECTIONS


def _secrets(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    """The paths of all SecretStr fields; `*` for those of any name."""
    if "SecretStr" in str(model.__annotations__.get("__pydantic_extra__")):
        yield ".".join((*path, "*"))
    for name, field in model.model_fields.items():
        place = (*path, field.alias or name)
        for kind in _named(field.annotation):
            if kind is SecretStr:
                yield ".".join(place)
            elif issubclass(kind, BaseModel):
                yield from _secrets(kind, place)


def _named(annotation: Any) -> Iterator[type]:
    arguments = get_args(annotation)
    if isinstance(annotation, type) and not arguments:
        yield annotation
    for each in arguments:
        yield from _named(each)


def test_the_stack_of_the_lab() -> None:
    """Its preview, and that its names stay; the wait comes last."""
    boot = {**stack_file("capi7")["boot"], "streamUrl": "https://mirror.test/stream.json"}
    values = settings("capi7", clusterApi=_THROUGH["clusterApi"], boot=boot)
    recorder = declared("capi7", _ANSWERS, values=values, preview=True)
    made = [args for args in recorder.resources if args.name not in _HELD]
    golden.check("urns-capi7.txt", "".join(f"{urn}\n" for urn in sorted(recorder.urn(args.name) for args in made)))
    objects_made = [plain(args.inputs) for args in made if args.typ.startswith("kubernetes:")]
    golden.check("preview-capi7.txt", yaml.safe_dump_all(objects_made))
    assert {
        "cluster-api-secret",
        "cluster-api-namespace",
        "cluster-api-metalipicluster",
        "cluster-api-openshiftcontrolplane",
    } <= recorder.after("cluster-api-cluster"), (
        "the Cluster goes first, and what gives its machines back stays until then"
    )
    assert {"cluster-api-cluster", "cluster-api-machinedeployment"} <= recorder.after("cluster-api-available")


@pytest.mark.parametrize("protect", [None, False])
def test_what_holds_the_cluster_is_protected_unless_the_stack_says_otherwise(protect: bool | None) -> None:
    requests = _declared(preview=True, **({} if protect is None else {"protect": protect})).requests
    found = {name.removeprefix("cluster-api-") for name, request in requests.items() if request.protect}
    all_of_it = {"namespace", "secret", "metalipicluster", "openshiftcontrolplane", "cluster"}
    assert found == (all_of_it if protect is None else set())


def test_the_kubeconfig_is_read_on_the_hub_when_the_cluster_is_available() -> None:
    recorder = _declared()
    assert recorder.outputs["kubeconfig"] == "the cluster's"
    assert recorder.outputs["nodes"] == [{"name": "a"}]
    assert recorder.outputs["kubeadminPassword"] == SECRET
    gate = recorder.inputs("cluster-api-available")
    assert gate["kind"] == "cluster-api-available"
    assert (gate["spec"]["url"], gate["spec"]["namespace"], gate["spec"]["cluster"]) == (
        "https://hub.test:6443",
        "rack",
        "rack",
    )


def test_a_rehearsal_needs_no_hub() -> None:
    recorder = declared("capi7", _ANSWERS, values=rehearsed("capi7"), preview=True)
    assert recorder.of("metal-ipi:index:Gate")
    assert recorder.outputs["cluster"]["name"] == "capi7"


@pytest.mark.parametrize(
    ("changes", "path", "why"),
    [
        ({"clusterApi": {"namespace": "A_b"}}, "clusterApi.namespace", "it is not a name of a namespace"),
        (
            {"clusterApi": {**_THROUGH["clusterApi"], "namespace": "default"}},
            "clusterApi.namespace",
            "deletes the cluster's namespace",
        ),
        (
            {"clusterApi": {**_THROUGH["clusterApi"], "namespace": "openshift-etcd"}},
            "clusterApi.namespace",
            "deletes the cluster's namespace",
        ),
        ({"clusterName": "kube-system"}, "clusterName", "deletes the cluster's namespace"),
        ({"clusterApi": {"hub": {}}}, "clusterApi.hub.kubeconfig", "it is required; only a rehearsal works without it"),
        (ARBITER, "arbiter.count", "only control plane machines and workers"),
        ({"boot": {"streamFile": "stacks/rhcos-4.21.json"}}, "boot.streamFile", "the providers run on the hub"),
        ({"dayTwo": {"nmState": {}}}, "dayTwo", "install no operators"),
        (
            {"clusterApi": {"hub": {"kubeconfig": "x"}}},
            "clusterApi.hub.kubeconfig",
            "does not contain certificate, key",
        ),
        (
            {"serviceAddresses": {"type": "metallb-l2", "pools": [{"name": "a", "addresses": ["192.0.2.64/28"]}]}},
            "serviceAddresses.type",
            "do not install MetalLB",
        ),
    ],
)
def test_what_the_providers_cannot_do_is_refused(changes: dict[str, Any], path: str, why: str) -> None:
    found = rack_problems(**{**_THROUGH, **changes})
    assert any(each.path == f"metal-ipi:{path}" and why in each.why for each in found), found
