"""Where the machines come from, and how many there are."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from stacks.sections.base import KernelArguments, Section, wrong


class EquinixMetal(Section):
    """Servers of an Equinix Metal project."""

    type: Literal["equinix-metal"] = "equinix-metal"
    auth_token: SecretStr | None = Field(default=None, description="an API token (user or project), as a secret")
    project_id: str | None = Field(
        default=None, description="the id (UUID) of an existing project; else set projectName"
    )
    project_name: str | None = Field(default=None, description="the name of a project to create; needs organizationId")
    organization_id: str | None = Field(default=None, description="the id (UUID) of the organization of a new project")
    metro: str | None = Field(default=None, description="a metro code such as 'da'; else set facility")
    facility: str | None = Field(default=None, description="a facility code such as 'da11'; else set metro")
    bootstrap_plan: str = Field(
        default="c3.small.x86", description="the plan of the bootstrap machine; small is enough"
    )
    control_plane_plan: str = Field(default="c3.medium.x86", description="the plan of control plane machines")
    worker_plan: str = Field(default="c3.medium.x86", description="the plan of workers")

    @field_validator("project_id", "organization_id")
    @classmethod
    def _uuid(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value):
            raise wrong("it is no UUID", "copy the id from the project's (organization's) settings")
        return value

    @model_validator(mode="after")
    def _one_of_each(self) -> EquinixMetal:
        if self.project_id is not None and self.project_name is not None:
            raise wrong(
                "projectId and projectName are both set", "set projectId to use a project, projectName to create one"
            )
        if self.project_name is not None and self.organization_id is None:
            raise wrong("projectName needs organizationId", "set platform.organizationId to the owner of the project")
        if (self.metro is None) == (self.facility is None):
            raise wrong(
                "exactly one of metro and facility must be set", "set metro (any of its facilities) or facility"
            )
        return self


class ControlPlane(Section):
    """The machines that run etcd and the API."""

    count: Literal[1, 3] = Field(
        default=3,
        description="3, or 1 for a single node; etcd has no quorum with other counts. It follows from platform.servers"
        " where there is such a list",
    )
    kernel_arguments: KernelArguments = Field(
        default=(), description="kernel arguments of these machines, after those of boot.kernelArguments"
    )


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


class Reprovision(Section):
    """How machines are installed anew, when what they are to run has changed."""

    max_unavailable: int = Field(default=1, ge=1, description="how many workers may be away at the same time")
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
        default=(), strict=False, description="commands run on a drained node over SSH, as user core, before it reboots"
    )
    pxe_commands: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="commands run where `up` runs, to boot a machine from the network that neither SSH nor its BMC"
        " reaches; MACHINE, DOMAIN, NODE, MAC, ADDRESS and BMC_ADDRESS, BMC_USERNAME, BMC_PASSWORD are in their"
        " environment",
    )
    drain_timeout: int = Field(default=600, ge=1, description="seconds until a node must be drained; then it stops")
