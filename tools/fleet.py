"""`make fleet`: every cluster of the stack files, and what the hubs that are asked tell of theirs, on one page.

A hub is asked by our Cluster API providers' own module, in a process of its own: tools do not import it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from tools import stackfile
from tools.errors import StackError
from tools.layout import ROOT, Layout
from tools.pictures import fleet as picture
from tools.program import import_from
from tools.states import state_of

Status = Literal["as declared", "under way", "failed", "paused", "being deleted", "not on a hub", "not asked"]
_HUB = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]*)=(?P<file>.+)")
_LONGEST_SECONDS = 120
_LONGEST_TEXT = 300


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster as the page has it."""

    domain: str
    """`<name>.<base domain>`."""
    stack: str = ""
    """The stack whose file describes it; empty: no file here does."""
    hub: str = ""
    """The name of the hub that installs it; empty: none, or one that was not asked."""
    platform: str = ""
    version: str = ""
    """The release, as 4.19.3."""
    machines: str = ""
    """How many of each role."""
    status: Status = "not asked"
    told: str = ""
    """What is known of it, or what is wrong."""


def write(root: Path, hubs: Sequence[str], target: Path) -> tuple[Path, str]:
    """Write `fleet.md` and `fleet.svg` to a directory.

    Args:
        hubs: `<name>=<kubeconfig>` of each hub to ask.

    Returns the page's path, and one line that counts the clusters by their status. Raises StackError where a hub is not
    named like this; and where one does not tell, when the page was written without it.
    """
    wanted = _named(hubs)
    with ThreadPoolExecutor(max_workers=8) as asking:
        answers = dict(zip(wanted, asking.map(_clusters_of, wanted.values()), strict=True))
    silent = {name: found for name, found in answers.items() if isinstance(found, str)}
    clusters_by_hub = {name: found for name, found in answers.items() if not isinstance(found, str)}
    clusters = merged(
        described(root), {name: [of_hub(each, name) for each in found] for name, found in clusters_by_hub.items()}
    )
    target.mkdir(parents=True, exist_ok=True)
    (target / "fleet.svg").write_text(picture.svg([_row(each) for each in clusters]))
    page = target / "fleet.md"
    page.write_text(markdown(clusters, silent))
    if silent:
        raise StackError(
            f"{len(silent)} of {len(wanted)} hubs did not report their clusters; {page} was written without them",
            why="\n".join(f"{name}: {why}" for name, why in silent.items()),
            remedy="correct the kubeconfig, or remove the hub from HUBS",
        )
    return page, counted(clusters)


def described(root: Path) -> list[Cluster]:
    """The clusters of all stack files. A file that is wrong is a cluster that failed, with all that is wrong."""
    import_from(root)
    from metal_ipi.stacks.settings import CLUSTER, SettingsError

    found: list[Cluster] = []
    for path in sorted(root.glob("stacks/Pulumi.*.yaml")):
        layout = Layout(root=root, stack=path.name.removeprefix("Pulumi.").removesuffix(".yaml"))
        try:
            document = stackfile.read(path)
        except StackError as error:
            found.append(Cluster(domain=layout.stack, stack=layout.stack, status="failed", told=str(error)))
            continue
        if stackfile.is_hub(document):
            continue
        domain = stackfile.cluster(document)
        try:
            settings = CLUSTER.parse(stackfile.values(stackfile.for_rehearsal(document)), layout.stack)
        except SettingsError as error:
            found.append(Cluster(domain=domain, stack=layout.stack, status="failed", told=_problems(error)))
            continue
        roles = Counter(name.rpartition("-")[0] for name in settings.machines)
        hub = settings.cluster_api is not None
        found.append(
            Cluster(
                domain=domain,
                stack=layout.stack,
                platform=settings.platform.type,
                version=settings.openshift_version,
                machines=_machines({role: str(count) for role, count in roles.items()}),
                status="not on a hub" if not hub else "not asked",
                told="" if hub else _state(layout),
            )
        )
    return found


def _problems(error: Any) -> str:
    return "; ".join(f"{each.path} = {each.value}: {each.why}" for each in error.problems)


def _state(layout: Layout) -> str:
    """What this checkout's state of a stack has. Raises RunFailed where it cannot be read."""
    resources = state_of(layout).resources
    return f"{len(resources)} resources in this checkout's state" if resources else "no state in this checkout"


def of_hub(found: Mapping[str, Any], hub: str) -> Cluster:
    """A cluster as a hub tells of it (`metal_ipi.cluster_api.fleet`)."""
    status, text = _status(found)
    return Cluster(
        domain=found["domain"],
        hub=hub,
        platform=found["platform"] or "",
        version=str(found["version"] or "").removeprefix("v"),
        machines=_machines(
            {role: f"{each['available']}/{each['there']}" for role, each in found["machines"].items() if each["there"]}
        ),
        status=status,
        told=text,
    )


