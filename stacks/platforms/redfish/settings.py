"""The section `platform` for your own servers: reached over their BMCs (Redfish), and listed one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from metal_ipi.stacks.platforms.listed import settings as listed
from metal_ipi.stacks.platforms.listed.forms import Account, BmcUrl, Fingerprint, Password, SystemId, Url
from metal_ipi.stacks.platforms.section import Needed, Tree, at, items
from metal_ipi.stacks.sections.base import REHEARSAL, Pem, Section, wrong

BootMethod = Literal["pxe", "uefi-http", "virtual-media", "live-iso"]
_BOOT_METHODS = (
    "pxe: the firmware boots by PXE and DHCP; uefi-http: the firmware fetches iPXE from bootUrl;"
    " virtual-media: the BMC attaches bootImage as a CD; live-iso: the BMC attaches a live ISO of CoreOS that is made"
    " for this server"
)


class Bmc(Section):
    """How BMCs are reached: settings that all servers share."""

    username: Account | None = Field(
        default=None, description="the user name of an account that you create for this purpose"
    )
    password: Password | None = Field(default=None, description="its password, as a secret")
    ca: Pem | None = Field(
        default=None, description="the authority (PEM) of the BMC's certificate; not set: the system's authorities"
    )
    fingerprint: Fingerprint | None = Field(
        default=None, description="sha256:<hex> of the BMC's certificate (DER), to pin it instead of ca"
    )
    boot_method: BootMethod | None = Field(default=None, description=f"{_BOOT_METHODS}; not set: pxe")
    boot_mode: Literal["bios", "uefi"] | None = Field(
        default=None, description="the boot mode to set, bios or uefi; not set: it is not changed"
    )
    boot_image: Url | None = Field(
        default=None, description="with virtual-media: the URL of an iPXE image (ISO) that the BMC can fetch"
    )
    boot_url: Url | None = Field(
        default=None, description="with uefi-http: the URL of iPXE as an EFI program; not set: DHCP names it"
    )

    @model_validator(mode="after")
    def _one_trust(self) -> Bmc:
        if self.ca is not None and self.fingerprint is not None:
            raise wrong("ca and fingerprint are both set", "set ca to trust an authority, fingerprint to pin one key")
        return self


class ServerBmc(Bmc):
    """One server's BMC; settings that are missing here are taken from platform.bmc."""

    address: BmcUrl = Field(description="its https URL, e.g. https://10.0.0.11")
    system_id: SystemId | None = Field(default=None, description="the id of the System, where a BMC serves several")


class Server(listed.Server):
    """One server and its role."""

    bmc: ServerBmc = Field(description="address and account of its BMC")


def _lacks(key: str) -> Callable[[Tree], bool]:
    """Whether a server has no such setting of its own, so that the shared setting is required."""
    return lambda tree: any(
        at(server, f"bmc.{key}") in (None, "", REHEARSAL) for server in items(at(tree, "platform.servers"))
    )


class Redfish(listed.ListedServers[Server]):
    """Servers of your own, each with a BMC that supports Redfish."""

    needed: ClassVar[tuple[Needed, ...]] = tuple(
        Needed(path=f"platform.bmc.{key}", when=_lacks(key)) for key in ("username", "password")
    )
    type: Literal["redfish"] = "redfish"
    bmc: Bmc = Field(default_factory=Bmc, description="defaults for the BMCs of all servers")

    def reached(self) -> list[tuple[str, str]]:
        # One BMC may serve several systems, which have different ids.
        return [
            (f"platform.servers[{index}].bmc.address", f"{server.bmc.address} {server.bmc.system_id or ''}")
            for index, server in enumerate(self.servers)
        ]

    def bmc_of(self, server: Server) -> ServerBmc:
        """A server's BMC, with the shared settings merged in. If it has a ca or a fingerprint, both shared ones are
        ignored."""
        own, common = (bmc.model_dump(by_alias=True, exclude_none=True) for bmc in (server.bmc, self.bmc))
        if "ca" in own or "fingerprint" in own:
            common = {name: value for name, value in common.items() if name not in ("ca", "fingerprint")}
        return ServerBmc.model_validate({**common, **own})

    @property
    def live_iso_machines(self) -> tuple[str, ...]:
        """The servers whose boot method is the live ISO."""
        return tuple(server.name for server in self.servers if self.bmc_of(server).boot_method == "live-iso")
