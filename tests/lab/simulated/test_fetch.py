"""Downloads of simulated machines."""

from __future__ import annotations

import asyncio

from lab.machines.simulated import fetch


def test_a_server_may_close_a_connection_that_it_has_not_heard_of_for_a_while() -> None:
    """A busy facility takes longer between two files than servers keep a connection: it is closed when the next
    request is on its way."""

    answered = asyncio.Queue[None]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        await reader.read(1)
        writer.close()
        await writer.wait_closed()
        answered.put_nowait(None)

    async def run() -> list[int]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        downloads = fetch.Downloads()
        async with server, fetch.client("127.0.0.1", fetch.no_trust()) as http:
            sizes = [(await downloads.get(http, f"{url}/{name}")).size for name in ("kernel", "initramfs")]
            for _ in sizes:
                await answered.get()
        return sizes

    assert asyncio.run(run()) == [2, 2]
