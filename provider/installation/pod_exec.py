"""Runs a command in a pod's container through the API, like `oc rsh` and `kubectl exec`.

A WebSocket with the subprotocol v4.channel.k8s.io: each message begins with the number of its channel; 1 is standard
output, 2 standard error, and 3, after the command's end, a Status (kubernetes staging/src/k8s.io/kubelet/pkg/cri/
streaming/remotecommand/websocket.go). Imported only when it is needed, which is rare.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.gates.https import Api, reason_of

_PROTOCOL = "v4.channel.k8s.io"
_OUTPUT, _ERRORS, _STATUS = 1, 2, 3


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The result of a command."""

    code: int
    output: str
    errors: str


async def execute(api: Api, pod: Mapping[str, Any], container: str, command: Sequence[str], *, timeout: float) -> Ran:
    """Run a command to its end. Raises RemoteError if that was not possible."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import WebSocketException
    from websockets.typing import Subprotocol

    name, namespace = (str(pod["metadata"][key]) for key in ("name", "namespace"))
    query = [("container", container), ("stdout", "true"), ("stderr", "true"), *(("command", word) for word in command)]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/exec?{urlencode(query)}"
    parts: dict[int, bytearray] = {_OUTPUT: bytearray(), _ERRORS: bytearray(), _STATUS: bytearray()}

    async def run() -> None:
        url = api.url.replace("https", "wss", 1) + path
        # Connect directly, like all requests to the cluster.
        async with connect(url, ssl=api.tls, subprotocols=[Subprotocol(_PROTOCOL)], proxy=None) as socket:
            async for message in socket:
                data = message.encode() if isinstance(message, str) else message
                if data and data[0] in parts:
                    parts[data[0]] += data[1:]

    try:
        await asyncio.wait_for(run(), timeout)
    except TimeoutError:
        raise RemoteError(f"`{' '.join(command)}` in pod {name} did not end within {timeout:g} s") from None
    except (OSError, WebSocketException) as error:
        raise RemoteError(f"`{' '.join(command)}` in pod {name}: {reason_of(error, api.url)}") from None
    if not parts[_STATUS]:
        raise RemoteError(f"`{' '.join(command)}` in pod {name}: the connection ended before the command did")
    output, errors = (parts[channel].decode(errors="replace") for channel in (_OUTPUT, _ERRORS))
    return Ran(code=_code(bytes(parts[_STATUS]), name), output=output, errors=errors)


def _code(said: bytes, pod: str) -> int:
    """The exit status in a Status. Raises RemoteError."""
    try:
        status: Mapping[str, Any] = json.loads(said)
        if status.get("status") == "Success":
            return 0
        causes: Sequence[Mapping[str, Any]] = (status.get("details") or {}).get("causes") or ()
        codes = [int(cause["message"]) for cause in causes if cause.get("reason") == "ExitCode"]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RemoteError(f"pod {pod} does not report how the command ended: {said[:200]!r}") from None
    if not codes:
        raise RemoteError(f"pod {pod}: {status.get('message') or 'the command could not be run'}")
    return codes[0]
