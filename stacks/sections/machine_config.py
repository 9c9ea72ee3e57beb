"""What nodes have from their first boot on, as MachineConfigs that are given to the installer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from metal_ipi.components.install import machine_configs
from metal_ipi.stacks.sections.base import Section, matching, wrong
from metal_ipi.stacks.sections.devices import StableDevice
from metal_ipi.stacks.sections.forms import Endpoint, Host

Role = Literal["control-plane", "arbiter", "worker"]
Extension = Literal["ipsec", "kerberos", "kernel-devel", "sandboxed-containers", "sysstat", "usbguard", "wasm"]
"""The extensions of OpenShift 4.19 (machine-config-operator, pkg/controller/common/helpers.go, SupportedExtensions),
except `two-node-ha`, for a kind of cluster that is not supported here."""


def _different(value: tuple[str, ...]) -> tuple[str, ...]:
    for each in value:
        if value.count(each) > 1:
            raise wrong(f"'{each}' is listed twice", "remove one")
    return value


Roles = Annotated[tuple[Role, ...], Field(strict=False, min_length=1), AfterValidator(_different)]


class Tang(Section):
    """A Tang server, which a node needs to open its disk."""

    url: Endpoint = Field(description="its URL, as nodes reach it while they boot")
    thumbprint: Annotated[
        str,
        matching(
            r"[A-Za-z0-9_-]{27}|[A-Za-z0-9_-]{43}",
            "it is not a thumbprint of a key",
            "give what `tang-show-keys` prints on the server",
        ),
    ] = Field(description="the thumbprint of its signing key, as `tang-show-keys` on the server prints it")


class DiskEncryption(Section):
    """Root file systems on encrypted volumes, which nodes open without a person."""

    roles: Roles | None = Field(default=None, description="the roles whose disks are encrypted; not set: all")
    tpm2: bool = Field(default=False, description="true: the machine's TPM 2 opens the disk")
    tang: tuple[Tang, ...] = Field(default=(), strict=False, description="Tang servers that open the disk")
    threshold: int = Field(
        default=1, ge=1, le=100, description="how many of TPM 2 and Tang servers are needed to open the disk"
    )

    @model_validator(mode="after")
    def _opens(self) -> DiskEncryption:
        there = len(self.tang) + self.tpm2
        if not there:
            raise wrong("nothing is set that opens the disks", "set tpm2, or name Tang servers")
        if self.threshold > there:
            raise wrong(
                f"there are only {there} that could open the disks, so no node could start again",
                "lower it, or name more Tang servers",
                at="threshold",
            )
        return self

    @property
    def needs_tpm2(self) -> bool:
        """Whether disks cannot be opened without the TPM."""
        return self.tpm2 and self.threshold > len(self.tang)


class ContainerStorage(Section):
    """A separate disk for images and containers (/var/lib/containers)."""

    roles: Roles | None = Field(default=None, description="the roles whose machines have this disk; not set: all")
    device: StableDevice = Field(
        description=(
            "the disk: a path in /dev/disk/by-id or /dev/disk/by-path that exists on all these nodes; the disk "
            "must be empty (boot.install.wipeDisks), because Ignition refuses any other"
        )
    )


class MachineConfigs(Section):
    """What nodes have from their first boot on."""

    roles: Roles | None = Field(default=None, description="the roles that get ntpServers and extensions; not set: all")
    ntp_servers: Annotated[tuple[Host, ...], AfterValidator(_different)] = Field(
        default=(), strict=False, description="time servers that replace CoreOS's own, in /etc/chrony.conf"
    )
    extensions: Annotated[tuple[Extension, ...], AfterValidator(_different)] = Field(
        default=(), strict=False, description="OpenShift's extensions: additional packages for CoreOS"
    )
    disk_encryption: DiskEncryption | None = Field(
        default=None, description="encryption of the root file systems; only with boot.install"
    )
    container_storage: ContainerStorage | None = Field(
        default=None, description="a separate disk for images and containers"
    )

    @property
    def given_roles(self) -> Iterator[tuple[str, Roles]]:
        """The configured roles, with their paths."""
        for path, section in (
            ("", self),
            ("diskEncryption.", self.disk_encryption),
            ("containerStorage.", self.container_storage),
        ):
            if section is not None and section.roles is not None:
                yield f"{path}roles", section.roles

    def rendered(self, *, fips: bool, arbiter: bool) -> dict[str, str]:
        """The manifests, by file name. `arbiter`: whether the cluster has one."""
        everybody: tuple[Role, ...] = ("control-plane", *(("arbiter",) if arbiter else ()), "worker")
        encryption, storage = self.disk_encryption, self.container_storage
        return machine_configs.manifests(
            machine_configs.MachineConfigs(
                roles=self.roles or everybody,
                ntp_servers=self.ntp_servers,
                extensions=self.extensions,
                disk_encryption=encryption
                and machine_configs.DiskEncryption(
                    roles=encryption.roles or everybody,
                    tpm2=encryption.tpm2,
                    tang=[machine_configs.Tang(url=each.url, thumbprint=each.thumbprint) for each in encryption.tang],
                    threshold=encryption.threshold,
                    fips=fips,
                ),
                container_storage=storage
                and machine_configs.ContainerStorage(roles=storage.roles or everybody, device=storage.device),
            )
        )