def _status(found: Mapping[str, Any]) -> tuple[Status, str]:
    conditions: Mapping[str, Mapping[str, str]] = found["conditions"]
    wrong = {
        name: f"{name}: {each['reason']}: {each['message']}".rstrip(": ")
        for name, each in conditions.items()
        if each["status"] != "True"
    }
    failed = [
        text
        for name, text in wrong.items()
        if conditions[name]["reason"] == "StepFailed" or conditions[name]["reason"].endswith("Refused")
    ]
    if found["deleted"]:
        return "being deleted", next(iter(wrong.values()), "")
    if found["paused"]:
        return "paused", next(iter(wrong.values()), "")
    if failed:
        return "failed", failed[0]
    if wrong or not conditions:
        return "under way", next(iter(wrong.values()), "no condition yet")
    return "as declared", ""


def merged(described: Sequence[Cluster], told: Mapping[str, Sequence[Cluster]]) -> list[Cluster]:
    """The clusters of the stack files with what hubs tell of them, and those of hubs that no stack file has, by hub."""
    by_domain: dict[str, list[Cluster]] = {}
    for each in (cluster for clusters in told.values() for cluster in clusters):
        by_domain.setdefault(each.domain, []).append(each)
    found: list[Cluster] = []
    for each in described:
        on = by_domain.pop(each.domain, []) if each.status in ("not asked", "not on a hub") else []
        if not on:
            known = "none of the given hubs has it" if told and each.status == "not asked" else each.told
            found.append(replace(each, told=known))
        for place in on:
            others = [f"hub {other.hub} has it, too: remove it from one of them" for other in on if other != place]
            if each.status == "not on a hub":
                others.append(f"the file of stack {each.stack} names no hub (clusterApi)")
            text = "; ".join([*others, *filter(None, [place.told])])
            found.append(replace(place, stack=each.stack, status="failed" if others else place.status, told=text))
    for rest in by_domain.values():
        found += [replace(each, told=each.told or "it has no stack file here") for each in rest]
    return sorted(found, key=lambda each: (each.hub, each.domain, each.stack))


def counted(clusters: Sequence[Cluster]) -> str:
    """How many there are of each status."""
    counts = Counter(each.status for each in clusters)
    counts_text = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    return f"{len(clusters)} clusters" + (f": {counts_text}" if counts_text else "")


def markdown(clusters: Sequence[Cluster], silent: Mapping[str, str]) -> str:
    """The page; `silent` are the hubs that did not tell, and why."""
    lines = [
        "# Clusters",
        "",
        f"{counted(clusters)}.",
        "",
        *(f"Hub {_cell(name)} gave no answer: {_cell(why)}" for name, why in silent.items()),
        *([""] if silent else []),
        "![every cluster with its status](fleet.svg)",
        "",
        "| cluster | stack | hub | platform | version | machines | status | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in clusters:
        cells = (each.domain, each.stack, each.hub, each.platform, each.version, each.machines, each.status, each.told)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join([*lines, ""])


def _cell(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}..."
    return re.sub(r"([|<>`\\*_\[\]])", r"\\\1", line)


def _row(cluster: Cluster) -> picture.Row:
    facts = [each for each in (cluster.platform, cluster.version, cluster.machines) if each]
    return picture.Row(
        name=cluster.domain,
        place=cluster.hub and f"hub {cluster.hub}",
        facts=" · ".join(facts),
        status=cluster.status,
        told=cluster.told,
    )


def _machines(counts: Mapping[str, str]) -> str:
    return " + ".join(f"{count} {role}" for role, count in counts.items())


def _named(hubs: Sequence[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for each in hubs:
        match = _HUB.fullmatch(each)
        if match is None or match["name"] in found:
            raise StackError(
                f"HUBS has '{each}'",
                why="it is not a <name>=<kubeconfig>" if match is None else "another hub has that name",
                remedy="write it as HUBS='east=/path/kubeconfig west=/path/kubeconfig'",
            )
        if not Path(match["file"]).is_file():
            raise StackError(f"HUBS has '{each}'", why="there is no such file", remedy="name the hub's kubeconfig")
        found[match["name"]] = Path(match["file"]).resolve()
    return found


def _clusters_of(kubeconfig: Path) -> list[dict[str, Any]] | str:
    """The clusters of a hub, or why it does not tell."""
    command = [sys.executable, "-m", "metal_ipi.cluster_api.fleet", "--kubeconfig", str(kubeconfig)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer within {_LONGEST_SECONDS} s"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["it ended without output"])[-1]
    return list(yaml.safe_load_all(done.stdout))
