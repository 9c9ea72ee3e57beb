"""Stream metadata and iPXE scripts."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal_ipi.components.boot.ipxe import (
    BootSpec,
    consoles,
    installer_arguments,
    installer_script,
    kernel_arguments,
    script,
)
from metal_ipi.components.boot.network import StaticNetwork
from metal_ipi.components.boot.stream import PxeArtifacts, StreamError, pxe_artifacts
from tests import golden

_ROOT = Path(__file__).resolve().parents[2]
_COMMITTED = _ROOT / "stacks" / "rhcos-4.21.json"
_WHOLE = _ROOT.parent / "shared" / "data" / "rhcos-4.21-stream.json"
"""The document as Red Hat publishes it; the committed one is the part that is needed."""
_CONFIG = "http://boot.facility.test/artifacts/x/lab-worker-0.img"
_NETWORK = StaticNetwork(
    address="192.0.2.97",
    gateway="192.0.2.1",
    prefix=24,
    hostname="lab-worker-0.lab.facility.test",
    interface="eno1",
    nameservers=("192.0.2.53", "192.0.2.54"),
)


def _spec(architecture: str = "x86_64", **changes: Any) -> BootSpec:
    artifacts = pxe_artifacts(_COMMITTED.read_text(), architecture)
    spec = BootSpec(artifacts=artifacts, architecture=architecture, platform_id="packet")
    return dataclasses.replace(spec, **changes)


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_ipxe_script_of_a_live_system(architecture: str) -> None:
    golden.check(f"ipxe-live-{architecture}.ipxe", script(_spec(architecture)))


@pytest.mark.parametrize("network", [None, _NETWORK], ids=["dhcp", "static"])
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_ipxe_script_of_an_installer(architecture: str, network: StaticNetwork | None) -> None:
    spec = _spec(architecture, installs=True)
    name = f"ipxe-install-{'static' if network else 'dhcp'}-{architecture}.ipxe"
    golden.check(name, installer_script(spec, installer_arguments(spec, network=network), _CONFIG))


@pytest.mark.skipif(not _WHOLE.is_file(), reason="the whole stream document is not at hand")
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_the_committed_stream_is_an_extract_of_the_whole(architecture: str) -> None:
    assert pxe_artifacts(_WHOLE.read_text(), architecture) == _spec(architecture).artifacts


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_a_stream_says_which_one_it_is(architecture: str) -> None:
    tree = json.loads(_COMMITTED.read_text())
    assert pxe_artifacts(json.dumps(tree), architecture).stream == "rhcos-4.21"
    del tree["stream"]
    assert pxe_artifacts(json.dumps(tree), architecture).stream is None
    with pytest.raises(StreamError, match="the stream metadata's stream is not a text"):
        pxe_artifacts(json.dumps({**tree, "stream": 4.21}), architecture)


@pytest.mark.parametrize(
    ("architecture", "platform", "asked", "given"),
    [
        ("x86_64", "packet", (), ("ttyS1,115200n8",)),
        ("aarch64", "packet", (), ("ttyAMA0,115200",)),
        ("x86_64", "packet", ("ttyS0",), ("ttyS0",)),
        ("x86_64", "metal", (), ()),
    ],
)
def test_consoles(architecture: str, platform: str, asked: tuple[str, ...], given: tuple[str, ...]) -> None:
    spec = _spec(architecture, platform_id=platform, consoles=asked, extra=("nosmt",))
    assert consoles(spec) == given
    assert kernel_arguments(spec)[-len(given) - 1 :] == (*(f"console={console}" for console in given), "nosmt")


_BASE = "architectures.x86_64.artifacts.metal"
_ROOTFS = f"{_BASE}.formats.pxe.rootfs"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("architectures", None, "the stream metadata has no architectures"),
        ("architectures.x86_64", None, "the stream metadata has no architectures.x86_64; it knows: aarch64"),
        (f"{_BASE}.formats.pxe", None, f"the stream metadata has no {_BASE}.formats.pxe"),
        (f"{_BASE}.release", None, f"the stream metadata has no {_BASE}.release"),
        (f"{_BASE}.release", 9.8, f"the stream metadata's {_BASE}.release is not a text"),
        (f"{_BASE}.formats", [], f"the stream metadata has no {_BASE}.formats.pxe"),
        (_ROOTFS, "https://host/rootfs", f"the stream metadata has no {_ROOTFS}.location"),
        (
            f"{_ROOTFS}.location",
            "ftp://h/x",
            f"the stream metadata's {_ROOTFS}.location is not an http(s) URL: 'ftp://h/x'",
        ),
        (f"{_ROOTFS}.location", "https://h/x y", f"{_ROOTFS}.location is not an http(s) URL: 'https://h/x y'"),
        (f"{_ROOTFS}.location", "https://h/x\n", f"{_ROOTFS}.location is not an http(s) URL"),
        (f"{_ROOTFS}.sha256", "A" * 64, f"the stream metadata's {_ROOTFS}.sha256 is not a SHA-256: '{'A' * 64}'"),
        (f"{_ROOTFS}.sha256", "0" * 63, f"{_ROOTFS}.sha256 is not a SHA-256"),
        (f"{_ROOTFS}.sha256", "0" * 64 + "\n", f"{_ROOTFS}.sha256 is not a SHA-256"),
    ],
)
def test_a_malformed_document_names_the_first_wrong_path(path: str, value: Any, message: str) -> None:
    tree: dict[str, Any] = copy.deepcopy(json.loads(_COMMITTED.read_text()))
    *parents, last = path.split(".")
    section = tree
    for parent in parents:
        section = section[parent]
    if value is None:
        del section[last]
    else:
        section[last] = value
    with pytest.raises(StreamError) as caught:
        pxe_artifacts(json.dumps(tree), "x86_64")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("formats", "found"),
    [
        ({}, None),
        ({"4k.raw.gz": "4k"}, None),
        ({"raw.gz": "a", "4k.raw.xz": "4k"}, "a"),
        ({"raw.gz": "a", "raw.xz": "b"}, "b"),
    ],
)
def test_the_disk_image_is_the_one_for_ordinary_sectors(formats: dict[str, str], found: str | None) -> None:
    tree: Any = json.loads(_COMMITTED.read_text())
    section = tree["architectures"]["x86_64"]["artifacts"]["metal"]["formats"]
    for name in [name for name in section if name != "pxe"]:
        del section[name]
    section |= {
        name: {"disk": {"location": f"https://host/{file}", "sha256": "0" * 64}} for name, file in formats.items()
    }
    disk = pxe_artifacts(json.dumps(tree), "x86_64").disk
    assert (disk and disk.url) == (found and f"https://host/{found}")


def test_a_malformed_disk_image_is_named() -> None:
    tree: Any = json.loads(_COMMITTED.read_text())
    tree["architectures"]["x86_64"]["artifacts"]["metal"]["formats"]["raw.gz"]["disk"]["sha256"] = "x"
    with pytest.raises(StreamError, match=r"formats\.raw\.gz\.disk\.sha256 is not a SHA-256: 'x'"):
        pxe_artifacts(json.dumps(tree), "x86_64")


def test_what_is_no_json_is_said_to_be_none() -> None:
    with pytest.raises(StreamError, match="the stream metadata is not a JSON document"):
        pxe_artifacts("<html>", "x86_64")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
_PATHS = [
    *(".".join(_ROOTFS.split(".")[:length]) for length in range(1, 8)),
    f"{_ROOTFS}.location",
    f"{_ROOTFS}.sha256",
    f"{_BASE}.release",
]


@settings(max_examples=150, deadline=None, database=None)
@given(path=st.sampled_from(_PATHS), value=_JSON)
def test_whatever_stands_there_the_answer_is_artifacts_or_a_stream_error(path: str, value: Any) -> None:
    tree: Any = json.loads(_COMMITTED.read_text())
    *parents, last = path.split(".")
    section = tree
    for parent in parents:
        section = section[parent]
    section[last] = value
    try:
        found = pxe_artifacts(json.dumps(tree), "x86_64")
    except StreamError:
        return
    assert isinstance(found, PxeArtifacts) and path == f"{_BASE}.release" and found.release == value


@settings(max_examples=50, deadline=None, database=None)
@given(_JSON)
def test_any_other_document_is_a_stream_error(document: Any) -> None:
    with pytest.raises(StreamError):
        pxe_artifacts(json.dumps(document), "x86_64")
