"""The user's manifests: what is read of folders, and everything wrong with them told at once, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from metal_ipi.components.install.machine_configs import MachineConfigs, manifests
from metal_ipi.components.install.manifest_rules import known_kinds
from metal_ipi.components.install.manifests import OWN_FILES, ManifestsError, identities, read

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: site}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: motd, namespace: site}\ndata: {motd: hello}\n"
MACHINE_CONFIG = """\
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 99-worker-site
  labels: {machineconfiguration.openshift.io/role: worker}
spec:
  config:
    ignition: {version: 3.4.0}
    storage: {files: [{path: /etc/site, mode: 420, contents: {source: "data:,x"}}]}
    systemd: {units: [{name: site.service, enabled: true, contents: "[Install]"}]}
  kernelArguments: [hugepages=8]
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Widget, plural: widgets}, versions: [{name: v1}]}
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\n"


def _folder(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "site"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def _problems(tmp_path: Path, *others: str, **files: str) -> list[str]:
    with pytest.raises(ManifestsError) as caught:
        read({"site": _folder(tmp_path, **files)}, others)
    assert "nothing was changed" in str(caught.value)
    return list(caught.value.problems)


def test_files_are_taken_as_they_are(tmp_path: Path) -> None:
    files = {"a__yaml": f"# of the site\r\n{NAMESPACE}", "b__yml": f"---\n{MACHINE_CONFIG}"}
    files["c__json"] = '{\t"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "site"}}'
    folder = _folder(tmp_path, README__md="for people", __hidden="of an editor")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_bytes(text.encode())
    assert read({"site": folder}) == {name.replace("__", "."): text for name, text in files.items()}
    assert read({}) == {}


def test_of_several_objects_in_a_file_each_becomes_a_file(tmp_path: Path) -> None:
    """cluster-bootstrap makes the first object of a file, and ends where that is empty."""
    text = f"---\n# nothing\n---\n{NAMESPACE}# of the site\n---\n  a: &a {{x: 1}}\n  apiVersion: v1\n"
    text += "  kind: ConfigMap\n  metadata: {name: motd, namespace: site}\n  b: *a\n...\n"
    text += "--- {apiVersion: v1, kind: Node, metadata: {name: n}}\n"
    found = read({"site": _folder(tmp_path, a__yaml=text)})
    assert list(found) == ["a-1.yaml", "a-2.yaml", "a-3.yaml"]
    assert [yaml.safe_load(each)["kind"] for each in found.values()] == ["Namespace", "ConfigMap", "Node"]
    assert yaml.safe_load(found["a-2.yaml"])["b"] == {"x": 1}
    lonely = read({"site": _folder(tmp_path, a__yaml=f"---\n# nothing\n---\n{NAMESPACE}")})
    assert lonely == {"a.yaml": NAMESPACE}
    (tmp_path / "site" / "a-2.yaml").write_text(CONFIG_MAP)
    with pytest.raises(ManifestsError, match=r"a-2\.yaml gives a-2\.yaml, too -> rename one"):
        read({"site": _folder(tmp_path, a__yaml=text)})


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: x, namespace: ''}\n",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:A_b'}\n",
        "apiVersion: user.openshift.io/v1\nkind: User\nmetadata: {name: a@b.com}\n",
        "apiVersion: operator.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\n",
        CONFIG_MAP.replace("site", "openshift-config").replace("hello", "=, day: 2026-11-26"),
        f"{NAMESPACE}c: &c {{k: 2}}\nb: &b\n  d: {{<<: *c, k: 1}}\nspec: {{<<: *b}}\n",
        MACHINE_CONFIG.replace("data:,x", ""),
        MACHINE_CONFIG.replace("data:,x", "data:;base64,aGVsbG8%3D"),
        MACHINE_CONFIG.replace("site.service", "site.scope"),
    ],
)
def test_what_may_be(text: str, tmp_path: Path) -> None:
    assert read({"site": _folder(tmp_path, a__yaml=text)}) == {"a.yaml": text}


def test_kinds_that_a_manifest_defines_are_known(tmp_path: Path) -> None:
    assert set(read({"site": _folder(tmp_path, a__yaml=DEFINITION, b__yaml=WIDGET)})) == {"a.yaml", "b.yaml"}


def test_a_refused_object_hides_no_namespace_of_the_others(tmp_path: Path) -> None:
    own = "apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata: {name: cluster}\n"
    (problem,) = _problems(tmp_path, a__yaml=f"{NAMESPACE}---\n{own}---\n{CONFIG_MAP}")
    assert "the installer makes Proxy cluster itself" in problem


