"""What is asked of a virtual machine, and what it is called in the state."""

from __future__ import annotations

from dataclasses import dataclass

from provider import boot_tree
from provider.errors import InvalidInputs
from provider.fields import HOST_NAME, IPV4, SHORT_NAME, Reader
from provider.platforms.local_vm.domain import VmSpec

KEYS = ("hostname", "cluster", "mac", "publicIpv4", "bridge", "memoryMib", "cpus", "bootImage", "script", "chain")
_FILE = r"(/(?!\.{1,2}(/|$))[^/\x00-\x1f\x7f]+)+"
PREFIX = "local-vm:"
"""How ids of virtual machines begin."""


def read(reader: Reader) -> VmSpec:
    """Reads the inputs of a virtual machine."""
    reader.text("publicIpv4", pattern=IPV4, what="an IPv4 address")
    return VmSpec(
        hostname=reader.text("hostname", pattern=SHORT_NAME, what="a host name"),
        cluster=reader.text("cluster", pattern=HOST_NAME, what="the cluster's domain"),
        mac=boot_tree.read_mac(reader),
        bridge=reader.text("bridge", pattern=r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", what="the name of a bridge"),
        memory_mib=int(reader.number("memoryMib", minimum=1024)),
        cpus=int(reader.number("cpus", minimum=1)),
        boot_image=reader.optional_text("bootImage", pattern=_FILE, what="an absolute path where libvirt runs"),
        script=reader.text("script"),
        chain=reader.text("chain"),
    )


@dataclass(frozen=True, kw_only=True)
class MachineId:
    """An id, taken apart; its form is in the package's docstring."""

    domain: str
    mac: str
    script: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.domain}/{self.mac}/{self.script}"

    @classmethod
    def of(cls, spec: VmSpec) -> MachineId:
        """The id of a virtual machine to make."""
        return cls(domain=spec.name, mac=spec.mac, script=boot_tree.digest(spec.script))

    @classmethod
    def parse(cls, text: str) -> MachineId:
        """Reads an id."""
        match text.removeprefix(PREFIX).split("/"):
            case [domain, mac, script] if text.startswith(PREFIX) and domain and mac and script:
                return cls(domain=domain, mac=mac, script=script)
            case _:
                raise InvalidInputs(f"{text} is no id of a virtual machine: `{PREFIX}<domain>/<mac>/<script>`")
