"""Runs inside the lab (`python -m lab run`): prints what it holds, or tells its API to misbehave.

python -m tests.end_to_end.inside STATE holdings                 devices, keys, faults, DNS records, as JSON
python -m tests.end_to_end.inside STATE faults '[{...}, ...]'    replace all faults
python -m tests.end_to_end.inside STATE hits                     print the faults that are set
python -m tests.end_to_end.inside STATE call METHOD PATH [BODY]  one call of the Metal API, or of /lab/...
python -m tests.end_to_end.inside STATE calls                    several calls: a JSON list of [METHOD, PATH, BODY]
                                                                 is read from standard input; prints the answers
python -m tests.end_to_end.inside STATE ssh COMMAND ADDRESS...   what nodes say to a command, as JSON; the private key
                                                                 is read from standard input
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import httpx

from lab import facts
from lab.layout import Layout

# What only one command needs is imported there: tests start these commands some hundred times.

_CONTROL = "https://api.equinix.com/lab"
_LONGEST = 240.0
"""Seconds until a node answers: it may be booting, emulated in software."""


async def _said(address: str, private_key: str, command: str, until: float) -> str:
    """Nodes that are still booting are waited for."""
    import asyncssh

    key = asyncssh.import_private_key(private_key)
    while True:
        try:
            async with asyncssh.connect(
                address, username="core", client_keys=[key], known_hosts=None, connect_timeout=10, config=None
            ) as node:
                return str((await node.run(command, check=True, timeout=30)).stdout)
        except (OSError, asyncssh.Error):
            if time.monotonic() > until:
                raise
        await asyncio.sleep(1)


async def _ssh(command: str, *addresses: str) -> None:
    key = sys.stdin.read()
    until = time.monotonic() + _LONGEST
    said = await asyncio.gather(*(_said(address, key, command, until) for address in addresses))
    print(json.dumps(dict(zip(addresses, said, strict=True))))


def main() -> None:
    """One command."""
    known = facts.require(Layout.of(sys.argv[1]))
    if sys.argv[2] == "ssh":
        asyncio.run(_ssh(*sys.argv[3:]))
        return
    assert known.api is not None, "a lab with the Metal API"
    client = httpx.Client(headers={"X-Auth-Token": known.api.token}, verify=known.ca_path, timeout=20)
    match sys.argv[2:]:
        case ["holdings"]:
            from lab.network.inventory import dns_records

            inventory = _ok(client.get(f"{_CONTROL}/inventory")).json()
            devices: list[dict[str, Any]] = []
            for entry in inventory["devices"]:
                answer = client.get(f"{known.api.url}/devices/{entry['id']}")
                if answer.status_code != 404:  # it went since it was listed
                    devices.append(_ok(answer).json())
            records = [record.removeprefix("DNS record ") for record in dns_records(known.dns)]
            print(json.dumps({**inventory, "devices": devices, "records": records}))
        case ["faults", text]:
            _ok(client.delete(f"{_CONTROL}/faults"))
            for fault in json.loads(text):
                _ok(client.post(f"{_CONTROL}/faults", json=fault))
        case ["hits"]:
            print(json.dumps(_ok(client.get(f"{_CONTROL}/faults")).json()["faults"]))
        case ["call", method, path, *body]:
            print(_call(client, known.api.url, method, path, json.loads(body[0]) if body else None).text)
        case ["calls"]:
            answers = [_call(client, known.api.url, *call) for call in json.load(sys.stdin)]
            print(json.dumps([answer.json() if answer.content else {} for answer in answers]))
        case _:
            raise SystemExit(__doc__)


def _call(client: httpx.Client, url: str, method: str, path: str, body: Any) -> httpx.Response:
    base = _CONTROL.removesuffix("/lab") if path.startswith("/lab/") else url
    return _ok(client.request(method, f"{base}{path}", json=body))


def _ok(answer: httpx.Response) -> httpx.Response:
    answer.raise_for_status()
    return answer


if __name__ == "__main__":
    main()
