"""The mirror: files of a release on an SFTP host and in a bucket, copied from a web server that fails in its ways."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from werkzeug.wrappers import Request, Response

from metal_ipi.provider import download
from metal_ipi.provider.errors import InitFailed, RemoteError
from metal_ipi.provider.mirror_files import MirroredFile
from metal_ipi.provider.status import silent
from tests import serving
from tests.provider.harness import Harness, Resource, configured
from tests.provider.test_configuration import S3, keys

SEED, OTHER_SEED = "thirty-two random characters 123", "thirty-two random characters 456"
KERNEL, ROOTFS = b"kernel" * 1000, bytes(range(256)) * (9 << 12)
"""The second is larger than one part, and than what S3 takes in one piece."""


@dataclass
class Web:
    """A web server: where files are published, and where the artifact host serves them."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    served: Path | None = None
    """The folder below `/artifacts`; None: it answers 404 there."""
    ranges: bool = True
    breaks: int = 0
    """How often a connection breaks in the middle of a file."""
    asked: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    url: str = ""

    def gets(self) -> list[str]:
        return [path for method, path, _ in self.asked if method == "GET"]

    def __call__(self, environ: Any, start: Any) -> Iterable[bytes]:
        request = Request(environ)
        self.asked.append((request.method, request.path, request.headers.get("Range", "")))
        content = self._content(request.path)
        if content is None:
            return Response(status=404)(environ, start)
        answer = Response(content)
        if self.ranges:
            answer.make_conditional(environ, accept_ranges=True, complete_length=len(content))
        if self.breaks and request.method == "GET" and len(content) > 1 << 20:
            self.breaks -= 1
            answer.content_length = answer.content_length or len(content)
            answer.response = self._broken(b"".join(answer.iter_encoded()), environ["werkzeug.socket"])
        return answer(environ, start)

    def _content(self, path: str) -> bytes | None:
        if self.served is None or not path.startswith("/artifacts/"):
            return self.files.get(path)
        file = self.served / path.removeprefix("/artifacts/")
        return file.read_bytes() if file.is_file() else None

    @staticmethod
    def _broken(content: bytes, connection: socket.socket) -> Iterator[bytes]:
        yield content[: 3 << 19]
        connection.shutdown(socket.SHUT_RDWR)


def inputs(it: Web, *, seed: str = SEED, **files: bytes) -> dict[str, Any]:
    """`kernel=KERNEL`: published below /r, with the hash of that content."""
    paths = {"kernel": "/r/kernel", "rootfs": "/r/rootfs.img"}
    named = {
        title: {"url": it.url + paths[title], "sha256": hashlib.sha256(content).hexdigest()}
        for title, content in files.items()
    }
    return {"files": named, "pathSeed": seed}


def both(it: Web, *, seed: str = SEED) -> dict[str, Any]:
    return inputs(it, seed=seed, kernel=KERNEL, rootfs=ROOTFS)


def names(folder: Path) -> list[str]:
    """Of the files in the mirror, without claims; what is half written included."""
    return sorted(path.name for path in (folder / "mirror").glob("*") if not path.name.endswith(".claim"))


def is_empty(folder: Path) -> bool:
    return list(folder.iterdir()) == []


def claims(folder: Path) -> int:
    return len(list((folder / "mirror").glob("*.claim")))


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Web]:
    """A web server that has the files of a release, and serves what is on the artifact host."""
    made = Web(files={"/r/kernel": KERNEL, "/r/rootfs.img": ROOTFS}, served=tmp_path / "artifacts")
    with serving.application(made) as port:
        made.url = f"http://127.0.0.1:{port}"
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


Made = Callable[[], Awaitable[Resource]]


@pytest.fixture
def made(artifact_host: dict[str, Any], it: Web) -> Made:
    """Makes a `Mirror`, each in a plug-in of its own."""

    async def make() -> Resource:
        return await configured("Mirror", artifacts={**artifact_host, "bootBaseUrl": f"{it.url}/artifacts"})

    return make


