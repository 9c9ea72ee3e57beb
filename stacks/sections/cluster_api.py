"""The hub on which Cluster API installs a cluster, and how a hub is reached."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr

from metal_ipi.stacks.sections.base import Section, matching

Namespace = Annotated[
    str,
    matching(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "it is not a name of a namespace", "use a-z, 0-9 and -, at most 63"
    ),
]


class Hub(Section):
    """How the hub is reached."""

    kubeconfig: SecretStr | None = Field(
        default=None,
        description=(
            "the text of a kubeconfig, as a secret; its account must be allowed to create the namespace and "
            "everything in it"
        ),
    )


class ClusterApi(Section):
    """A cluster that Cluster API installs, on a hub with its core controllers and our providers."""

    hub: Hub = Field(default_factory=Hub, description="how the hub is reached")
    namespace: Namespace | None = Field(
        default=None,
        description="the namespace that the cluster has to itself on the hub, and that is deleted with it, whoever made"
        " it; not set: the cluster's name",
    )