def test_kinds_that_the_user_knows_are_taken(tmp_path: Path) -> None:
    folder = _folder(tmp_path, a__yaml=WIDGET)
    assert set(read({"site": folder}, ["example.com/v1/Widget"])) == {"a.yaml"}
    (problem,) = _problems(tmp_path, "example.com/v1/Gadget")
    assert "Widget of example.com/v1 is not a kind of Kubernetes' or OpenShift's" in problem
    assert "add example.com/v1/Widget to install.otherKinds" in problem


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1\nb: 2\n", "site/a.yaml:2: expected ',' or ']', but got ':' -> correct the YAML there"),
        (f"{NAMESPACE}kind: Pod\n", "site/a.yaml:4: the key 'kind' is there twice"),
        ("- a\n", "site/a.yaml:1: it is not an object"),
        ("# nothing\n", "site/a.yaml: it contains no object"),
        (f"{NAMESPACE}---\nkind: Pod\n", "site/a.yaml:5: apiVersion is missing"),
        ("apiVersion: V1\nkind: Pod\n", "site/a.yaml:1: apiVersion is 'V1'"),
        ("apiVersion: v1\nmetadata: {name: x}\n", "site/a.yaml:1: kind is missing"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "it is a list"),
        (
            "apiVersion: v1\nkind: Deployment\nmetadata: {name: x}\n",
            "there is no kind Deployment of v1, only of apps/v1",
        ),
        (
            "apiVersion: apps/v2\nkind: Deployment\nmetadata: {name: x}\n",
            "add apps/v2/Deployment to install.otherKinds",
        ),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: A_b}\n", "metadata.name is 'A_b'"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: [x]\n", "metadata.name is missing"),
        ("a: !!int ''\n", "site/a.yaml: "),
        ("a: !!bool foo\n", "site/a.yaml: "),
        ("a: \x00\n", "site/a.yaml: "),
        ("apiVersion: v1\nkind: ConfigMapp\nmetadata: {name: x}\n", "ConfigMapp of v1 is not a kind"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {}\n", "metadata.name is missing"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {generateName: x}\n", "metadata.name is missing"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "give the namespace of the ConfigMap"),
        (CONFIG_MAP.replace("site", "openshift-nmstate"), "no manifest makes the namespace openshift-nmstate"),
        (CONFIG_MAP, "no manifest makes the namespace site -> add a Namespace of that name"),
        (f"{NAMESPACE}---\n{NAMESPACE}", "site/a.yaml:5: Namespace site is in site/a.yaml:1, too -> remove one"),
        (
            "apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata: {name: cluster}\n",
            "the installer makes Proxy cluster itself -> change it by settings",
        ),
        (MACHINE_CONFIG.replace("machineconfiguration.openshift.io/role", "role"), "would be in no machine's"),
        (MACHINE_CONFIG.replace("3.4.0", "3.9.0"), "spec.config.ignition.version is '3.9.0'"),
        (MACHINE_CONFIG.replace("{version: 3.4.0}", "{}"), "spec.config.ignition.version is missing"),
        (MACHINE_CONFIG.replace("/etc/site", "etc/site"), "storage.files[0].path is 'etc/site'"),
        (
            MACHINE_CONFIG.replace("data:,x", "hello"),
            "storage.files[0].contents.source is not a URL that Ignition reads",
        ),
        (MACHINE_CONFIG.replace("data:,x", "data:;base64,@@"), "contents.source is not a URL that Ignition reads"),
        (MACHINE_CONFIG.replace("/etc/site", "/etc/../site"), "storage.files[0].path is '/etc/../site'"),
        (
            MACHINE_CONFIG.replace("enabled: true", "dropins: [{name: x}]"),
            "dropins: the name 'x' -> give one that ends",
        ),
        (MACHINE_CONFIG.replace("[{path", "{a: [{path").replace("}}]}", "}}]}}"), "spec.config.storage.files is {'a'"),
        (f"{MACHINE_CONFIG}  kernelType: quick\n", "spec.kernelType is 'quick'"),
        (MACHINE_CONFIG.replace('source: "data:,x"', "inline: hello"), "contents.inline is Butane's"),
        (MACHINE_CONFIG.replace("420", '"0644"'), "storage.files[0].mode is '0644'"),
        (MACHINE_CONFIG.replace("site.service", "site"), "systemd.units[0].name is 'site'"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_remedy(text: str, told: str, tmp_path: Path) -> None:
    (problem,) = _problems(tmp_path, a__yaml=text)
    assert told in problem and problem.startswith("site/a.yaml:") and " -> " in problem


def test_all_of_it_at_once(tmp_path: Path) -> None:
    found = _problems(tmp_path, a__yaml="a: [1\n", b__yaml=CONFIG_MAP, c__yaml="kind: Pod\n", d__txt="x", e__bu="x")
    assert [problem.split(":")[0] for problem in found] == [
        *("site/a.yaml", "site/d.txt", "site/e.bu", "site/b.yaml", "site/c.yaml")
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("99_openshift-machineconfig_99-master-ssh.yaml", "the installer has a file of this name, which yours would"),
        (sorted(OWN_FILES)[0], "the installer has a file of this name"),
        ("a manifest.yaml", "it is not a name for a manifest"),
        ("site.yaml.bak", "it is none of .yaml, .yml, .json, .bu, .butane"),
        ("site.bu", "there is no program 'no-butane' to translate it -> put butane on PATH, or name it as"),
        (f"{next(name for name in sorted(OWN_FILES) if name.endswith('.yaml'))[:-5]}.bu", "the installer has a file"),
    ],
)
def test_names_of_files_that_cannot_be(name: str, told: str, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / name).write_text(NAMESPACE)
    with pytest.raises(ManifestsError) as caught:
        read({"site": folder}, program="no-butane")
    (problem,) = caught.value.problems
    assert problem.startswith(f"site/{name}: ") and told in problem


