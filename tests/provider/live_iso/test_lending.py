"""A server boots a disc of its own: made of CoreOS's ISO, put on the artifact host, attached, and taken away again."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
import json
import os
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trustme

from provider import boot_tree, configuration, download
from provider.bmc_settings import LiveIso
from provider.configuration import S3ArtifactSettings, Settings
from provider.errors import ProviderError, RemoteError
from provider.live_iso import LiveIsoError, base, disc, initrd, minimal, place
from provider.live_iso.iso9660 import Disc
from provider.platforms.registry import is_gone
from tests.provider import fake_bmc
from tests.provider import ssh_servers as ssh
from tests.provider.fake_bmc import MAC, FakeBmc, once
from tests.provider.harness import Resource
from tests.provider.live_iso.discs import line, whole
from tests.provider.preflight.test_surroundings import serving
from tests.provider.test_redfish_machine import CLIENT, HOST, LOAN, harness
from tests.provider.test_secure_boot import ON, secure

SCRIPT = (
    "#!ipxe\n# release\nkernel http://boot.test/kernel initrd=main coreos.live.rootfs_url=http://boot.test/rootfs "
    "ignition.config.url=https://boot.test/x.ign console=ttyS0\ninitrd --name main http://boot.test/initramfs\nboot\n"
)
_SHA256 = hashlib.sha256(whole()).hexdigest()
ARGUMENTS = (
    "coreos.live.rootfs_url=http://boot.test/rootfs",
    "ignition.config.url=https://boot.test/x.ign",
    "console=ttyS0",
)


@dataclass
class Web:
    """A web server with one file, CoreOS's ISO."""

    url: str = ""
    content: bytes = b""
    status: int = 200
    asked: list[str] = field(default_factory=list[str])

    @property
    def iso(self) -> LiveIso:
        return LiveIso(url=self.url, sha256=hashlib.sha256(whole()).hexdigest())


@pytest.fixture
def web() -> Generator[Web, None, None]:
    served = Web(content=whole())

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            self.send_response(served.status)
            self.send_header("Content-Length", str(len(served.content)))
            self.end_headers()
            self.wfile.write(served.content)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}/live.iso"
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what was fetched is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "metal-ipi" / "live-iso"


@pytest.fixture
def bmc() -> Iterator[FakeBmc]:
    with fake_bmc.running() as found:
        secure(found, **ON)
        yield found


async def nobody(text: str) -> None:
    assert text


def settings(artifacts: dict[str, Any], bmcs: dict[str, Any] | None = None) -> Settings:
    found, problems = configuration.parse({"artifacts": artifacts, "bmcs": bmcs or {}})
    assert problems == []
    return found


def discs(folder: Path) -> list[Path]:
    return sorted((folder / "artifacts").rglob("*.iso"))


def live(web: Web) -> dict[str, Any]:
    """Settings of a BMC that attaches the live ISO."""
    return {"bootMethod": "live-iso", "liveIso": {"url": web.url, "sha256": web.iso.sha256}}


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


def test_the_iso_is_fetched_once_and_kept_without_its_root_file_system(web: Web, cache: Path) -> None:
    async def both() -> list[Path]:
        return list(await asyncio.gather(*(base.minimal_iso(Settings(), web.iso, nobody) for _ in range(3))))

    (path,) = set(asyncio.run(both()))
    assert asyncio.run(base.minimal_iso(Settings(), web.iso, nobody)) == path
    assert web.asked == ["/live.iso"] and path.stat().st_size < len(whole()) - 300000
    assert sorted(each.name for each in cache.iterdir()) == [f"{web.iso.sha256}.iso", f"{web.iso.sha256}.sha256"]


def test_what_was_damaged_is_fetched_again(web: Web) -> None:
    path = asyncio.run(base.minimal_iso(Settings(), web.iso, nobody))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    asyncio.run(base.minimal_iso(Settings(), web.iso, nobody))
    assert len(web.asked) == 2 and path.read_bytes()[-1:] != b"?"


def test_another_iso_than_the_stream_s_is_refused(web: Web, cache: Path) -> None:
    wrong = LiveIso(url=web.url, sha256="0" * 64)
    with pytest.raises(LiveIsoError, match=rf"has the SHA-256 {web.iso.sha256}, and the stream says 000000"):
        asyncio.run(base.minimal_iso(Settings(), wrong, nobody))
    assert list(cache.iterdir()) == []


