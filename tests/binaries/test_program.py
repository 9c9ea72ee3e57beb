"""A program is downloaded and checked; whatever is wrong with the download, it is built and the file is not used."""

from __future__ import annotations

import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from binaries import publisher
from binaries.cache import Report
from binaries.errors import DownloadFailed, ProgramMissing
from binaries.program import Program
from binaries.release import Release
from tests import serving
from tests.binaries import server
from tests.binaries.server import Publisher

mirror = server.mirror
GOOD = b"#!/bin/sh\necho published\n"
WHERE = "/files.test/v1/tool"


@dataclass
class Builder:
    """Takes the place of compiling."""

    path: Path
    built: int = 0
    there: bool = False

    def cached(self) -> Path | None:
        return self.path if self.there else None

    def ensure(self, report: Report) -> Path:
        self.built += 1
        self.there = True
        return self.path


@dataclass
class Case:
    """A program that a test asks for, and what the user was told."""

    builder: Builder
    told: list[str] = field(default_factory=list[str])

    def program(self, *, member: str = "", base: str = "https://files.test/v1") -> Program:
        release = Release(url=f"{base}/tool", sums=f"{base}/tool.sha256", member=member)
        return Program(name="tool", version="1.2.3", release=release, builder=self.builder)

    def get(self, **options: str) -> Path:
        return self.program(**options).ensure(self.told.append)

    def is_built(self) -> bool:
        """Whether it was built, once, and nothing of a download was kept."""
        kept = [path.name for path in (self.builder.path.parent / "cache").rglob("*") if path.is_file()]
        return self.builder.built == 1 and kept == ["lock"]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(builder=Builder(path=tmp_path / "built"))


def _offer(mirror: Publisher, content: bytes = GOOD) -> str:
    total = mirror.offer(WHERE, content)
    mirror.offer(f"{WHERE}.sha256", total.encode())
    return total


def test_what_is_published_is_downloaded_once_and_runs(mirror: Publisher, case: Case) -> None:
    _offer(mirror)
    path = case.get()
    assert case.get() == case.program().cached() == path
    assert subprocess.check_output([path], text=True) == "published\n"
    assert mirror.asked == [f"{WHERE}.sha256", WHERE]
    assert (case.builder.built, [each.name for each in path.parent.iterdir()]) == (0, ["tool"])


def test_a_program_is_taken_out_of_its_archive(mirror: Publisher, case: Case) -> None:
    total = mirror.offer(WHERE, server.archive("tool-1/bin/tool", GOOD))
    others = "\n".join(f"{'0' * 64}  {name}" for name in ("tool.sig", "other-tool", "tool-arm64"))
    mirror.offer(f"{WHERE}.sha256", f"{others}\n{total}  tool\n".encode())
    path = case.get(member="tool-1/bin/tool")
    assert path.read_bytes() == GOOD
    assert [each.name for each in path.parent.iterdir()] == ["tool"]


def test_a_file_with_another_checksum_is_not_used(mirror: Publisher, case: Case) -> None:
    right = _offer(mirror)
    wrong = mirror.offer(WHERE, b"#!/bin/sh\necho evil\n")
    assert case.get() == case.builder.path
    assert (
        f"error: {mirror.url}{WHERE} has the SHA-256 sum {wrong}, but {mirror.url}{WHERE}.sha256 says {right}"
        in (case.told[-2])
    )
    assert case.told[-1] == "tool 1.2.3 is built instead"
    assert case.is_built()


def test_half_a_file_is_not_used(mirror: Publisher, case: Case) -> None:
    _offer(mirror)
    mirror.answers[WHERE] = server.breaking_off(GOOD)
    assert case.get() == case.builder.path
    assert mirror.asked.count(WHERE) == 2, "it is tried once more"
    assert f"{mirror.url}{WHERE} was not downloaded completely" in case.told[-1]
    assert case.is_built()


def test_a_transfer_that_stalls_ends(mirror: Publisher, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "_STALLED", 0.3)
    _offer(mirror)
    mirror.answers[WHERE] = server.stalling(GOOD, mirror.ended)
    assert case.get() == case.builder.path
    assert "was not downloaded completely" in case.told[-1]
    assert case.is_built()


def test_a_transfer_that_crawls_ends(mirror: Publisher, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "_LONGEST", 0.0)
    _offer(mirror)
    assert case.get() == case.builder.path
    assert f"{mirror.url}{WHERE} is too slow" in case.told[-1]
    assert case.is_built()


