"""Name resolution inside the lab: only by the lab's DNS."""

from __future__ import annotations

from pathlib import Path

from lab.errors import SandboxRefused
from lab.layout import Layout
from lab.network import namespaces, plan

FILES = {
    "resolv.conf": f"# the lab's\nnameserver {plan.DNS}\noptions timeout:2 attempts:3\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    # Without this one a host's `resolve` or `mdns` module would ask daemons outside of the sandbox.
    "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
    "protocols: files\nservices: files\nethers: files\nrpc: files\n",
}
"""Files of /etc that the lab has of its own."""

_OPTIONAL = {"nsswitch.conf"}
_CACHES = (Path("/run/nscd"), Path("/var/run/nscd"))


def set_up(layout: Layout) -> None:
    """Cover the host's files, in this mount namespace only."""
    for name, content in FILES.items():
        source = layout.etc / name
        source.write_text(content)
        source.chmod(0o644)
        target = Path("/etc") / name
        if target.exists():
            namespaces.bind_file(source, target.resolve())
        elif name not in _OPTIONAL:
            raise SandboxRefused(f"the lab has to cover {target}, which does not exist here: create it, even empty")
    for cache in _CACHES:  # a running name service cache would answer from outside
        if cache.is_dir():
            namespaces.mount_tmpfs(cache.resolve())
            break
