"""A client outside of the facility: a command in a network namespace of its own, behind the facility's router.

Run inside the lab: `python -m lab run --state DIR -- python -m lab.network.client -- COMMAND ...`. The namespace has
one link to the router and a default route over it, so the command reaches what the router has a route to, and nothing
else. It has no name and no mount: it is gone, with its link, when the command ends.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from lab.errors import LabError, SandboxRefused
from lab.network import namespaces, plan

_HERE = Path("/proc/self/ns/net")
_TAKEN = "File exists"


def become(command: Sequence[str]) -> NoReturn:
    """Be `command`, as a client; raises LabError when that cannot be."""
    if not command:
        raise LabError("no command: python -m lab.network.client -- COMMAND ...")
    facility = os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)
    namespaces.unshare(namespaces.CLONE_NEWNET)
    client = os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)
    _ip("link set lo up\nlink add eth0 type veth peer name facility")
    link, (router, address) = _plug(facility)
    namespaces.enter(facility, "net")
    _ip(f"address add {router}/31 dev {link}\nlink set {link} up")
    namespaces.enter(client, "net")
    _ip(f"address add {address}/31 dev eth0\nlink set eth0 up\nroute add default via {router}")
    try:
        os.execvp(command[0], list(command))  # noqa: S606
    except OSError as error:
        raise LabError(f"{command[0]}: {error.strerror}") from error


def _plug(facility: int) -> tuple[str, ipaddress.IPv4Network]:
    """Plug the link's other end into the facility, under the first free number: its name there is what claims it."""
    for number, pair in enumerate(ipaddress.IPv4Network(plan.CLIENTS).subnets(new_prefix=31)):
        try:
            _ip(f"link set facility netns /proc/self/fd/{facility} name client{number}", facility)
        except SandboxRefused as error:
            if _TAKEN not in str(error):
                raise
        else:
            return f"client{number}", pair
    raise LabError(f"all of {plan.CLIENTS} are in use by other clients: end some of them")


def _ip(commands: str, *descriptors: int) -> None:
    done = subprocess.run(
        ["ip", "-batch", "-"], input=commands, text=True, capture_output=True, check=False, pass_fds=descriptors
    )
    if done.returncode:
        raise SandboxRefused(f"cannot connect a client to the lab's network: {done.stderr.strip()}")


def main() -> int:
    """Become the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    command: list[str] = parser.parse_args().command
    try:
        become(command[1:] if command[:1] == ["--"] else command)
    except (LabError, OSError) as error:
        print(f"lab client: {error}", file=sys.stderr)
        return 126


if __name__ == "__main__":
    sys.exit(main())
