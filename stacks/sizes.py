"""How many machines of each role a cluster can have.

Sources: openshift/installer's PR 9154 and openshift-docs' 85895 (four and five); openshift/enhancements,
arbiter-clusters.md, and in openshift/installer pkg/types/validation/installconfig.go (validateArbiter) and
pkg/asset/manifests/topologies.go (two with an arbiter); openshift/api, features/features.go (first release of each).
"""

from __future__ import annotations

from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.problems import Found

_PAIR = 2
_EVERY_RELEASES, _MORE_SINCE = 3, 18
"""The largest control plane that all releases support, and the first 4.x that supports larger ones."""
_ARBITER_PREVIEWED, _ARBITER_SINCE = 19, 20
"""The first 4.x that supports arbiters with a feature gate, and the first that supports them without."""
_GATE = "HighlyAvailableArbiter"


def conflicts(settings: Settings) -> Found:
    """Sizes that no release supports, or not this release."""
    count, release = settings.control_plane.count, settings.openshift_version
    if count > _EVERY_RELEASES and settings.minor < _MORE_SINCE:
        yield (
            "controlPlane.count",
            str(count),
            f"OpenShift has larger control planes than 3 from 4.{_MORE_SINCE} on, and openshiftVersion is {release}",
            "have 3",
        )
    if count == _PAIR and not settings.arbiter.count:
        yield (
            "controlPlane.count",
            str(count),
            "etcd with two members fails if either of them fails; and two machines without an arbiter have to fence "
            "each other"
            " (controlPlane.fencing), which metal-ipi does not set up",
            "use 3 or 1, or add an arbiter (arbiter.count; a server called arbiter-0)",
        )
    if settings.arbiter.count:
        yield from _arbiter(settings)


def _arbiter(settings: Settings) -> Found:
    if settings.control_plane.count != _PAIR:
        yield (
            "arbiter.count",
            str(settings.arbiter.count),
            f"OpenShift supports an arbiter only with two control plane machines, and there are"
            f" {settings.control_plane.count}",
            "set controlPlane.count to 2, or remove the arbiter",
        )
    if settings.platform_vips is None:
        yield (
            "apiAddress.type",
            settings.api_address.type,
            "the installer accepts an arbiter only on OpenShift's platform baremetal, which manages the addresses of "
            "API and ingress",
            "set it to platform, and ingressAddress.type too",
        )
    if settings.minor < _ARBITER_PREVIEWED:
        yield (
            "openshiftVersion",
            settings.openshift_version,
            f"OpenShift has arbiters from 4.{_ARBITER_SINCE} on, and 4.{_ARBITER_PREVIEWED} as a technology preview",
            "install a newer release, or use 3 control plane machines",
        )
    elif not _is_enabled(settings):
        yield (
            "installConfig.featureSet",
            settings.install_config.feature_set or "(not set)",
            f"an arbiter needs the feature gate {_GATE}, which 4.{_ARBITER_PREVIEWED} has in technology previews only,"
            " and installConfig.featureGates may switch off",
            f"set it to TechPreviewNoUpgrade (such a cluster cannot be upgraded), or install"
            f" 4.{_ARBITER_SINCE} or later; or use 3 control plane machines",
        )


def _is_enabled(settings: Settings) -> bool:
    config = settings.install_config
    single = dict(gate.split("=") for gate in config.feature_gates)
    by_default = settings.minor >= _ARBITER_SINCE or config.feature_set in (
        "TechPreviewNoUpgrade",
        "DevPreviewNoUpgrade",
    )
    return single[_GATE] == "true" if _GATE in single else by_default
