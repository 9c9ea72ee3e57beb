"""The Kubernetes provider for objects that components declare one by one, and the objects of Kubernetes' own."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from metal_ipi.provider.types import Secret


def api_provider(
    name: str, kubeconfig: pulumi.Input[Secret[str]], parent: pulumi.Resource, *, upsert: bool = False
) -> kubernetes.Provider:
    """The provider for a component's objects, which uses server-side apply. `kubeconfig` is an administrator's.

    `upsert`: take over objects that exist already, instead of failing.
    """
    return kubernetes.Provider(
        name,
        kubeconfig=pulumi.Output.secret(kubeconfig),
        enable_server_side_apply=True,
        # Otherwise a changed password would delete the Secret before it is created again.
        enable_secret_mutable=True,
        # If the cluster does not answer when objects are deleted, do not let that block everything else.
        delete_unreachable=True,
        upsert_existing_objects=upsert or None,
        opts=pulumi.ResourceOptions(parent=parent),
    )


class CoreObject(pulumi.CustomResource):
    """An object of Kubernetes' API v1, such as a Secret. The SDK has a class for each kind, and loads all of them: 0.7
    s of a preview."""

    def __init__(self, kind: str, name: str, opts: pulumi.ResourceOptions, **fields: Any) -> None:
        """`opts` must name the provider. `fields`: those of the object, as Kubernetes names them."""
        hidden = pulumi.ResourceOptions(additional_secret_outputs=["data", "stringData"])
        super().__init__(
            f"kubernetes:core/v1:{kind}",
            name,
            {"apiVersion": "v1", "kind": kind, **fields},
            pulumi.ResourceOptions.merge(opts, hidden) if kind == "Secret" else opts,
        )
