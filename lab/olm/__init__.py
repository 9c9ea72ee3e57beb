"""The real Operator Lifecycle Manager (OLM), built from its Go modules, for clusters of the lab.

    catalog      the lab's catalogue of operators, which opm serves
    operands     stands in for what these operators would do, and for OpenShift's image registry operator
    running      what runs for one cluster

OLM resolves Subscriptions, makes InstallPlans and installs ClusterServiceVersions as in any cluster. The operators
themselves, whose images cannot be had, do not run: no pod is made of their Deployments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from binaries.cache import Report
from binaries.go_tool import GoTool
from lab.kubernetes import crds

_HERE = Path(__file__).parent
_MODULE = "github.com/operator-framework/operator-lifecycle-manager"
_TAGS = ("containers_image_openpgp", "exclude_graphdriver_btrfs", "exclude_graphdriver_devicemapper")

_TOOLS = {
    name: GoTool(program=f"olm-{name}", package=package, pins=_HERE, tags=_TAGS, minutes="about 2 minutes")
    for name, package in (
        ("catalog", f"{_MODULE}/cmd/catalog"),
        ("olm", f"{_MODULE}/cmd/olm"),
        ("opm", "github.com/operator-framework/operator-registry/cmd/opm"),
    )
}
_OLM = crds.Definitions(
    name="olm-crds",
    module=_MODULE,
    version="v0.38.0",
    sum="h1:X/aXZq/yby3LWIKrK7K4hUv0RK8Wo33wOgKnCH3nTMg=",
    folder="deploy/chart/crds",
    files=("*.crd.yaml",),
)
_DEFINITIONS = (
    _OLM,
    replace(
        crds.OPENSHIFT,
        name="image-registry-crds",
        folder="imageregistry/v1/zz_generated.crd-manifests",
        files=("*_configs-Default.crd.yaml",),
    ),
    # OLM asks for it where it sees OpenShift's group config.openshift.io, and waits until it is there.
    replace(crds.OPENSHIFT, name="proxy-crds", files=("*_proxies.crd.yaml",)),
)


@dataclass(frozen=True, kw_only=True)
class Olm:
    """Where everything is; in the lab's facts, too."""

    catalog: Path
    olm: Path
    opm: Path
    definitions: list[Path]
    """Directories of resource definitions."""


def cached() -> Olm | None:
    """All of it; None where something is not there."""
    programs = {name: found for name, tool in _TOOLS.items() if (found := tool.cached()) is not None}
    definitions = [found for each in _DEFINITIONS if (found := each.cached()) is not None]
    return (
        Olm(**programs, definitions=definitions)
        if len(programs) + len(definitions) == len(_TOOLS) + len(_DEFINITIONS)
        else None
    )


def ensure(report: Report) -> Olm:
    """The same, built and fetched if need be. Raises SetupFailed or ProgramMissing."""
    programs = {name: tool.ensure(report) for name, tool in _TOOLS.items()}
    return Olm(**programs, definitions=[each.ensure() for each in _DEFINITIONS])
