"""Runs API servers for machines: `python -m lab.kubernetes --state DIR`, inside the lab's namespaces.

A machine says over TLS what an API server of its cluster needs, or which node it is (`lab.kubernetes.hello`, a line of
JSON). It is told the address when the server is ready, or why there is none. It goes on saying that it lives, a line
every second; with the connection, or without these lines, the API server ends. Nothing reaches this service but the
lab's own network, and what makes a machine one of its cluster is the key of service accounts, which only the cluster's
control plane has.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import logging
import secrets
import signal
import ssl
import sys

from lab.errors import LabError
from lab.facts import require
from lab.kubernetes.cluster import Cluster, Member
from lab.kubernetes.hello import Hello, NodeHello, data_of, message
from lab.kubernetes.operated import proves
from lab.kubernetes.programs import Programs
from lab.layout import Layout
from lab.network import plan

_LOG = logging.getLogger("lab.kubernetes")
_LARGEST = 1 << 20
_HELLO_SECONDS = 15.0
_SILENCE_SECONDS = 10.0
"""Without a line for so long a machine is off: nothing but its own port leads to its API server."""


class Service:
    """All clusters."""

    def __init__(self, layout: Layout, address: str, programs: Programs | None, stand_in: str) -> None:
        self._layout = layout
        self._address = address
        self._programs, self._stand_in = programs, stand_in
        self._clusters = {each.name: self._cluster(each.name) for each in layout.kubernetes.glob("*/")}
        self._sessions: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the connection of one machine."""
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        machine = writer.get_extra_info("peername")[0]
        try:
            await self._session(machine, reader, writer)
        except (LabError, ValueError) as error:  # ValueError: a line that is too long
            _LOG.warning("%s: %s", machine, error)
            _write(writer, {"error": str(error)})
        except OSError as error:
            _LOG.info("%s: %r", machine, error)
        except asyncio.CancelledError:
            _LOG.info("%s: interrupted, because this service ends", machine)
        finally:
            self._sessions.discard(task)
            writer.close()

    async def close(self) -> None:
        """End all sessions, and with them what runs."""
        for task in self._sessions:
            task.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)
        # A session that was ending already may have been cut off before it came to etcd.
        await asyncio.gather(*(cluster.close() for cluster in self._clusters.values()))

    async def _session(self, machine: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await asyncio.wait_for(reader.readline(), _HELLO_SECONDS)
        if not line:
            return  # somebody who only looked whether we are here
        node, told = NodeHello.of(line), dict[str, str]()
        if node is not None:
            cluster = await self._of_node(node, reader, writer)
            member = await cluster.node_member(node)
            told["kubeconfig"] = cluster.local_kubeconfig
        else:
            hello = Hello.of(line)
            cluster = self._clusters.setdefault(hello.cluster, self._cluster(hello.cluster))
            member = cluster.member(hello)
        async with member as it:
            _LOG.info("%s: an API server at %s", machine, it.address)
            _write(writer, {"address": it.address, **told})
            await self._accompany(cluster, it, reader)
            _LOG.info("%s: gone", machine)

    def _cluster(self, name: str) -> Cluster:
        return Cluster(self._layout.kubernetes / name, self._address, self._programs, self._stand_in)

    async def _of_node(self, node: NodeHello, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Cluster:
        """The cluster of a node, which has to prove that it is it. Raises LabError."""
        cluster = next((each for each in self._clusters.values() if each.has(node)), None)
        if cluster is None:
            raise LabError(f"{node.name} belongs to no known cluster")
        challenge = secrets.token_bytes(32)
        _write(writer, {"challenge": base64.b64encode(challenge).decode()})
        answer = message(await asyncio.wait_for(reader.readline(), _HELLO_SECONDS))
        proves(node, challenge, data_of(answer, "proof"))
        return cluster

    async def _accompany(self, cluster: Cluster, member: Member, reader: asyncio.StreamReader) -> None:
        """Until the machine has gone; raises LabError when what runs for it does not."""
        while line := await asyncio.wait_for(reader.readline(), _SILENCE_SECONDS):
            message(line)
            cluster.check()
            member.server.process.check()


def _write(writer: asyncio.StreamWriter, told: dict[str, str]) -> None:
    writer.write(json.dumps(told).encode() + b"\n")


async def _serve(layout: Layout, programs: Programs | None, stand_in: str) -> None:
    service = Service(layout, plan.KUBERNETES, programs, stand_in)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = layout.tls / plan.KUBERNETES_NAME
    context.load_cert_chain(f"{pair}.crt", f"{pair}.key")
    here = (plan.KUBERNETES, plan.KUBERNETES_PORT)
    server = await asyncio.start_server(service.connected, *here, ssl=context, limit=_LARGEST)
    await stop.wait()
    server.close()
    await service.close()


def main() -> int:
    """Serve until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(prog="lab.kubernetes", description=__doc__)
    parser.add_argument("--state", required=True, help="the lab's state directory")
    layout = Layout.of(parser.parse_args().state)
    known = require(layout)
    asyncio.run(_serve(layout, known.kubernetes, known.openshift))
    return 0


if __name__ == "__main__":
    sys.exit(main())
