"""Asks Ironic's API in the facility's network: `ironic_client ENDPOINT CA USER WHAT...`, the password by stdin.

conductors                  {name: whether it is alive}
enrol COUNT                 enrols nodes, which nothing is behind
nodes                       {name: the conductor that it belongs to}
version                     the newest version of the API
states                      {name: [provision state, power state, whether it is claimed]}
accounts                    statuses of questions without, and with a wrong account
poll SECONDS [PATH]         statuses by how often they came, of questions asked up to ten times a second
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from collections import Counter
from typing import Any

import httpx


def main(endpoint: str, authority: str, user: str, what: str, *more: str) -> Any:
    """The answer, as plain data."""
    password = sys.stdin.read()
    trust = ssl.create_default_context(cafile=authority)
    headers = {"X-OpenStack-Ironic-API-Version": "1.90"}
    with httpx.Client(
        base_url=endpoint, verify=trust, trust_env=False, timeout=30.0, headers=headers, auth=(user, password)
    ) as client:
        if what == "conductors":
            return {
                each["hostname"].split(".")[0]: each["alive"] for each in _get(client, "/v1/conductors")["conductors"]
            }
        if what == "nodes":
            found = _get(client, "/v1/nodes/detail")["nodes"]
            return {each["name"]: each["conductor"].split(".")[0] for each in found}
        if what == "version":
            return client.get("/").json()["default_version"]["version"]
        if what == "states":
            found = _get(client, "/v1/nodes/detail")["nodes"]
            return {
                each["name"]: [each["provision_state"], each["power_state"], bool(each["instance_uuid"])]
                for each in found
            }
        if what == "enrol":
            for count in range(int(more[0])):
                info = {"redfish_address": "https://192.0.2.65"}
                answer = client.post(
                    "/v1/nodes", json={"name": f"node-{count}", "driver": "redfish", "driver_info": info}
                )
                answer.raise_for_status()
            return None
        if what == "poll":
            return _poll(client, float(more[0]), *more[1:])
    nobody = httpx.get(f"{endpoint}/v1/nodes", verify=trust, trust_env=False)
    wrong = httpx.get(f"{endpoint}/v1/nodes", verify=trust, trust_env=False, auth=(user, "wrong"))
    return [nobody.status_code, wrong.status_code]


def _get(client: httpx.Client, path: str) -> Any:
    answer = client.get(path)
    answer.raise_for_status()
    return answer.json()


def _poll(client: httpx.Client, seconds: float, path: str = "/v1/nodes") -> dict[str, int]:
    """As a client that asks again when a connection breaks, once."""
    seen: Counter[str] = Counter()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for last in (False, True):
            try:
                seen[str(client.get(path).status_code)] += 1
                break
            except httpx.TransportError as error:
                if last:
                    seen[type(error).__name__] += 1
        time.sleep(0.1)
    return dict(seen)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
