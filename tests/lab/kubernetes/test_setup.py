"""What set-up builds and fetches, without doing either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.errors import SetupFailed
from lab.kubernetes import build, crds
from lab.kubernetes.etcd import program as etcd


def go(directory: Path, script: str) -> Path:
    """A Go that does what a shell script says."""
    path = directory / "bin" / "go"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\n[ "$1" = version ] && echo go version go1.26.8 linux/amd64 && exit\n{script}\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH of its own before the other."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


def test_kube_apiserver_is_built_once(alone: Path) -> None:
    go(alone, f'echo "$@" >> {alone}/calls\nwhile [ "$1" != -o ]; do shift; done\ncp /bin/true "$2"')
    said: list[str] = []
    assert build.cached() is None
    path = build.ensure(said.append)
    assert (build.cached(), build.ensure(said.append)) == (path, path)
    [call] = (alone / "calls").read_text().splitlines()
    assert "gitVersion=v1.33.1" in call
    assert call.endswith("k8s.io/kubernetes/cmd/kube-apiserver")
    assert [line.split(" (")[0].split(" in ")[0] for line in said] == [
        "building kube-apiserver from Go modules",
        "built kube-apiserver",
    ]
    assert [each.name for each in path.parent.iterdir()] == ["kube-apiserver"]


def test_a_build_that_fails_says_why_and_leaves_nothing(alone: Path) -> None:
    go(alone, "echo no such host; exit 1")
    with pytest.raises(SetupFailed, match=r"(?s)Go module proxy.*no such host"):
        build.ensure(print)
    assert build.cached() is None
    assert {path.suffix for path in (alone / "cache").rglob("*") if path.is_file()} == {".lock"}


def test_the_definitions_are_those_that_are_pinned(alone: Path) -> None:
    source = alone / "module" / "config" / "crd" / "bases"
    source.mkdir(parents=True)
    (source / "a.yaml").write_text("kind: CustomResourceDefinition\n")
    answer = alone / "answer.json"
    go(alone, f"cat {answer}")
    answer.write_text(json.dumps({"Dir": str(alone / "module"), "Sum": "h1:other"}))
    with pytest.raises(SetupFailed, match="not what this project was made with"):
        crds.METALLB.ensure()
    assert crds.METALLB.cached() is None
    answer.write_text(json.dumps({"Dir": str(alone / "module"), "Sum": crds.METALLB.sum}))
    directory = crds.METALLB.ensure()
    assert directory == crds.METALLB.cached()
    assert crds.read(directory) == [{"kind": "CustomResourceDefinition"}]


def test_a_download_that_fails_says_why(alone: Path) -> None:
    go(alone, """echo '{"Error": "no such host"}'; exit 1""")
    with pytest.raises(SetupFailed, match="proxy can be reached: no such host"):
        crds.METALLB.ensure()


def test_other_objects_are_no_definitions(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Secret\n")
    with pytest.raises(SetupFailed, match="does not hold resource definitions alone"):
        crds.read(tmp_path)
    (tmp_path / "a.yaml").unlink()
    with pytest.raises(SetupFailed, match="does not hold resource definitions alone"):
        crds.read(tmp_path)


def test_a_go_mod_that_pins_nothing_is_refused() -> None:
    with pytest.raises(SetupFailed, match=r"does not pin k8s.io/kubernetes"):
        build.version("module a\n")


def test_etcd_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(SetupFailed, match="install the package etcd-server"):
        etcd()
