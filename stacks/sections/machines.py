"""How many machines there are of each role, and how they are installed anew."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from metal_ipi.stacks.sections.base import LONGEST_WAIT, Section, wrong
from metal_ipi.stacks.sections.kernel_arguments import KernelArguments
from metal_ipi.stacks.sections.node_marks import Labels, Taints

_PAIR, _SIZES = 2, (1, 3, 4, 5)
NO_ARBITER = (
    "metal-ipi has no arbiters: its clusters are of platform none, and there the installer refuses them up to 4.21"
    ' (arbiter.platform: Unsupported value: "none": supported values: "baremetal")'
)
"""Sources: openshift/installer, pkg/types/validation/installconfig.go (validateArbiter), and its PR 10236."""


class ControlPlane(Section):
    """The machines that run etcd and the API."""

    count: Literal[1, 3, 4, 5] = Field(
        default=3,
        description="3; 4 or 5 from 4.18 on; or 1, which survives no loss. It follows from platform.servers where there"
        " is such a list",
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of these machines, after those of boot.kernelArguments"
    )

    labels: Labels = Field(default_factory=dict, description="labels of these machines' nodes, key: value")
    taints: Taints = Field(default=(), description="taints of these machines' nodes, beside OpenShift's own")

    @field_validator("count", mode="before")
    @classmethod
    def _size(cls, value: Any) -> Any:
        """Sources, in openshift/installer: pkg/types/validation/installconfig.go (two of them),
        pkg/asset/agent/installconfig.go (how many there may be)."""
        if value == _PAIR:
            raise wrong(
                f"etcd of two members is lost with either of them. {NO_ARBITER}; and two without one have to fence each"
                " other (controlPlane.fencing), which metal-ipi does not set up",
                "have 3, or 1",
            )
        if type(value) is int and value not in _SIZES:
            raise wrong("OpenShift has control planes of 1, 3, 4 or 5 machines", "have one of these")
        return value


class Workers(Section):
    """The machines that run workloads."""

    count: int = Field(
        default=2,
        ge=0,
        le=1000,
        description="0 to 1000; with 0 the control plane is schedulable. It follows from platform.servers where there"
        " is such a list",
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of workers, after those of boot.kernelArguments"
    )
    labels: Labels = Field(default_factory=dict, description="labels of these machines' nodes, key: value")
    taints: Taints = Field(default=(), description="taints of these machines' nodes")


class Reprovision(Section):
    """How machines are installed anew, when what they are to run has changed."""

    max_unavailable: int = Field(default=1, ge=1, le=1000, description="how many workers may be away at the same time")
    consent: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="control plane machines that may be installed anew, e.g. control-plane-0 (or with the cluster's "
        "name before it, as machines are called); take it back afterwards",
    )
    control_plane: Literal["refuse", "keep"] = Field(
        default="refuse",
        description="what becomes of control plane machines that would be installed anew without consent: refuse: it is"
        " an error; keep: they stay as they are, with a warning, and workers go on",
    )
    pre_reboot_commands: tuple[str, ...] = Field(
        default=(), strict=False, description="commands run on a drained node over SSH, as root, before it reboots"
    )
    pxe_commands: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="commands run where `up` runs, to boot a machine from the network that neither SSH nor its BMC"
        " reaches; MACHINE, DOMAIN, NODE, MAC, ADDRESS and BMC_ADDRESS, BMC_USERNAME, BMC_PASSWORD are in their"
        " environment",
    )
    drain_timeout: int = Field(
        default=600, ge=1, le=LONGEST_WAIT, description="seconds until a node must be drained; then it stops"
    )