def test_an_iso_that_cannot_be_had_is_told(web: Web) -> None:
    web.status = 404
    with pytest.raises(RemoteError, match=r"CoreOS's live ISO cannot be fetched: .* is answered with HTTP 404"):
        asyncio.run(base.minimal_iso(Settings(), web.iso, nobody))


def test_the_iso_may_be_on_a_server_of_the_site_s_own_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_PATIENCE", 0.2)
    (tmp_path / "live.iso").write_bytes(whole())
    authority = trustme.CA()

    def fetched(**more: str) -> Path:
        known = Settings(
            artifacts=S3ArtifactSettings(
                bucket="b", prefix="", region="r", endpoint=None, access_key_id="a", secret_access_key="s",
                base_url="https://x.test", boot_base_url="http://x.test", **more,
            )
        )  # fmt: skip
        return asyncio.run(base.minimal_iso(known, LiveIso(url=f"{url}/live.iso", sha256=_SHA256), nobody))

    with serving(tmp_path, authority=authority) as url:
        with pytest.raises(RemoteError, match=r"CoreOS's live ISO cannot be fetched: .*certificate verify failed"):
            fetched()
        assert fetched(ca_bundle=authority.cert_pem.bytes().decode()).exists()


def test_two_stacks_that_make_the_same_file_do_not_share_what_is_half_written(
    web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[str] = []
    unpack = minimal.unpack

    def watched(source: Any, out: Any) -> str:
        parts.append(Path(out.name).name)
        return unpack(source, out)

    monkeypatch.setattr(minimal, "unpack", watched)
    for number in (1, 2):
        monkeypatch.setattr(os, "getpid", lambda number=number: number)
        asyncio.run(base.minimal_iso(Settings(), web.iso, nobody)).unlink()
    assert len(set(parts)) == 2


# --- the disc


def test_a_disc_is_made_uploaded_and_made_again_only_when_it_changes(web: Web, tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            known = settings(artifacts)
            await disc.publish(known, web.iso, MAC, SCRIPT, nobody)
            (made,) = discs(tmp_path)
            digest = boot_tree.digest(SCRIPT)
            assert made.name == f"{digest}.iso" and await place.digest_of(known, MAC) == digest
            assert place.url(known, MAC, digest) == f"{artifacts['bootBaseUrl']}/{made.parent.name}/{made.name}"
            assert place.is_url(known, place.url(known, MAC, digest)) and not place.is_url(known, "http://x/y.iso")
            with made.open("rb") as file:
                assert line(Disc(file)).endswith(" ".join(ARGUMENTS))
            # Others can neither list where it is, nor compute it.
            assert made.parent.stat().st_mode & 0o777 == 0o711 and len(made.parent.name) == 43
            before = made.stat().st_ino
            await disc.publish(known, web.iso, MAC, SCRIPT, nobody)
            assert made.stat().st_ino == before
            await disc.publish(known, web.iso, MAC, SCRIPT.replace("ttyS0", "ttyS1"), nobody)
            (again,) = discs(tmp_path)
            assert again.name != made.name and again.parent == made.parent
            (made.parent / ".boot.iso.part").write_text("of an upload that was killed")
            await place.remove(known, MAC)
            assert not made.parent.exists() and await place.digest_of(known, MAC) == ""
            await place.remove(known, MAC)

    asyncio.run(run())


def test_each_machine_and_each_artifact_host_has_its_own_place(tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            one = settings(artifacts).need_artifacts()
        other = S3ArtifactSettings(
            bucket="b", prefix="", region="r", endpoint=None, access_key_id="a", secret_access_key="s" * 40,
            base_url="https://x.test", boot_base_url="http://x.test",
        )  # fmt: skip
        places = {place.directory(each, mac) for each in (one, other) for mac in (MAC, "52:54:00:00:00:01")}
        assert len(places) == 4 and place.directory(one, MAC.upper()) in places

    asyncio.run(run())


def test_a_further_initramfs_of_ours_is_on_the_disc(web: Web, tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            known = settings(artifacts)
            folder = tmp_path / "artifacts" / ("d" * 43)
            folder.mkdir(parents=True)
            (folder / "c.img").write_bytes(initrd.pack({"config.ign": b"{}"}))
            url = f"{artifacts['baseUrl']}/{'d' * 43}/c.img"
            script = SCRIPT.removesuffix("boot\n") + f"initrd --name config {url}\nboot\n"
            await disc.publish(known, web.iso, MAC, script, nobody)
            (made,) = discs(tmp_path)
            with made.open("rb") as file:
                it = Disc(file)
                area = it.find("images/ignition.img")
                assert area is not None
                packed = it.read(area).rstrip(b"\0")
            assert initrd.unpack(packed + b"\0" * (-len(packed) % 4)) == {"config.ign": b"{}"}
            elsewhere = script.replace(url, "https://elsewhere.test/d/c.img")
            with pytest.raises(LiveIsoError, match="that is not on the artifact host: https://elsewhere"):
                await disc.publish(known, web.iso, MAC, elsewhere, nobody)

    asyncio.run(run())


# --- a server with Secure Boot that is lent


def test_a_server_is_lent_by_its_disc_and_given_back(bmc: FakeBmc, web: Web, tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            made = await harness(bmc, artifacts, **live(web))
            known, _ = configuration.parse({key: json.dumps(value) for key, value in made.config.items()})
            it = Resource(made, "EphemeralMachine")
            state = await it.up({**LOAN, "script": SCRIPT})
            (uploaded,) = discs(tmp_path)
            assert bmc.machine.boots == ["Cd"] and bmc.machine.image is not None
            assert bmc.machine.image == f"{artifacts['bootBaseUrl']}/{uploaded.parent.name}/{uploaded.name}"
            assert not (tmp_path / "artifacts/boot").exists(), "nothing is published where anybody can guess it"
            assert not await is_gone(state["machineId"], known)
            # A later up, and one that a kill broke off, know it again.
            await it.refresh()
            assert await it.changes({**LOAN, "script": SCRIPT}) == []
            again = Resource(made, "EphemeralMachine")
            await again.up({**LOAN, "script": SCRIPT})
            assert again.state["machineId"] == state["machineId"] and bmc.machine.boots == ["Cd", "Cd"]
            bmc.machine.power = "On"
            removal = Resource(made, "Removal")
            await removal.up({"machineId": state["machineId"], "platform": "redfish", "timeoutSeconds": 20})
            assert bmc.machine.image is None and bmc.machine.state() == "Off" and discs(tmp_path) == []
            assert await is_gone(state["machineId"], known)
            await it.delete()

    asyncio.run(run())


def test_a_disc_of_somebody_else_stays_in_its_drive(bmc: FakeBmc, web: Web, tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            made = await harness(bmc, artifacts, **live(web))
            it = Resource(made, "EphemeralMachine")
            await it.up({**LOAN, "script": SCRIPT})
            bmc.machine.image = "http://elsewhere.test/rescue.iso"
            await it.delete()
            assert bmc.machine.image == "http://elsewhere.test/rescue.iso"

    asyncio.run(run())


def test_a_drive_that_refuses_the_disc_is_told(bmc: FakeBmc, web: Web, tmp_path: Path) -> None:
    async def run() -> None:
        async with ssh.artifact_host(tmp_path, HOST, CLIENT) as artifacts:
            made = await harness(bmc, artifacts, **live(web))
            bmc.faults = [once("POST", "VirtualMedia.InsertMedia", 400)] * 9
            with pytest.raises(ProviderError, match=r"no virtual drive that takes http.*\.iso .*: check that URL"):
                await Resource(made, "EphemeralMachine").up({**LOAN, "script": SCRIPT})
            assert bmc.machine.boots == []

    asyncio.run(run())


def test_the_provider_wants_the_iso_with_the_method(bmc: FakeBmc) -> None:
    section = {"server-0": {**bmc.settings(), "bootMethod": "live-iso"}}
    _, problems = configuration.parse({"bmcs": section})
    assert [problem.path for problem in problems] == ["bmcs.server-0.liveIso"]
    section["server-0"]["liveIso"] = {"url": "http://user:secret@x/y", "sha256": "x"}
    _, problems = configuration.parse({"bmcs": section})
    assert [problem.path for problem in problems] == ["bmcs.server-0.liveIso.url", "bmcs.server-0.liveIso.sha256"]
    assert "secret" not in str(problems)