def test_without_a_network_programs_are_built_after_seconds(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two silent hosts hold a run up for two limits, however many programs it needs and processes it has."""
    assert publisher._FIRST_ANSWER + publisher._NEXT_ANSWER <= 5, "seconds"  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(publisher, "_FIRST_ANSWER", 0.3)
    monkeypatch.setattr(publisher, "_NEXT_ANSWER", 0.2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(case.builder.path.parent / "cache"))
    monkeypatch.setenv(publisher.UNREACHABLE, "")
    monkeypatch.delenv(publisher.SETTING, raising=False)
    started = time.monotonic()
    with server.silence() as first, server.silence() as second:
        for base in (first, first, second.replace("127.0.0.1", "localhost"), first):
            case.builder.there = False
            assert case.get(base=base) == case.builder.path
        took = time.monotonic() - started
        ask = "import os, sys; sys.exit(set(os.environ['METAL_IPI_UNREACHABLE'].split()) != {'127.0.0.1', 'localhost'})"
        assert subprocess.call([sys.executable, "-c", ask]) == 0
    assert case.builder.built == 4
    assert 0.5 <= took < 2.5
    assert "is built, because it cannot be downloaded: 127.0.0.1 cannot be reached: " in case.told[0]
    assert "127.0.0.1 did not answer before" in case.told[1] and case.told[3] == case.told[1]


def test_a_name_that_cannot_be_looked_up_holds_nothing_up(
    mirror: Publisher, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resolver that gets no answer waits for many times as long as we do."""
    monkeypatch.setattr(publisher, "_FIRST_ANSWER", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: mirror.ended.wait(30) and [])
    started = time.monotonic()
    assert case.get() == case.builder.path
    assert time.monotonic() - started < 5
    assert "localhost cannot be reached: no answer" in case.told[-1]


@pytest.mark.parametrize("path", [WHERE, f"{WHERE}.sha256"])
def test_a_file_that_is_not_there_is_named(mirror: Publisher, case: Case, path: str) -> None:
    _offer(mirror)
    del mirror.answers[path]
    assert case.get() == case.builder.path
    assert f"{mirror.url}{path} answers 404 Not Found" in case.told[-1]
    assert os.environ[publisher.UNREACHABLE] == "", "the host itself answers"
    assert case.is_built()


def test_checksums_of_other_files_alone_are_not_enough(mirror: Publisher, case: Case) -> None:
    total = _offer(mirror)
    mirror.offer(f"{WHERE}.sha256", f"{total}  tool.exe\n{total[:-1]}  tool\n".encode())
    assert case.get() == case.builder.path
    assert f"{WHERE}.sha256 has no SHA-256 sum of {mirror.url}{WHERE}" in case.told[-1]
    assert WHERE not in mirror.asked


def test_a_certificate_of_somebody_else_is_refused(
    mirror: Publisher, case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _offer(mirror)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "other.pem"))
    assert case.get() == case.builder.path
    assert "localhost cannot be reached" in case.told[-1] and "certificate verify failed" in case.told[-1]
    assert mirror.asked == []


def test_a_redirection_is_followed_but_not_out_of_tls(mirror: Publisher, case: Case) -> None:
    _offer(mirror)
    mirror.answers["/elsewhere"] = mirror.answers[WHERE]
    mirror.answers[WHERE] = server.sending(b"", 302, Location="/elsewhere")
    assert case.get().read_bytes() == GOOD

    class Plain(serving.Handler):
        def do_GET(self) -> None:
            server.sending(GOOD)(self)

    (case.program().cached() or case.builder.path).unlink()
    with serving.answering(Plain) as plain:
        url = f"{plain}/"
        mirror.answers[WHERE] = server.sending(b"", 302, Location=url)
        assert case.get() == case.builder.path
    assert f"{url} is not https: it is not used" in case.told[-1]


def test_the_proxy_of_the_environment_is_asked(mirror: Publisher, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Refusing(serving.Handler):
        def do_CONNECT(self) -> None:
            asked.append(self.path)
            self.send_error(403)

    with serving.answering(Refusing) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        monkeypatch.delenv(publisher.SETTING)
        assert case.get() == case.builder.path
    assert asked == ["files.test:443"]
    assert "files.test cannot be reached: 403" in case.told[-1]


def test_downloads_can_be_switched_off(mirror: Publisher, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(publisher.SETTING, "off")
    assert case.get() == case.builder.path
    assert case.told == ["tool 1.2.3 is built, because it cannot be downloaded: METAL_IPI_DOWNLOADS is off"]


@pytest.mark.parametrize("value", ["http://mirror.test", "no", "https://mirror.test:port"])
def test_a_setting_that_is_no_mirror_is_refused(
    mirror: Publisher, case: Case, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(publisher.SETTING, value)
    with pytest.raises(ProgramMissing, match=publisher.SETTING):
        case.get()
    assert case.builder.built == 0


def test_a_program_that_does_not_run_here_is_not_used(mirror: Publisher, case: Case) -> None:
    _offer(mirror, b"#!/bin/sh\nexit 1\n")
    assert case.get() == case.builder.path
    assert "does not run here" in case.told[-1]
    assert case.is_built()


@pytest.mark.parametrize("content", [server.archive("other", GOOD), GOOD])
def test_an_archive_without_the_program_is_not_used(mirror: Publisher, case: Case, content: bytes) -> None:
    _offer(mirror, content)
    assert case.get(member="tool") == case.builder.path
    assert f"{mirror.url}{WHERE} has no tool" in case.told[-1]
    assert case.is_built()


def test_where_nobody_can_build_it_the_failure_is_the_answer(mirror: Publisher, case: Case) -> None:
    release = case.program().release
    with pytest.raises(DownloadFailed, match="404"):
        Program(name="tool", version="1.2.3", release=release, builder=None).ensure(case.told.append)


def test_a_machine_that_nothing_is_published_for_builds(mirror: Publisher, case: Case) -> None:
    program = Program(name="tool", version="1.2.3", release=None, builder=case.builder)
    assert program.ensure(case.told.append) == case.builder.path
    assert "its publisher has no build for" in case.told[-1] and mirror.asked == []


def test_runs_at_the_same_time_wait_for_one_download(mirror: Publisher, case: Case) -> None:
    _offer(mirror)
    begun, go_on = threading.Event(), threading.Event()
    whole = mirror.answers[WHERE]

    def slowly(handler: http.server.BaseHTTPRequestHandler) -> None:
        begun.set()
        go_on.wait(30)
        whole(handler)

    mirror.answers[WHERE] = slowly
    found: list[Path] = []
    runs = [threading.Thread(target=lambda: found.append(case.get())) for _ in range(2)]
    runs[0].start()
    assert begun.wait(30)
    runs[1].start()
    while "waiting for another run that is making tool ..." not in case.told:
        assert runs[1].is_alive()
        time.sleep(0.01)
    go_on.set()
    for run in runs:
        run.join()
    assert len(found) == 2 and len(set(found)) == 1
    assert mirror.asked.count(WHERE) == 1 and case.builder.built == 0
