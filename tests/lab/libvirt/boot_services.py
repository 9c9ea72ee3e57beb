"""The services that a machine needs to boot: files, metadata and names; for tests of machines alone."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.layout import Layout
from lab.network import plan


@dataclass(frozen=True)
class Answer:
    """What an URL answers: a document in memory, or a file."""

    body: bytes | Path
    status: int = 200


class BootServices:
    """HTTP at the metadata and boot addresses, HTTPS for metadata, DNS for its name; in this network namespace.

    `pages` maps `<host address>/<path>` to answers; it may change while they run. POSTs are accepted and kept.
    """

    def __init__(self, layout: Layout, pages: Mapping[str, Answer]) -> None:
        self._layout = layout
        self._pages = pages
        self._servers: list[asyncio.AbstractServer] = []
        self._dns: asyncio.subprocess.Process | None = None
        self.posted: list[tuple[str, str, bytes]] = []
        """Client address, path and body of every POST, in order."""

    async def open(self) -> None:
        """Listen."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        name = "metadata.packet.net"
        context.load_cert_chain(self._layout.tls / f"{name}.crt", self._layout.tls / f"{name}.key")
        for address, port, tls in ((plan.METADATA, 80, None), (plan.METADATA, 443, context), (plan.BOOT, 80, None)):
            self._servers.append(await asyncio.start_server(self._serve, address, port, ssl=tls))
        names = {name: plan.METADATA, plan.BOOT_NAME: plan.BOOT}
        self._dns = await asyncio.create_subprocess_exec(
            *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--pid-file="),
            *("--no-resolv", "--no-hosts", "--bind-interfaces", "--listen-address", plan.DNS),
            *("--except-interface=lo", *(f"--address=/{host}/{address}" for host, address in names.items())),
        )

    async def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.close()
        if self._dns is not None and self._dns.returncode is None:
            self._dns.terminate()
            await self._dns.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
            method, target, _ = request.split(" ", 2)
            headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            client, host = writer.get_extra_info("peername")[0], writer.get_extra_info("sockname")[0]
            if method == "POST":
                self.posted.append((client, target, body))
                answer = Answer(b"")
            else:
                answer = self._page(host, target, client)
            size = answer.body.stat().st_size if isinstance(answer.body, Path) else len(answer.body)
            writer.write(
                f"HTTP/1.1 {answer.status} -\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n".encode("latin-1")
            )
            if method != "HEAD":
                await self._send(writer, answer.body)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the machine went away: its power was cut
        finally:
            writer.close()

    def _page(self, host: str, target: str, client: str) -> Answer:
        """A page, by its full name or, for what differs from machine to machine, by its client's."""
        for name in (f"{host}{target}", f"{host}{target}@{client}"):
            if name in self._pages:
                return self._pages[name]
        return Answer(b"not here\n", 404)

    @staticmethod
    async def _send(writer: asyncio.StreamWriter, body: bytes | Path) -> None:
        if isinstance(body, bytes):
            writer.write(body)
            await writer.drain()
            return
        await writer.drain()
        with body.open("rb") as file:
            await asyncio.get_running_loop().sendfile(writer.transport, file)
