"""The checks that ask others than the Metal API: DNS, boot files, the artifact host, the installer."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import pytest
import trustme

from metal_ipi.provider.preflight.checks import installer
from metal_ipi.provider.preflight.findings import Report
from tests.provider import knot
from tests.provider import ssh_servers as ssh
from tests.provider.preflight.asking import NOTHING_ORDERED, ask, of, the
from tests.serving import Files, serving

pytestmark = pytest.mark.usefixtures("no_waiting")


async def asked(config: dict[str, Any], **more: Any) -> Report:
    return await ask(config, {**NOTHING_ORDERED, **more})


def report(config: dict[str, Any] | None = None, *, again: bool = False, **more: Any) -> Report:
    return asyncio.run(ask(config or {}, {**NOTHING_ORDERED, **more}, again=again))


class WithoutHead(Files):
    def do_HEAD(self) -> None:
        self.send_error(405)


# --- DNS


@pytest.fixture(scope="module")
def zone(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, Any], None, None]:
    if not knot.installed():
        pytest.skip("knotd is not installed (apt: knot)")
    with knot.running(tmp_path_factory.mktemp("knot")) as settings:
        yield settings


def serial(zone: dict[str, Any]) -> int:
    answer = dns.query.tcp(dns.message.make_query("facility.test.", "SOA"), zone["server"], 5, port=zone["port"])
    return int(answer.answer[0].to_text().split()[6])


def test_a_zone_that_can_be_written_stays_as_it_is(zone: dict[str, Any]) -> None:
    before = serial(zone)
    found = report({"dns": zone}, zones=["facility.test", "100.51.198.in-addr.arpa"])
    assert [(each.level, each.what.partition(" accepts ")[2]) for each in of(found, "dns")] == [
        ("ok", "changes of zone facility.test"),
        ("ok", "changes of zone 100.51.198.in-addr.arpa"),
    ]
    assert serial(zone) == before


def test_a_zone_that_cannot_be_written(zone: dict[str, Any]) -> None:
    other = base64.b64encode(b"another secret of 32 bytes.....").decode()
    wrong = {**zone, "tsig": {**zone["tsig"], "secret": other}}
    found = report({"dns": wrong}, zones=["facility.test"])
    assert "zone facility.test cannot be written" in the(found, "dns", "error") and "BADSIG" in str(found)
    assert other not in str(found)
    assert "cannot be written" in the(report({"dns": zone}, zones=["elsewhere.test"]), "dns", "error")
    closed = {**zone, "port": knot.free_port()}
    assert "does not answer" in the(report({"dns": closed}, zones=["facility.test"]), "dns", "error")
    unset = the(report({}, zones=["facility.test"]), "dns", "error")
    assert "set `dns` of the metal-ipi provider" in unset


# --- boot files


@pytest.mark.parametrize("handler", [Files, WithoutHead])
def test_boot_files(tmp_path: Path, handler: type[Files]) -> None:
    (tmp_path / "kernel").write_bytes(b"k" * 1000)
    (tmp_path / "rootfs").write_bytes(b"r" * 3_000_000)
    digest = hashlib.sha256(b"k" * 1000).hexdigest()
    with serving(tmp_path, handler) as url:

        def told(**files: str) -> list[tuple[str, str]]:
            boot = [{"name": name, "url": f"{url}/{name}", "sha256": sha256} for name, sha256 in files.items()]
            return [(each.level, each.what) for each in of(report(boot=boot, hashedMib=1), "boot-files")]

        assert told(kernel=digest, rootfs="0" * 64) == [
            ("ok", "kernel is there, 0 MiB, with the right hash"),
            ("ok", "rootfs is there, 3 MiB, not hashed"),
        ]
        wrong, gone = told(kernel="0" * 64, initramfs=digest)
        assert wrong == ("error", f"kernel: {url}/kernel has the hash {digest}, but the stream metadata say {'0' * 64}")
        assert gone == ("error", f"initramfs: {url}/initramfs answers HTTP 404")
    level, what = told(kernel=digest)[0]
    assert level == "error" and "cannot be fetched" in what


def test_an_override_is_no_remedy_for_a_live_iso_that_cannot_be_reached_from_here(tmp_path: Path) -> None:
    """It is this program that fetches it: overridden, the same failure would come in the middle of `up`."""
    with serving(tmp_path) as url:
        boot = [{"name": name, "url": f"{url}/x", "sha256": "0" * 64} for name in ("live ISO", "kernel")]
        found, kernel = of(report(boot=boot), "boot-files")
    assert found.level == "error" and "overrides" not in found.remedy
    assert "it must be reached from here: servers' boot discs are made from it" in found.remedy
    assert "override boot-files in preflight.overrides" in kernel.remedy


def test_a_file_that_is_kept_on_the_artifact_host_is_looked_for_there(tmp_path: Path) -> None:
    (tmp_path / "mirror").mkdir()
    with serving(tmp_path) as url:

        def told() -> tuple[str, str, str]:
            boot = {"name": "kernel", "url": f"{url}/kernel", "sha256": "0" * 64, "mirrored": f"{url}/mirror/0-kernel"}
            (found,) = of(report(boot=[boot]), "boot-files")
            return found.level, found.what, found.remedy

        level, what, remedy = told()
        assert (level, what) == ("error", f"kernel: {url}/kernel answers HTTP 404")
        assert "it must be reached from here (artifacts.mirror)" in remedy and "overrides" not in remedy
        (tmp_path / "mirror" / "0-kernel").write_bytes(b"k")
        assert told() == ("ok", "kernel is on the artifact host, under its hash", "")


def test_the_clock_of_whoever_serves_the_files_is_known_where_nothing_is_ordered(tmp_path: Path) -> None:
    (tmp_path / "kernel").write_bytes(b"k")
    with serving(tmp_path) as url:
        boot = [{"name": "kernel", "url": f"{url}/kernel", "sha256": hashlib.sha256(b"k").hexdigest()}]
        assert "within 0 s of 127.0.0.1" in the(report(boot=boot), "clock", "ok").replace("within 1 s", "within 0 s")
    assert "no server reported the time" in the(report(), "clock", "warning")


# --- artifact host


async def test_an_artifact_host_that_takes_files_and_gives_them(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    with serving(tmp_path) as url:
        served = {**artifact_host, "baseUrl": f"{url}/artifacts"}
        assert "accepts files, and serves them" in the(await asked({"artifacts": served}), "artifact-host", "ok")
        elsewhere = {**artifact_host, "baseUrl": f"{url}/nowhere"}
        assert "HTTP 404" in the(await asked({"artifacts": elsewhere}), "artifact-host", "error")
    stranger = {**artifact_host, "privateKey": ssh.private(ssh.key())}
    text = the(await asked({"artifacts": stranger}), "artifact-host", "error")
    assert "refuses the login of upload" in text and "PRIVATE KEY" not in text
    other = {**artifact_host, "hostKey": ssh.public(ssh.key())}
    assert "another SSH host key" in the(await asked({"artifacts": other}), "artifact-host", "error")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []  # noqa: ASYNC240 - of this test alone


async def test_an_artifact_host_with_a_certificate_of_its_own_authority(
    tmp_path: Path, artifact_host: dict[str, Any]
) -> None:
    authority = trustme.CA()
    with serving(tmp_path, authority=authority) as url:
        served = {**artifact_host, "baseUrl": f"{url}/artifacts"}
        known = {"artifacts": {**served, "caBundle": authority.cert_pem.bytes().decode()}}
        assert "accepts files, and serves them" in the(await asked(known), "artifact-host", "ok")
        text = the(await asked({"artifacts": served}), "artifact-host", "error")
        assert "certificate verify failed" in text and "artifacts.caBundle" in text


# --- installer


def installer_that_says(directory: Path, *, version: str = "exit 1", stream: str = "exit 1") -> str:
    """An installer of two commands, each a line of shell."""
    program = directory / "openshift-install"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in\nversion) {version};;\n"coreos print-stream-json") {stream};;\n*) exit 9;;\nesac\n'
    )
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("script", "level", "told"),
    [
        ("echo openshift-install 4.21.3", "ok", "is for release 4.21.3"),
        ("echo openshift-install v4.20.1", "error", "is for release 4.20.1, not 4.21.3"),
        ("echo no; exit 3", "error", "does not print its release: nothing"),
        ("sleep 9", "error", "does not print its release: it does not end within 0.1 s"),
    ],
)
def test_installers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, level: str, told: str) -> None:
    monkeypatch.setattr(installer, "_TIMEOUT", 0.1 if "sleep" in script else 30)
    program = installer_that_says(tmp_path, version=script.replace("sleep", "exec sleep"))
    assert told in the(report(installer=program, version="4.21.3"), "installer", level)


def test_an_installer_that_is_not_there() -> None:
    text = the(report(installer="no-such-installer", version="4.21.3"), "installer", "error")
    assert "there is no program no-such-installer" in text and "openshift-install 4.21.3 on PATH" in text
    # Whether servers of one's own are installed, nobody tells.
    text = the(report(installer="no-such-installer", version="4.21.3", again=True), "installer", "warning")
    assert text.endswith("; unless the cluster is installed already")


@pytest.mark.parametrize(
    ("mode", "wanted", "levels"),
    [("1\n", True, ["ok"]), ("0\n", True, ["ok", "warning"]), (None, True, ["ok", "warning"]), ("0\n", False, ["ok"])],
)
def test_a_cluster_in_fips_mode_is_installed_from_a_system_in_fips_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str | None, wanted: bool, levels: list[str]
) -> None:
    monkeypatch.setattr(installer, "_FIPS_MODE", tmp_path / "fips_enabled")
    if mode is not None:
        (tmp_path / "fips_enabled").write_text(mode)
    program = installer_that_says(tmp_path, version="echo openshift-install 4.21.3")
    found = of(report(installer=program, version="4.21.3", fips=wanted), "installer")
    assert [finding.level for finding in found] == levels
    assert "not in FIPS mode: the installer refuses" in found[-1].what or levels == ["ok"]


# --- the stream


def document(stream: str, release: str) -> str:
    """A command that prints the stream metadata of an installer, as far as it is read."""
    artifacts = {"metal": {"release": release}}
    tree = {"stream": stream, "architectures": {"x86_64": {"artifacts": artifacts}, "ppc64le": {}}}
    return f"echo '{json.dumps(tree)}'"


_STREAM: dict[str, Any] = {"stream": "rhcos-4.19", "release": "9.6.20250402-0"}


@pytest.mark.parametrize(
    ("says", "level", "told"),
    [
        (document("rhcos-4.19", "9.6.20250402-0"), "ok", "stream rhcos-4.19 (release 9.6.20250402-0), as "),
        # A later build of the same stream: z-streams bring new ones.
        (document("rhcos-4.19", "9.6.20250101-0"), "ok", "stream rhcos-4.19 (release 9.6.20250402-0), as "),
        (
            document("rhcos-4.21", "9.8.20260428-0"),
            "warning",
            "openshift-install is made for stream rhcos-4.21 (release 9.8.20260428-0)",
        ),
        (document("c9s", "9.0.20250222-0"), "warning", "is made for stream c9s"),
        ("echo no such command >&2; exit 1", "warning", "does not print its stream: no such command"),
        ("echo '[1]'", "warning", "does not print its stream"),
        ("echo '{'", "warning", "does not print its stream"),
    ],
)
def test_machines_boot_the_stream_that_the_installer_is_made_for(
    tmp_path: Path, says: str, level: str, told: str
) -> None:
    program = installer_that_says(tmp_path, stream=says)
    text = the(report(installer=program, version="4.19.0", **_STREAM), "stream", level)
    assert told in text
    assert ("coreos print-stream-json > stacks/<name>.json" in text) == (level == "warning")


def test_a_stream_of_another_architecture_only_is_told(tmp_path: Path) -> None:
    program = installer_that_says(tmp_path, stream=document("rhcos-4.21", "9.8.20260428-0"))
    found = report(installer=program, version="4.19.0", architecture="aarch64", **_STREAM)
    assert "stream rhcos-4.21, which has no aarch64" in the(found, "stream", "warning")


@pytest.mark.parametrize("values", [{"installer": "no-such-installer", **_STREAM}, _STREAM, {"release": "r"}])
def test_without_an_installer_or_a_name_streams_are_not_compared(values: dict[str, Any]) -> None:
    assert of(report(version="4.19.0", **values), "stream") == []
