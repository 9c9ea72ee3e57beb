"""A server boots a disc of its own: made of CoreOS's ISO, put on the artifact host, attached, and taken away again."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from metal_ipi.provider import boot_tree, configuration, download
from metal_ipi.provider.bmc_settings import LiveIso
from metal_ipi.provider.configuration import S3ArtifactSettings, Settings
from metal_ipi.provider.errors import ProviderError, RemoteError
from metal_ipi.provider.live_iso import LiveIsoError, base, disc, initrd, minimal, place
from metal_ipi.provider.live_iso.iso9660 import Disc
from metal_ipi.provider.platforms.registry import is_gone
from metal_ipi.provider.status import silent
from tests.provider.fake_bmc import MAC, FakeBmc, once
from tests.provider.harness import Resource, settings_of
from tests.provider.live_iso.discs import initramfs, line, whole
from tests.provider.test_redfish_machine import LOAN, harness
from tests.provider.test_secure_boot import ON, secure
from tests.serving import Files, serving

pytestmark = pytest.mark.usefixtures("no_waiting")

ARGUMENTS = (
    "coreos.live.rootfs_url=http://boot.test/rootfs",
    "ignition.config.url=https://boot.test/x.ign",
    "console=ttyS0",
)
SCRIPT = (
    f"#!ipxe\n# release\nkernel http://boot.test/kernel initrd=main {' '.join(ARGUMENTS)}\n"
    "initrd --name main http://boot.test/initramfs\nboot\n"
)
_SHA256 = hashlib.sha256(whole()).hexdigest()
_S3: dict[str, Any] = {
    "bucket": "b", "prefix": "", "region": "r", "endpoint": None, "access_key_id": "a", "secret_access_key": "s" * 40,
    "base_url": "https://x.test", "boot_base_url": "http://x.test",
}  # fmt: skip


@dataclass
class Web:
    """A web server with one file, CoreOS's ISO."""

    url: str
    file: Path
    asked: list[str]

    @property
    def iso(self) -> LiveIso:
        return LiveIso(url=self.url, sha256=_SHA256)


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory) -> Generator[Web]:
    asked: list[str] = []

    class Noting(Files):
        def do_GET(self) -> None:
            asked.append(self.path)
            super().do_GET()

    file = tmp_path_factory.mktemp("web") / "live.iso"
    file.write_bytes(whole())
    with serving(file.parent, Noting) as url:
        yield Web(f"{url}/live.iso", file, asked)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what was fetched is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "metal-ipi" / "live-iso"


def discs(folder: Path) -> list[Path]:
    return sorted((folder / "artifacts").rglob("*.iso"))


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def opened(path: Path) -> Disc:
    return Disc(io.BytesIO(path.read_bytes()))


# --- the script


def test_what_a_script_boots() -> None:
    assert disc.read(SCRIPT) == disc.Script(arguments=ARGUMENTS, initramfs=())
    found = disc.read(SCRIPT.removesuffix("boot\n") + "initrd --name config https://boot.test/d/c.img\nboot\n")
    assert found.initramfs == ("https://boot.test/d/c.img",)


@pytest.mark.parametrize("script", ["#!ipxe\nboot\n", "#!ipxe\nkernel x\nboot\n", SCRIPT.replace("boot\n", "dhcp\n")])
def test_a_script_that_does_something_else_is_refused(script: str) -> None:
    with pytest.raises(LiveIsoError, match="boot script"):
        disc.read(script)


# --- CoreOS's ISO


async def fetched(iso: LiveIso, **more: Any) -> Path:
    return await base.minimal_iso(Settings(**more), iso, silent)


async def test_the_iso_is_fetched_once_and_kept_without_its_root_file_system(web: Web, cache: Path) -> None:
    (path,) = set(await asyncio.gather(*(fetched(web.iso) for _ in range(3))))
    assert await fetched(web.iso) == path
    assert web.asked == ["/live.iso"] and path.stat().st_size < len(whole()) - 300000
    assert names(cache) == [f"{_SHA256}.iso", f"{_SHA256}.sha256"]
    # What was damaged is fetched again.
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    await fetched(web.iso)
    assert len(web.asked) == 2 and path.read_bytes()[-1:] != b"?"


