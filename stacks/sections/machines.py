"""The number of machines of each role, and how they are installed again."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from metal_ipi.stacks.sections.base import LONGEST_WAIT, Section, wrong
from metal_ipi.stacks.sections.forms import PoolName
from metal_ipi.stacks.sections.kernel_arguments import KernelArguments
from metal_ipi.stacks.sections.node_marks import Labels, Taints

_SIZES = (1, 2, 3, 4, 5)
AUTOMATIC = "workers"
"""The prefix of automatic pools' names: `workers-100`."""
MOST_WORKERS = 1000
WORKERS_OF_A_STACK = 100
"""The default for the largest number of workers in a stack."""


class ControlPlane(Section):
    """The machines that run etcd and the API."""

    count: Literal[1, 2, 3, 4, 5] = Field(
        default=3,
        description=(
            "the number of control plane machines: 3; 4 or 5 from OpenShift 4.18 on; 2 with an arbiter; or 1, "
            "which survives no loss. With platform.servers, the list determines it"
        ),
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of these machines, after those of boot.kernelArguments"
    )
    labels: Labels = Field(default_factory=dict, description="labels of these machines' nodes, key: value")
    taints: Taints = Field(default=(), description="taints of these machines' nodes, in addition to OpenShift's own")

    @field_validator("count", mode="before")
    @classmethod
    def _size(cls, value: Any) -> Any:
        """Source: openshift/installer, pkg/asset/agent/installconfig.go."""
        if type(value) is int and value not in _SIZES:
            raise wrong(
                "OpenShift has control planes of 1, 3, 4 or 5 machines, or of 2 with an arbiter",
                "use one of these numbers",
            )
        return value


class Arbiter(Section):
    """The machine that runs an etcd member for a control plane of two, and no other part of the control plane."""

    count: Literal[0, 1] = Field(
        default=0,
        description=(
            "the number of arbiters: 1 needs controlPlane.count 2 and OpenShift's platform baremetal "
            "(apiAddress.type platform). With platform.servers, the list determines it"
        ),
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of this machine, after those of boot.kernelArguments"
    )
    labels: Labels = Field(default_factory=dict, description="labels of this machine's node, key: value")
    taints: Taints = Field(default=(), description="taints of this machine's node, in addition to OpenShift's own")


class WorkerPool(Section):
    """Workers that have a stack of their own."""

    name: PoolName = Field(description="its name within the facility; its stack is called <the cluster's stack>-<name>")
    first: int = Field(
        ge=0,
        le=9 * MOST_WORKERS,
        description="the number of its first worker, 0 to 9000: with 100 that is worker-100. A worker keeps its number,"
        " so leave each pool room to grow",
    )
    count: int = Field(
        ge=1,
        le=MOST_WORKERS,
        description=(
            "how many worker numbers belong to it, from `first` on, 1 to 1000. With platform.servers, it has "
            "the listed servers with these numbers"
        ),
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of its workers, after those of workers.kernelArguments"
    )
    labels: Labels = Field(
        default_factory=dict, description="labels of its workers' nodes, key: value; they override workers.labels"
    )
    taints: Taints = Field(
        default=(),
        description="taints of its workers' nodes; they override those of workers.taints with the same key and effect",
    )


class Workers(Section):
    """The machines that run workloads."""

    count: int = Field(
        default=2,
        ge=0,
        le=MOST_WORKERS,
        description=(
            "the number of workers, 0 to 1000; with 0 the control plane machines run all pods. With "
            "platform.servers, the list determines it"
        ),
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of workers, after those of boot.kernelArguments"
    )
    labels: Labels = Field(default_factory=dict, description="labels of these machines' nodes, key: value")
    taints: Taints = Field(default=(), description="taints of these machines' nodes")
    pools: tuple[WorkerPool, ...] = Field(
        default=(), strict=False, description="further workers in pools; each pool is a separate stack"
    )
    per_stack: int | None = Field(
        default=None,
        ge=0,
        le=MOST_WORKERS,
        description="how many of the `count` workers one stack may have, 0 to 1000; further workers go to pools"
        f" that are created automatically. 0: the cluster's stack has all workers; not set: {WORKERS_OF_A_STACK}, but a"
        " stack that has more already keeps them",
    )


class Reprovision(Section):
    """How machines are installed again when what they must run has changed."""

    max_unavailable: int = Field(
        default=1, ge=1, le=1000, description="how many workers may be out of service at the same time"
    )
    consent: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description=(
            "control plane machines that may be installed again, e.g. control-plane-0, or the host name "
            "<cluster>-control-plane-0; remove them from the list afterwards"
        ),
    )
    control_plane: Literal["refuse", "keep"] = Field(
        default="refuse",
        description=(
            "what to do if control plane machines would be installed again without consent: refuse: it is an "
            "error; keep: they are left unchanged with a warning, and the workers are installed"
        ),
    )
    pre_reboot_commands: tuple[str, ...] = Field(
        default=(), strict=False, description="commands that run as root on a drained node, over SSH, before it reboots"
    )
    pxe_commands: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description=(
            "commands that run on the computer of `up` and boot a machine from the network, if neither SSH nor "
            "its BMC works; their environment has MACHINE, DOMAIN, NODE, MAC, ADDRESS, BMC_ADDRESS, "
            "BMC_USERNAME and BMC_PASSWORD"
        ),
    )
    drain_timeout: int = Field(
        default=600, ge=1, le=LONGEST_WAIT, description="seconds until a node must be drained; otherwise `up` stops"
    )