async def test_whole_life(it: Web, folder: Path, made: Made) -> None:
    mirror = await made()
    state = await mirror.up(both(it))
    kernel, rootfs = (f"{hashlib.sha256(each).hexdigest()}-{name}" for each, name in
                      ((KERNEL, "kernel"), (ROOTFS, "rootfs.img")))  # fmt: skip
    assert names(folder) == sorted([kernel, rootfs]) and claims(folder) == 2
    assert (folder / "mirror" / rootfs).read_bytes() == ROOTFS
    assert state["urls"] == {"kernel": f"{it.url}/artifacts/mirror/{kernel}",
                             "rootfs": f"{it.url}/artifacts/mirror/{rootfs}"}  # fmt: skip
    assert state["sizes"] == {kernel: len(KERNEL), rootfs: len(ROOTFS)}
    assert it.gets() == ["/r/kernel", "/r/rootfs.img"]
    # What is there is not read again, neither by a refresh nor by an update.
    assert await mirror.changes(both(it)) == []
    await mirror.refresh()
    assert await mirror.changes(both(it)) == []
    await mirror.up(inputs(it, rootfs=ROOTFS))
    assert it.gets() == ["/r/kernel", "/r/rootfs.img"]
    assert names(folder) == [rootfs] and claims(folder) == 1
    await mirror.delete()
    await mirror.delete()
    assert is_empty(folder)


async def test_two_stacks_share_a_file_and_the_last_takes_it_away(it: Web, folder: Path, made: Made) -> None:
    one, other = await made(), await made()
    await one.up(both(it))
    await other.up(both(it, seed=OTHER_SEED))
    assert len(it.gets()) == 2, "the second found what the first had copied"
    assert claims(folder) == 4
    await one.delete()
    assert len(names(folder)) == 2 and claims(folder) == 2
    await other.delete()
    assert is_empty(folder)


async def test_a_file_with_another_hash_is_refused_by_name(it: Web, folder: Path, made: Made) -> None:
    mirror, wanted = await made(), both(it)
    it.files["/r/rootfs.img"] = ROOTFS[:-1] + b"!"
    found = hashlib.sha256(it.files["/r/rootfs.img"]).hexdigest()
    with pytest.raises(
        InitFailed, match=rf"rootfs: .*/r/rootfs\.img has the SHA-256 {found}, but the stream metadata say"
    ):
        await mirror.up(wanted)
    assert [name.rpartition("-")[2] for name in names(folder)] == ["kernel"], "nothing half written stays"
    # The next up goes on from there; a destroy gives up what was claimed.
    it.files["/r/rootfs.img"] = ROOTFS
    await mirror.up(wanted)
    assert len(names(folder)) == 2 and it.gets().count("/r/kernel") == 1
    await mirror.delete()
    assert is_empty(folder)


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no-ranges"])
async def test_a_connection_that_breaks_is_taken_up(it: Web, folder: Path, made: Made, ranges: bool) -> None:
    it.breaks, it.ranges = 2, ranges
    await (await made()).up(inputs(it, rootfs=ROOTFS))
    (name,) = names(folder)
    assert (folder / "mirror" / name).read_bytes() == ROOTFS
    wanted = [spread for method, _, spread in it.asked if method == "GET"]
    assert len(wanted) == 3 and wanted[0] == "" and all(each.startswith("bytes=") for each in wanted[1:])


async def test_what_was_lost_or_damaged_is_copied_again(it: Web, folder: Path, made: Made) -> None:
    mirror = await made()
    await mirror.up(both(it))
    kernel, rootfs = sorted((folder / "mirror").glob("*[!m]"), key=lambda path: path.stat().st_size)
    kernel.unlink()
    rootfs.write_bytes(b"cut off")
    await mirror.refresh()
    assert await mirror.changes(both(it)) == ["files"]
    await mirror.up(both(it))
    assert (kernel.read_bytes(), rootfs.read_bytes()) == (KERNEL, ROOTFS)


async def test_a_run_after_a_kill_finds_the_claim_again(it: Web, folder: Path, made: Made) -> None:
    await (await made()).up(both(it))
    again = await made()
    await again.up(both(it))
    assert claims(folder) == 2 and len(it.gets()) == 2
    await again.delete()
    assert is_empty(folder)


