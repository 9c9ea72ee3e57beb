"""What set-up downloads and builds: from a publisher of the tests, and with a Go that only writes down its calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binaries.errors import ProgramMissing
from lab import etcd
from lab.errors import SetupFailed
from lab.kubernetes import build, crds
from tests.binaries import server
from tests.binaries.server import Publisher

mirror = server.mirror


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
    monkeypatch.setenv("METAL_IPI_DOWNLOADS", "off")
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
        "kube-apiserver 1.33.1 is built, because it cannot be downloaded: METAL_IPI_DOWNLOADS is off",
        "building kube-apiserver from Go modules",
        "built kube-apiserver",
    ]
    assert [each.name for each in path.parent.iterdir()] == ["kube-apiserver"]


def test_a_build_that_fails_says_why_and_leaves_nothing(alone: Path) -> None:
    go(alone, "echo no such host; exit 1")
    with pytest.raises(ProgramMissing, match=r"(?s)Go module proxy.*no such host"):
        build.ensure(print)
    assert build.cached() is None
    assert {path.suffix for path in (alone / "cache").rglob("*") if path.is_file()} == {".lock", ""}


def test_the_definitions_are_those_that_are_pinned(alone: Path) -> None:
    source = alone / "module" / "config" / "crd" / "bases"
    source.mkdir(parents=True)
    (source / "a.yaml").write_text("kind: CustomResourceDefinition\n")
    answer = alone / "answer.json"
    go(alone, f"cat {answer}")
    answer.write_text(json.dumps({"Dir": str(alone / "module"), "Sum": "h1:other"}))
    with pytest.raises(SetupFailed, match="not the one that this project was made with"):
        crds.METALLB.ensure()
    assert crds.METALLB.cached() is None
    answer.write_text(json.dumps({"Dir": str(alone / "module"), "Sum": crds.METALLB.sum}))
    directory = crds.METALLB.ensure()
    assert directory == crds.METALLB.cached()
    assert crds.read(directory) == [{"kind": "CustomResourceDefinition"}]


def test_a_download_that_fails_says_why(alone: Path) -> None:
    go(alone, """echo '{"Error": "no such host"}'; exit 1""")
    with pytest.raises(ProgramMissing, match="proxy can be reached: no such host"):
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


def test_the_published_kube_apiserver_is_downloaded(
    alone: Path, mirror: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    monkeypatch.setenv("METAL_IPI_DOWNLOADS", mirror.url)
    where = "/dl.k8s.io/v1.33.1/bin/linux/arm64/kube-apiserver"
    mirror.offer(f"{where}.sha256", mirror.offer(where, b"#!/bin/sh\n").encode())
    path = build.ensure(print)
    assert (build.cached(), build.ensure(print)) == (path, path)
    assert path.is_relative_to(alone / "cache") and mirror.asked == [f"{where}.sha256", where]


@pytest.mark.parametrize(("version", "fits"), [("v1.33.1", True), ("v1.33.2", False), ("v1.33.1+k3s1", False)])
def test_a_kube_apiserver_on_path_is_taken_if_it_is_the_one_that_is_pinned(
    alone: Path, version: str, *, fits: bool
) -> None:
    path = alone / "bin" / "kube-apiserver"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\necho Kubernetes {version}\n")
    path.chmod(0o755)
    assert build.cached() == (path if fits else None)


def _etcd(alone: Path, told: str) -> Path:
    path = alone / "bin" / "etcd"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{told}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("told", "fits"),
    [
        ("echo etcd Version: 3.6.5", True),
        ("echo etcd Version: 3.5.13; echo Go Version: go1.22.1", True),
        ("echo etcd Version: 3.5.12", False),
        ("echo etcd Version: 3.4.23; echo Go Version: go1.19.8", False),
        ("echo etcd Version: 3.6.5; exit 1", False),
    ],
)
def test_an_etcd_on_path_is_taken_if_it_is_new_enough(alone: Path, told: str, *, fits: bool) -> None:
    path = _etcd(alone, told)
    assert etcd.cached() == (path if fits else None)


def test_etcd_is_downloaded(alone: Path, mirror: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    _etcd(alone, "echo etcd Version: 3.4.23")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("METAL_IPI_DOWNLOADS", mirror.url)
    release = f"/github.com/etcd-io/etcd/releases/download/v{etcd.version()}"
    name = f"etcd-v{etcd.version()}-linux-amd64"
    total = mirror.offer(f"{release}/{name}.tar.gz", server.archive(f"{name}/etcd", b"#!/bin/sh\n"))
    mirror.offer(f"{release}/SHA256SUMS", f"{total}  {name}.tar.gz\n".encode())
    path = etcd.ensure(print)
    assert (etcd.cached(), etcd.ensure(print)) == (path, path)
    assert path.is_relative_to(alone / "cache")


def test_etcd_is_built_where_it_cannot_be_downloaded(alone: Path) -> None:
    go(alone, f'echo "$@" >> {alone}/calls\nwhile [ "$1" != -o ]; do shift; done\ncp /bin/true "$2"')
    path = etcd.ensure(print)
    assert (etcd.cached(), etcd.ensure(print)) == (path, path)
    [call] = (alone / "calls").read_text().splitlines()
    assert call.endswith("go.etcd.io/etcd/server/v3")
