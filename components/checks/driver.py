"""Checks some nodes over SSH, all at once.

pulumi-command starts it as `python -m metal_ipi.components.checks.driver`. A request (JSON, see `pool_check`) comes on
standard input, the SSH key in an environment variable. If all nodes pass, it prints one JSON document on standard
output: node name → lines of results. If nodes fail, it writes every failure to standard error, prints no document, and
exits with status 1.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metal_ipi.provider.node_check import CheckOutputError, parse, script_of

if TYPE_CHECKING:
    import asyncssh

KEY = "METAL_IPI_SSH_KEY"
"""The environment variable with the private key of user `core`."""
OF_EACH = ("EXPECTED_HOSTNAME", "EXPECTED_PUBLIC_IPV4")
"""The variables with a node's name and its address."""
_DIALS, _PAUSE_SECONDS = 10, 2.0
_DIAL_SECONDS, _PATIENCE_SECONDS = 15.0, 300.0
"""How long the first dial waits for an answer, and how long all of them. Each next one waits twice as long: of many
busy machines none would ever answer if each were dialled anew before it could."""
_CHECK_SECONDS = 300.0
"""Longer than the script waits for Afterburn."""
_BAD_REQUEST = 64


class CheckError(Exception):
    """A node is not as expected, or cannot be checked; the message names the node and the reason."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One node to check."""

    name: str
    """Its full name."""
    address: str
    """The address at which SSH answers."""
    host_key: str
    """Its pinned host key."""
    variables: Mapping[str, str]
    """The variables of the script: what the node must be."""
    port: int = 22


def targets(request: Mapping[str, Any]) -> list[Target]:
    """The nodes of a request. Raises KeyError, TypeError or ValueError if the request is not valid."""
    return [_target(request["all"], dict(zip(request["own"], node, strict=True))) for node in request["nodes"]]


def _target(common: Mapping[str, str], own: dict[str, str]) -> Target:
    del own["machine"]  # it is in the request only so that the command runs again for another machine
    host_key = own.pop("hostKey")
    return Target(name=own[OF_EACH[0]], address=own[OF_EACH[1]], host_key=host_key, variables={**common, **own})


async def check_all(nodes: list[Target], private_key: str) -> tuple[dict[str, str], list[str]]:
    """Check all nodes at once. Returns the output of each node that passed, by name; and the failures of the others."""
    answers = await asyncio.gather(*(_check(node, private_key) for node in nodes), return_exceptions=True)
    passed, failures = dict[str, str](), list[str]()
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, CheckError):
            failures.append(str(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            passed[node.name] = answer
    return passed, failures


async def _check(node: Target, private_key: str) -> str:
    import asyncssh

    connection = await _connect(node, private_key)
    try:
        done = await connection.run(
            script_of(node.variables), stdin=asyncssh.DEVNULL, timeout=_CHECK_SECONDS, errors="replace"
        )
    except (OSError, TimeoutError, asyncssh.Error) as error:
        raise CheckError(
            f"{node.name}: the connection of the check was lost: {error or type(error).__name__}"
        ) from None
    finally:
        connection.close()
    error_text, out = str(done.stderr or "").strip(), str(done.stdout or "")
    if done.exit_status != 0:
        raise CheckError(error_text or f"{node.name}: the check ended with {done.exit_status}, and printed nothing")
    try:
        parse(out)
    except CheckOutputError as error:
        raise CheckError(f"{node.name}: {error}") from None
    return out.rstrip("\n")


async def _connect(node: Target, private_key: str) -> asyncssh.SSHClientConnection:
    """Log in, with several attempts: a node that has just started may refuse connections for a moment."""
    import asyncssh

    why, limit = "", _DIAL_SECONDS
    clock = asyncio.get_running_loop().time
    deadline = clock() + _PATIENCE_SECONDS
    dial = 0
    while dial < _DIALS and clock() < deadline:
        if dial:
            await asyncio.sleep(_PAUSE_SECONDS)
        dial += 1
        try:
            return await asyncio.wait_for(
                asyncssh.connect(
                    node.address,
                    node.port,
                    username="core",
                    client_keys=[asyncssh.import_private_key(private_key)],
                    known_hosts=([asyncssh.import_public_key(node.host_key)], [], []),
                    agent_path=None,
                    config=None,
                ),
                limit,
            )
        except (asyncssh.KeyImportError, asyncssh.HostKeyNotVerifiable) as error:
            raise CheckError(f"{node.name}: SSH at {node.address}: {error}") from None
        except TimeoutError:
            why = f"no answer within {limit:.0f} s"
            limit = min(2 * limit, deadline - clock())
        except (OSError, asyncssh.Error) as error:
            why = str(error) or type(error).__name__
    raise CheckError(f"{node.name}: no SSH connection to {node.address} after {dial} attempts: {why}")


def main() -> int:
    """Read the request from standard input, check the nodes, print the results."""
    try:
        nodes, private_key = targets(json.load(sys.stdin)), os.environ[KEY]
    except (ValueError, KeyError, TypeError) as error:
        print(f"the request is incomplete: {error!r}", file=sys.stderr)
        return _BAD_REQUEST
    passed, failures = asyncio.run(check_all(nodes, private_key))
    if failures:
        print("\n".join(failures), file=sys.stderr)
        return 1
    json.dump(passed, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