async def test_another_iso_than_the_streams_or_none_is_told(web: Web, cache: Path) -> None:
    with pytest.raises(LiveIsoError, match=rf"has the SHA-256 {_SHA256}, but the stream metadata say 000000"):
        await fetched(LiveIso(url=web.url, sha256="0" * 64))
    web.file.unlink()
    with pytest.raises(RemoteError, match=r"CoreOS's live ISO cannot be fetched: .* answers HTTP 404"):
        await fetched(web.iso)
    assert names(cache) == []


async def test_the_iso_may_be_on_a_server_of_the_site_s_own_authority(web: Web, monkeypatch: Any) -> None:
    monkeypatch.setattr(download, "_PATIENCE", 0.2)
    authority = trustme.CA()
    with serving(web.file.parent, authority=authority) as url:
        iso = LiveIso(url=f"{url}/live.iso", sha256=_SHA256)
        with pytest.raises(RemoteError, match=r"CoreOS's live ISO cannot be fetched: .*certificate verify failed"):
            await fetched(iso)
        known = S3ArtifactSettings(**_S3, ca_bundle=authority.cert_pem.bytes().decode())
        assert (await fetched(iso, artifacts=known)).name == f"{_SHA256}.iso"


async def test_two_stacks_that_make_the_same_file_do_not_share_what_is_half_written(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[str] = []
    unpack = minimal.unpack

    def watched(source: Any, out: Any) -> str:
        parts.append(Path(out.name).name)
        return unpack(source, out)

    monkeypatch.setattr(minimal, "unpack", watched)
    for number in (1, 2):
        monkeypatch.setattr(os, "getpid", lambda number=number: number)
        (await fetched(web.iso)).unlink()
    assert len(set(parts)) == 2


# --- the disc


async def test_a_disc_is_made_uploaded_and_made_again_only_when_it_changes(
    web: Web, artifact_host: dict[str, Any], tmp_path: Path
) -> None:
    known = settings_of(artifacts=artifact_host)
    await disc.publish(known, web.iso, MAC, SCRIPT, silent)
    (made,) = discs(tmp_path)
    digest = boot_tree.digest(SCRIPT)
    assert made.name == f"{digest}.iso" and await place.digest_of(known, MAC) == digest
    assert place.url(known, MAC, digest) == f"{artifact_host['bootBaseUrl']}/{made.parent.name}/{made.name}"
    assert place.is_url(known, place.url(known, MAC, digest)) and not place.is_url(known, "http://x/y.iso")
    assert line(opened(made)).endswith(" ".join(ARGUMENTS))
    # Others can neither list where it is, nor compute it: each machine and each artifact host has a place of its own.
    assert made.parent.stat().st_mode & 0o777 == 0o711 and len(made.parent.name) == 43
    hosts = (known.need_artifacts(), S3ArtifactSettings(**_S3))
    places = {place.directory(host, mac) for host in hosts for mac in (MAC, "52:54:00:00:00:01")}
    assert len(places) == 4 and place.directory(hosts[0], MAC.upper()) == made.parent.name
    before = made.stat().st_ino
    await disc.publish(known, web.iso, MAC, SCRIPT, silent)
    assert made.stat().st_ino == before
    await disc.publish(known, web.iso, MAC, SCRIPT.replace("ttyS0", "ttyS1"), silent)
    (again,) = discs(tmp_path)
    assert again.name != made.name and again.parent == made.parent
    (made.parent / ".boot.iso.part").write_text("of an upload that was killed")
    await place.remove(known, MAC)
    assert not made.parent.exists() and await place.digest_of(known, MAC) == ""
    await place.remove(known, MAC)


async def test_a_further_initramfs_of_ours_is_on_the_disc(
    web: Web, artifact_host: dict[str, Any], tmp_path: Path
) -> None:
    known = settings_of(artifacts=artifact_host)
    folder = tmp_path / "artifacts" / ("d" * 43)
    folder.mkdir(parents=True)
    (folder / "c.img").write_bytes(initrd.pack({"config.ign": b"{}"}))
    url = f"{artifact_host['baseUrl']}/{'d' * 43}/c.img"
    script = SCRIPT.removesuffix("boot\n") + f"initrd --name config {url}\nboot\n"
    await disc.publish(known, web.iso, MAC, script, silent)
    assert initramfs(opened(discs(tmp_path)[0])) == {"config.ign": b"{}"}
    with pytest.raises(LiveIsoError, match="that is not on the artifact host: https://elsewhere"):
        await disc.publish(known, web.iso, MAC, script.replace(url, "https://elsewhere.test/d/c.img"), silent)


# --- a server with Secure Boot that is lent


@pytest.fixture
async def loan(bmc: FakeBmc, web: Web, artifact_host: dict[str, Any]) -> Resource:
    secure(bmc, **ON)
    live = {"bootMethod": "live-iso", "liveIso": {"url": web.url, "sha256": _SHA256}}
    return Resource(await harness(bmc, artifact_host, **live), "EphemeralMachine")


LIVE_LOAN = {**LOAN, "script": SCRIPT}


async def test_a_server_is_lent_by_its_disc_and_given_back(loan: Resource, bmc: FakeBmc, tmp_path: Path) -> None:
    known, base_url = settings_of(**loan.harness.config), loan.harness.config["artifacts"]["bootBaseUrl"]
    machine = (await loan.up(LIVE_LOAN))["machineId"]
    (uploaded,) = discs(tmp_path)
    assert bmc.machine.boots == ["Cd"]
    assert bmc.machine.image == f"{base_url}/{uploaded.parent.name}/{uploaded.name}"
    assert not (tmp_path / "artifacts/boot").exists(), "nothing is published where anybody can guess it"
    assert not await is_gone(machine, known)
    # A later up, and one that a kill broke off, know it again.
    await loan.refresh()
    assert await loan.changes(LIVE_LOAN) == []
    again = Resource(loan.harness, "EphemeralMachine")
    await again.up(LIVE_LOAN)
    assert again.state["machineId"] == machine and bmc.machine.boots == ["Cd", "Cd"]
    bmc.machine.power = "On"
    await Resource(loan.harness, "Removal").up({"machineId": machine, "platform": "redfish", "timeoutSeconds": 20})
    assert bmc.machine.image is None and bmc.machine.state() == "Off" and discs(tmp_path) == []
    assert await is_gone(machine, known)
    await loan.delete()


async def test_a_server_that_was_lent_by_its_script_is_given_back_when_it_boots_discs(
    loan: Resource, bmc: FakeBmc, artifact_host: dict[str, Any], tmp_path: Path
) -> None:
    by_network = Resource(await harness(bmc, artifact_host, secureBoot="ignore"), "EphemeralMachine")
    machine = (await by_network.up(LIVE_LOAN))["machineId"]
    known, bmc.machine.power = settings_of(**loan.harness.config), "On"
    assert not await is_gone(machine, known)
    by_network.harness = loan.harness
    await by_network.delete()
    assert await is_gone(machine, known) and bmc.machine.state() == "Off"
    assert not (tmp_path / "artifacts/boot").exists()


async def test_a_disc_of_somebody_else_stays_in_its_drive(loan: Resource, bmc: FakeBmc) -> None:
    await loan.up(LIVE_LOAN)
    bmc.machine.image = "http://elsewhere.test/rescue.iso"
    await loan.delete()
    assert bmc.machine.image == "http://elsewhere.test/rescue.iso"


async def test_a_drive_that_refuses_the_disc_is_told(loan: Resource, bmc: FakeBmc) -> None:
    bmc.faults = [once("POST", "VirtualMedia.InsertMedia", 400)] * 9
    with pytest.raises(ProviderError, match=r"no virtual drive that accepts http.*\.iso .*: check that URL"):
        await loan.up(LIVE_LOAN)
    assert bmc.machine.boots == []


def test_the_provider_wants_the_iso_with_the_method(bmc: FakeBmc) -> None:
    section = {"server-0": {**bmc.settings(), "bootMethod": "live-iso"}}
    _, problems = configuration.parse({"bmcs": section})
    assert [problem.path for problem in problems] == ["bmcs.server-0.liveIso"]
    section["server-0"]["liveIso"] = {"url": "http://user:secret@x/y", "sha256": "x"}
    _, problems = configuration.parse({"bmcs": section})
    assert [problem.path for problem in problems] == ["bmcs.server-0.liveIso.url", "bmcs.server-0.liveIso.sha256"]
    assert "secret" not in str(problems)
