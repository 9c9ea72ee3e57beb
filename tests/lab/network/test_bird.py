"""The router's configuration as text, its answers as data, and labs on systems without BIRD."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import control, facts, services
from lab.layout import Layout
from lab.network import bird, bird_control
from lab.network.bgp import Peer, RouterError, Routes, Seen
from lab.network.bird_control import Route
from tests.lab.openshift import kinds

ONE = "0a000000-0000-4000-8000-000000000001"
TWO = "0a000000-0000-4000-8000-000000000002"
PEER = Peer(
    name=ONE,
    address="203.0.113.1",
    asn=65000,
    password="Secret1234",
    prefixes=("192.0.2.128/30", "192.0.2.136/32"),
    default_route=False,
)
QUIET = Peer(name=TWO, address="203.0.113.3", asn=65000, password=None, prefixes=(), default_route=True)
WISHES = Routes(peers=(PEER, QUIET))
SESSION = """\
protocol bgp s0a000000000040008000000000000001_2 from machine {
  local 169.254.255.2;
  neighbor 203.0.113.1 port 180 as 65000;
  password "Secret1234";
  ipv4 {
    igp table facility4;
    import table yes;
    import where net ~ [ 192.0.2.128/30+, 192.0.2.136/32+ ];
    import limit 10 action restart;
    export none;
  };
}
"""
PROTOCOLS = """\
Name       Proto      Table      State  Since         Info
device1    Device     ---        up     07:47:04.299
s0a000000000040008000000000000001_1 BGP        ---        up     07:47:05.222  Established
s0a000000000040008000000000000001_2 BGP        ---        start  07:47:04.299  Passive
""".splitlines()
TABLE = """\
Table master4:
0.0.0.0/0            unreachable [default_route 07:47:04.299] * (200)
192.0.2.128/32       unicast [s0a000000000040008000000000000001_1 07:47:05.276] * (100) [AS65000i]
	via 203.0.113.1 on facility0
                     unicast [s0a000000000040008000000000000001_2 07:47:05.336 from 203.0.113.1] (100) [AS65000i]
	via 203.0.113.1 on facility0
                     unicast [s0a000000000040008000000000000002_1 07:47:05.336] (100/?) [AS65000i]
	via 203.0.113.3 on facility0
