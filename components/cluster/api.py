"""The way into a cluster for objects that are declared one by one."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes

from metal_ipi.provider.types import Secret


def api_provider(
    name: str, kubeconfig: pulumi.Input[Secret[str]], parent: pulumi.Resource, *, upsert: bool = False
) -> kubernetes.Provider:
    """The provider of a component's objects, all by server-side apply; `kubeconfig` is an administrator's. `upsert`:
    objects that are there already are taken over, and are no error."""
    return kubernetes.Provider(
        name,
        kubeconfig=pulumi.Output.secret(kubeconfig),
        enable_server_side_apply=True,
        # Else a new password would take its Secret away before it brings the new one.
        enable_secret_mutable=True,
        # Where they are to go and the cluster stays, but does not answer: it must not keep all else from going on.
        delete_unreachable=True,
        upsert_existing_objects=upsert or None,
        opts=pulumi.ResourceOptions(parent=parent),
    )