def test_what_settings_make_and_a_folder_has_is_told(tmp_path: Path) -> None:
    made = manifests(MachineConfigs(roles=["worker"], ntp_servers=["192.0.2.7"]))
    assert read({}, made=made) == made
    (name,) = made
    other = MACHINE_CONFIG.replace("99-worker-site", "99-worker-chrony")
    same_name, same_object = _folder(tmp_path, **{name.replace(".", "__"): MACHINE_CONFIG}), tmp_path / "two"
    same_object.mkdir()
    (same_object / "chrony.yaml").write_text(other)
    with pytest.raises(ManifestsError) as caught:
        read({"one": same_name, "two": same_object}, made=made)
    assert [each.partition(" ->")[0] for each in caught.value.problems] == [
        f"one/{name}: machineConfig gives {name}, too",
        f"two/chrony.yaml:1: MachineConfig 99-worker-chrony is in machineConfig ({name}), too",
    ]


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "nested" / "inner.yaml").mkdir(parents=True)
    names = ("missing", "empty", "file", "nested")
    with pytest.raises(ManifestsError) as caught:
        read({name: tmp_path / name for name in names})
    found = dict(zip(names, caught.value.problems, strict=True))
    assert "No such file or directory -> name a directory" in found["missing"]
    assert "it is empty" in found["empty"]
    assert "Not a directory" in found["file"]
    assert "nested/inner.yaml: it is a directory" in found["nested"]


def test_two_folders_are_one(tmp_path: Path) -> None:
    folders = {"one": tmp_path / "one", "two": tmp_path / "two"}
    for folder in folders.values():
        folder.mkdir()
        (folder / "a.yaml").write_text(NAMESPACE)
    with pytest.raises(ManifestsError, match=r"two/a\.yaml: one/a\.yaml gives a\.yaml, too -> rename one"):
        read(folders)


def test_what_is_no_text_and_what_is_too_large(tmp_path: Path) -> None:
    folder = _folder(tmp_path, b__yaml="#" * ((1 << 20) + 1))
    (folder / "c.yaml").symlink_to("nowhere")
    (folder / "a.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ManifestsError) as caught:
        read({"site": folder})
    odd, large, lost = caught.value.problems
    assert "No such file" in lost and "more than 1 MiB" in large and "cannot be read as UTF-8 text" in odd


def test_kinds_have_a_place() -> None:
    kinds = known_kinds()
    assert kinds["v1"]["Namespace"] is False and kinds["v1"]["ConfigMap"] is True
    assert kinds["machineconfiguration.openshift.io/v1"]["MachineConfig"] is False
    assert kinds["operators.coreos.com/v1alpha1"]["Subscription"] is True
    assert identities(f"{NAMESPACE}---\n{CONFIG_MAP}") == {
        ("", "Namespace", "", "site"),
        ("", "ConfigMap", "site", "motd"),
    }