192.0.2.130/32       unreachable [s0a000000000040008000000000000001_1 07:47:05.276] * (100/-) [AS65000i]
""".splitlines()
FOUND = [
    Route(
        prefix="192.0.2.128/32",
        via=("203.0.113.1", "203.0.113.3"),
        protocols=(bird.protocol(ONE, 1), bird.protocol(ONE, 2), bird.protocol(TWO, 1)),
    ),
    Route(prefix="192.0.2.130/32", via=(), protocols=(bird.protocol(ONE, 1),)),
]


def test_a_session_is_a_protocol_for_each_router() -> None:
    text = bird.render(WISHES, md5=True)
    assert SESSION in text
    assert SESSION.replace("_2 from", "_1 from").replace("255.2", "255.1").replace("port 180", "port 179") in text
    assert text.count("protocol bgp ") == 4
    assert "hold time 3;\n  keepalive time 1;" in text


def test_nothing_reserved_is_nothing_accepted() -> None:
    quiet = bird.render(Routes(peers=(QUIET,)), md5=True)
    assert quiet.count("import none;\n    import limit") == 2
    assert quiet.count('export where proto = "default_route";') == 2
    assert "password" not in quiet


def test_a_kernel_without_signatures_gets_no_passwords() -> None:
    assert bird.render(WISHES, md5=False) == bird.render(WISHES, md5=True).replace('  password "Secret1234";\n', "")


@pytest.mark.skipif(not bird.program(), reason="BIRD is not installed (package bird2)")
@pytest.mark.parametrize("wishes", [Routes(), WISHES])
def test_bird_accepts_what_is_rendered(tmp_path: Path, wishes: Routes) -> None:
    (tmp_path / "bird.conf").write_text(bird.render(wishes, md5=True))
    command = [bird.program() or "", "-p", "-c", str(tmp_path / "bird.conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_answers_become_data() -> None:
    states = bird_control.parse_protocols(PROTOCOLS)
    assert states == {"device1": "up", bird.protocol(ONE, 1): "up", bird.protocol(ONE, 2): "start"}
    assert bird_control.parse_routes(TABLE) == FOUND
    assert bird_control.parse_routes([]) == []
    assert bird_control.seen((ONE, TWO), states, FOUND) == {
        ONE: Seen(states=("up", "down"), learned=("192.0.2.128/32", "192.0.2.130/32")),
        TWO: Seen(states=("down", "down"), learned=("192.0.2.128/32",)),
    }


@contextmanager
def answering(directory: Path, answer: bytes) -> Generator[list[bytes], None, None]:
    """A control socket that greets, and answers every command the same."""
    asked: list[bytes] = []
    descriptor = os.open(directory, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{descriptor}/{bird.CONTROL}")
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile("rwb") as stream:
                stream.write(b"0001 BIRD 2.0.12 ready.\n")
                stream.flush()
                for line in stream:
                    asked.append(line)
                    stream.write(answer)
                    stream.flush()
                    if not answer.endswith(b"\n"):
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield asked
        finally:
            thread.join(5)
            os.close(descriptor)


def test_the_control_socket_is_spoken_to_as_bird_wants_it(tmp_path: Path) -> None:
    with answering(tmp_path, b"1007-Table master4:\n a\n+b\n1008-c\n0000 \n") as asked:
        assert bird_control.ask(tmp_path, ["show route"]) == [["Table master4:", "a", "c", ""]]
    assert asked == [b"show route\n"]


def test_what_bird_refuses_is_told(tmp_path: Path) -> None:
    with (
        answering(tmp_path, b"0002-Reading configuration from bird.conf\n8002 bird.conf:1:1 syntax error\n"),
        pytest.raises(RouterError, match=r"refuses `configure`: bird.conf:1:1 syntax error"),
    ):
        asyncio.run(bird_control.Bird(tmp_path, md5=True).configure(Routes()))
    assert (tmp_path / bird.CONFIGURATION).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("answer", [b"1007-Table", b""])
def test_half_an_answer_is_none(tmp_path: Path, answer: bytes) -> None:
    with answering(tmp_path, answer), pytest.raises(RouterError, match="hung up"):
        bird_control.ask(tmp_path, ["show route"])


def test_no_router_is_an_error_that_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(RouterError, match=str(tmp_path)):
        bird_control.read(tmp_path)


def test_a_system_without_bird_has_a_lab_without_a_router(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layout = Layout.of(tmp_path / "lab")
    layout.make()
    with_router = facts.ensure(layout, "simulated", kinds.of(Path("/none")))
    assert (with_router.bgp is None) is (bird.program() is None)
    monkeypatch.setattr(bird, "program", lambda: None)
    without = facts.ensure(layout, "simulated", kinds.of(Path("/none")))
    assert without.bgp is None
    assert facts.require(layout) == without
    assert without.api == with_router.api
    assert bird_control.document(layout) is None
    assert "bgp" not in {each.name for each in services.select(layout, "simulated", control.SERVICES)}


@pytest.mark.parametrize(
    ("asked", "started"),
    [
        (control.SERVICES, ["dns", "boot", "bgp", "kubernetes", "metal-api"]),
        (control.RACK_SERVICES, ["dns", "boot", "kubernetes", "bmc"]),
        (("dns", "boot"), ["dns", "boot"]),
    ],
)
def test_the_router_comes_with_the_api(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: tuple[str, ...], started: list[str]
) -> None:
    monkeypatch.setattr(bird, "program", lambda: "/usr/sbin/bird")
    layout = Layout.of(tmp_path / "lab")
    layout.make()
    assert [each.name for each in services.select(layout, "simulated", asked)] == started


def test_facts_say_what_the_router_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bird, "program", lambda: "/usr/sbin/bird")
    layout = Layout.of(tmp_path / "lab")
    layout.make()
    known = facts.ensure(layout, "simulated", kinds.of(Path("/none"))).bgp
    assert known is not None
    assert (known.asn, known.peers, known.elastic) == (65530, ["169.254.255.1", "169.254.255.2"], "192.0.2.128/26")
    assert known.md5 is bird.signatures_work()
