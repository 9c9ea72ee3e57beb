"""Downloads of programs from their publishers, each checked against the SHA-256 sum that the publisher offers with it.

A file that did not arrive whole, or has another sum, never gets the program's name. Everything comes over TLS. Proxies
and SSL_CERT_FILE are taken from the environment, certificates from the system.

METAL_IPI_DOWNLOADS names a mirror: `https://mirror.example/files` has the files of the publishers below their host
names, as `wget -x` puts them. `off` forbids downloads.

A host that does not answer is not asked again: not in this process and not in those that it starts. Without a network
a run is so held up for about five seconds, however many programs it needs.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import httpx

from binaries.cache import Report
from binaries.errors import DownloadFailed, ProgramMissing, WrongChecksum
from binaries.release import Release

SETTING = "METAL_IPI_DOWNLOADS"
UNREACHABLE = "METAL_IPI_UNREACHABLE"
"""Holds the hosts that did not answer, separated by spaces, for the processes that this one starts."""

_FIRST_ANSWER = 3.0
"""Seconds that a host has for each step up to its first answer."""
_NEXT_ANSWER = 2.0
"""The same once another host did not answer."""
_STALLED = 20.0
"""Seconds without a byte after which a transfer is given up."""
_LONGEST = 600.0
"""Seconds that a transfer may take; building takes about as long."""
_ATTEMPTS = 2
_TELL_EVERY = 15.0
_BLOCK = 1 << 20
_T = TypeVar("_T")


def fetch(release: Release, target: Path, report: Report) -> None:
    """Download a program to `target`, which is complete and executable when it is there. Raises DownloadFailed."""
    url, sums = _located(release.url), _located(release.sums)
    expected = _expected(sums, url)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="downloading-", dir=target.parent) as directory:
        file = Path(directory) / "file"
        try:
            actual = _transfer(url, file, report)
            if actual != expected:
                raise WrongChecksum(f"{url} has the SHA-256 sum {actual}, but {sums} says {expected}: it is not used")
            program = _unpack(file, release.member, url) if release.member else file
            program.chmod(0o755)
            _check(program, release.check, url)
            program.rename(target)
        except OSError as error:  # for instance a full disk
            raise DownloadFailed(f"{url} could not be saved: {error}") from error


def _located(url: str) -> str:
    """Where a publisher's file is for this user. Raises DownloadFailed where downloads are off."""
    setting = os.environ.get(SETTING, "")
    if setting == "off":
        raise DownloadFailed(f"{SETTING} is off")
    if setting and not setting.startswith("https://"):
        raise ProgramMissing(f"{SETTING} is {setting!r}: set it to the https:// URL of a mirror, or to off")
    return f"{setting.rstrip('/')}/{url.removeprefix('https://')}" if setting else url


def _expected(sums: str, url: str) -> str:
    """The sum of the file at `url`. Raises DownloadFailed."""
    host = urlsplit(sums).hostname or ""
    failed = os.environ.get(UNREACHABLE, "").split()
    if host in failed:
        raise DownloadFailed(f"{host} did not answer before")
    seconds = _NEXT_ANSWER if failed else _FIRST_ANSWER

    def ask() -> str:
        with _client(seconds) as client:
            answer = client.get(sums)
            _accept(answer)
            return answer.text

    try:
        text = _within(seconds * 2, ask)
    except httpx.InvalidURL as error:
        raise ProgramMissing(f"{SETTING} is not a URL: {error}") from error
    except (httpx.HTTPError, TimeoutError) as error:
        os.environ[UNREACHABLE] = " ".join([*failed, host])
        why = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or f"no answer within {seconds:.0f} s"
        raise DownloadFailed(f"{host} cannot be reached: {why}") from error
    name = re.escape(urlsplit(url).path.rpartition("/")[2])
    found = re.search(rf"^([0-9a-fA-F]{{64}})(?:[ \t]+\*?(?:\S*/)?{name})?[ \t\r]*$", text, re.MULTILINE)
    if found is None:
        raise DownloadFailed(f"{sums} has no SHA-256 sum of {url}")
    return found[1].lower()


def _transfer(url: str, file: Path, report: Report) -> str:
    """Download into `file`, once more if the transfer breaks off; returns its SHA-256 sum. Raises DownloadFailed."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _stream(url, file, report)
        except httpx.HTTPError as error:
            why = str(error) or f"no data for {_STALLED:.0f} s"
            if attempt == _ATTEMPTS:
                raise DownloadFailed(f"{url} was not downloaded completely: {why}") from error
            report(f"{url}: the download was interrupted, trying once more: {why}")
    raise AssertionError("the last attempt returns or raises")


def _stream(url: str, file: Path, report: Report) -> str:
    digest = hashlib.sha256()
    started = reported_at = time.monotonic()
    with _client(_STALLED) as client, client.stream("GET", url) as answer, file.open("wb") as out:
        _accept(answer)
        total = int(answer.headers.get("Content-Length", 0))
        report(f"downloading {url}" + (f" ({total / 1e6:.0f} MB)" if total else ""))
        for block in answer.iter_raw(_BLOCK):
            out.write(block)
            digest.update(block)
            now = time.monotonic()
            if now - started > _LONGEST:
                raise DownloadFailed(f"{url} is too slow: {out.tell() / 1e6:.0f} MB in {_LONGEST / 60:.0f} minutes")
            if now - reported_at > _TELL_EVERY:
                reported_at = now
                report(f"  ... {out.tell() / 1e6:.0f} MB")
    return digest.hexdigest()


def _client(seconds: float) -> httpx.Client:
    """A client that gives up when nothing happens for so long. Files are taken as they are, not compressed."""
    return httpx.Client(
        verify=ssl.create_default_context(),
        follow_redirects=True,
        timeout=seconds,
        headers={"Accept-Encoding": "identity", "User-Agent": "metal-ipi"},
    )


def _accept(answer: httpx.Response) -> None:
    """Raises DownloadFailed for an answer that is not the file, or that came another way than over TLS."""
    plain = [str(each.url) for each in (*answer.history, answer) if each.url.scheme != "https"]
    if plain:
        raise DownloadFailed(f"{plain[0]} is not https: it is not used")
    if answer.status_code != 200:
        raise DownloadFailed(f"{answer.url} answers {answer.status_code} {answer.reason_phrase}")


def _within(seconds: float, call: Callable[[], _T]) -> _T:
    """What `call` returns; raises TimeoutError when it takes longer. Looking up a name has no time limit of its own."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="first answer").start()
    return future.result(seconds)


def _unpack(archive: Path, member: str, url: str) -> Path:
    """The program out of an archive, beside it. Raises DownloadFailed."""
    program = archive.with_name("program")
    try:
        with tarfile.open(archive, "r:gz") as opened:
            source = opened.extractfile(member)
            if source is None:
                raise DownloadFailed(f"{member} in {url} is not a file")
            with program.open("wb") as out:
                while block := source.read(_BLOCK):
                    out.write(block)
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise DownloadFailed(f"{url} has no {member}: {error}") from error
    return program


def _check(program: Path, arguments: Sequence[str], url: str) -> None:
    """Raises DownloadFailed if the program does not run on this system."""
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        subprocess.run([str(program), *arguments], env=environment, capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise DownloadFailed(f"the program of {url} does not run here: {error}") from error