async def test_whoever_claims_a_file_that_just_goes_gets_it_back(
    it: Web, folder: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one looked for the file before it went, and for claims nobody looked again."""

    from metal_ipi.provider.artifact_stores.ssh import SshStore

    one, other = await made(), await made()
    await one.up(inputs(it, kernel=KERNEL))
    (name,) = names(folder)
    delete = SshStore.delete

    async def late(self: SshStore, directory: str, gone: list[str]) -> None:
        if gone == [name]:  # between the look at the claims and the end of the file
            await other.up(inputs(it, seed=OTHER_SEED, kernel=KERNEL))
        await delete(self, directory, gone)

    monkeypatch.setattr(SshStore, "delete", late)
    await one.delete()
    assert (folder / "mirror" / name).read_bytes() == KERNEL and claims(folder) == 1


async def test_a_web_server_that_does_not_give_it_is_told_of(it: Web, folder: Path, made: Made) -> None:
    it.served = None
    mirror = await made()
    with pytest.raises(InitFailed, match=r"kernel is in the mirror with 6000 bytes, but http://.* HTTP 404"):
        await mirror.up(inputs(it, kernel=KERNEL))
    it.served = folder
    await mirror.up(inputs(it, kernel=KERNEL))
    assert it.gets().count("/r/kernel") == 1, "what was copied is not copied again for that"


async def test_a_web_server_that_only_machines_reach_is_a_warning(artifact_host: dict[str, Any], it: Web) -> None:
    section = {**artifact_host, "bootBaseUrl": "http://127.0.0.1:9/artifacts"}
    mirror = await configured("Mirror", artifacts=section)
    await mirror.up(inputs(it, kernel=KERNEL))
    (warning,) = mirror.harness.log.warnings
    assert "cannot be checked from here" in warning


async def test_a_source_that_is_gone_is_named(it: Web, folder: Path, made: Made) -> None:
    del it.files["/r/kernel"]
    with pytest.raises(InitFailed, match=r"kernel cannot be copied to the artifact host: .*/r/kernel answers HTTP 404"):
        await (await made()).up(inputs(it, kernel=KERNEL))


async def test_in_a_bucket(bucket: Any, it: Web) -> None:
    section = {**S3, "prefix": "ignition", "bootBaseUrl": "http://127.0.0.1:9"}
    mirror = await configured("Mirror", artifacts=section)
    it.files["/r/rootfs.img"] = ROOTFS + b"!"
    with pytest.raises(InitFailed, match=r"rootfs: .* has the SHA-256"):
        await mirror.up(both(it))
    assert [key for key in keys(bucket, "ignition/mirror/") if key.endswith("rootfs.img")] == []
    it.files["/r/rootfs.img"] = ROOTFS
    state = await mirror.up(both(it))
    assert sorted(state["sizes"].values()) == [len(KERNEL), len(ROOTFS)]
    (rootfs,) = [key for key in keys(bucket, "ignition/mirror/") if key.endswith("rootfs.img")]
    assert bucket.get_object(Bucket=S3["bucket"], Key=f"ignition/mirror/{rootfs}")["Body"].read() == ROOTFS
    assert len(it.gets()) == 3
    await mirror.refresh()
    assert await mirror.changes(both(it)) == []
    await mirror.delete()
    assert keys(bucket) == []


async def test_wrong_inputs_are_named() -> None:
    wrong = {"files": {"kernel": {"url": "ftp://x", "sha256": "0"}}, "more": 1}
    problems = await Resource(Harness(), "Mirror").check(wrong)
    assert [problem.partition(" ")[0] for problem in problems] == [
        "more",
        "files.kernel.url",
        "files.kernel.sha256",
        "pathSeed",
    ]


@pytest.mark.parametrize(
    ("url", "ending"),
    [
        ("https://h/a/rhcos-live-rootfs.x86_64.img", "-rhcos-live-rootfs.x86_64.img"),
        ("https://h/a/kernel?release=9", "-kernel"),
        ("https://h/", ""),
        ("https://h/a/.hidden", ""),
        ("https://h/a%2Fb%20c", ""),
        (f"https://h/{'x' * 300}", f"-{'x' * 100}"),
    ],
)
def test_names_begin_with_the_hash_and_are_names(url: str, ending: str) -> None:
    file = MirroredFile(url=url, sha256="0" * 64)
    assert file.name == "0" * 64 + ending
    assert file.url_below("http://boot.test/x/") == f"http://boot.test/x/mirror/{file.name}"


async def downloaded(url: str, note: Callable[[str], Awaitable[None]]) -> None:
    async with httpx.AsyncClient() as client:
        async for _ in download.checked(client, url, "0" * 64, note):
            pass


async def test_a_web_server_that_is_not_trusted_is_not_asked_again() -> None:
    context = serving.tls(trustme.CA())
    tried: list[str] = []

    async def note(text: str) -> None:
        tried.append(text)

    async with await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
        with pytest.raises(RemoteError, match=f"{url}: its TLS certificate is not trusted"):
            await downloaded(url, note)
    assert tried == []


async def test_a_download_ends_when_nothing_comes_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PATIENCE", 0.2)
    with pytest.raises(RemoteError, match=r"cannot be downloaded completely \(0 bytes were received\)"):
        await downloaded("http://127.0.0.1:9/x", silent)
