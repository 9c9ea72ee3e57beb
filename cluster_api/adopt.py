"""Hand a cluster that `up` made to a hub, and back. Both commands work with the state only, and ask no machine.

    python -m metal_ipi.cluster_api.adopt take NAME < EXPORT                    prints the Secret with the install state
    python -m metal_ipi.cluster_api.adopt give-back SECRET < EXPORT             prints what `pulumi stack import` takes

EXPORT is what `pulumi stack export --show-secrets` prints, SECRET a file with the Secret as the hub has it. Keep all
inputs and outputs secret. NAME is the name of both the Cluster and the stack.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import yaml

from metal_ipi.cluster_api.engine.plan import in_full, types
from metal_ipi.cluster_api.engine.state import Entry, State, StateError, name_of
from metal_ipi.cluster_api.store import CLUSTER_LABEL, install_state_name, key_of

Tree = dict[str, Any]

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - how the engine marks one (sdk/go/common/resource)
_PROVIDERS = "pulumi:providers:"


class NotAdoptable(Exception):
    """A state, or a Secret, that cannot be handed over; the message lists all problems."""


def taken(export: Mapping[str, Any], cluster: str) -> State:
    """The install state of a cluster that `up` made.

    Args:
        export: what `pulumi stack export --show-secrets` prints.
        cluster: the name of the Cluster.

    Raises:
        NotAdoptable: names what is under way, what was made by plug-ins that the providers do not have, what is of
            another stack, and what is encrypted.
    """
    deployment, known = _deployment(export), types()
    found: dict[str, Entry] = {}
    pending: list[Tree] = deployment.get("pending_operations") or []
    problems = [
        f"{name_of(each['resource']['urn'])} is unfinished ({each['type']}): run `up` first" for each in pending
    ]
    for order, resource in enumerate(deployment["resources"]):
        urn, kind = str(resource["urn"]), str(resource["type"])
        if not resource.get("custom") or kind.startswith(_PROVIDERS):
            continue
        if resource.get("delete"):
            problems.append(f"{name_of(urn)} is to be deleted: run `up` again first")
        elif kind not in known:
            problems.append(f"{name_of(urn)} is a {kind}, which the Cluster API providers cannot keep")
        elif urn.split(":")[2] != cluster:
            problems.append(
                f"{name_of(urn)} is of stack {urn.split(':')[2]}, and the Cluster is {cluster}: they must be the same"
            )
        else:
            found[urn] = _entry(resource, order)
    if problems:
        raise NotAdoptable("\n".join(problems))
    pools = {entry.id: entry.inputs for entry in found.values()}
    found = {urn: replace(entry, inputs=in_full(entry.inputs, pools)) for urn, entry in found.items()}
    dependencies = {urn: tuple(each for each in entry.dependencies if each in found) for urn, entry in found.items()}
    return State(entries={urn: replace(entry, dependencies=dependencies[urn]) for urn, entry in found.items()})


def given_back(export: Mapping[str, Any], state: State) -> Tree:
    """The export, updated with the changes that the hub has made since.

    Raises:
        NotAdoptable: what the hub made is not in the export, or not finished.
    """
    deployment = _deployment(export)
    there = {str(each["urn"]) for each in deployment["resources"]}
    problems = [
        f"{name_of(urn)} was made by the hub: delete it there first" for urn in state.entries if urn not in there
    ]
    problems += [
        f"{entry.urn} is not finished: {entry.unfinished}" for entry in state.entries.values() if entry.unfinished
    ]
    if problems:
        raise NotAdoptable("\n".join(sorted(problems)))
    kept = [_updated(each, state) for each in deployment["resources"] if _stays(each, state)]
    return {**export, "deployment": {**deployment, "resources": kept}}


def secret(state: State, cluster: str) -> Tree:
    """The Secret with an install state; the MetalIpiCluster makes itself its owner."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": install_state_name(cluster), "labels": {CLUSTER_LABEL: cluster}},
        "type": "cluster.x-k8s.io/secret",
        "data": {key_of(urn): entry.packed() for urn, entry in state.entries.items()},
    }


def _deployment(export: Mapping[str, Any]) -> Tree:
    deployment = export.get("deployment")
    if not isinstance(deployment, dict) or not isinstance(cast(Tree, deployment).get("resources"), list):
        raise NotAdoptable("it has no deployment.resources: give the output of `pulumi stack export --show-secrets`")
    return cast(Tree, deployment)


def _entry(resource: Mapping[str, Any], order: int) -> Entry:
    return Entry(
        urn=str(resource["urn"]),
        id=str(resource.get("id") or ""),
        inputs=_plain(resource.get("inputs") or {}),
        outputs=_plain(resource.get("outputs") or {}),
        dependencies=tuple(resource.get("dependencies") or ()),
        unfinished="; ".join(resource.get("initErrors") or ()),
        order=order,
    )


def _plain(value: Any) -> Any:
    """A value of the state without its secrets' wrapping, and without the engine's own keys."""
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    tree = cast(Tree, value)
    if tree.get(_SIGNATURE) == _SECRET:
        if "plaintext" not in tree:
            raise NotAdoptable("its secrets are encrypted: export it with --show-secrets")
        return _plain(json.loads(tree["plaintext"]))
    return {key: _plain(each) for key, each in tree.items() if not key.startswith("__")}


def _stays(resource: Mapping[str, Any], state: State) -> bool:
    ours = resource.get("custom") and not str(resource["type"]).startswith(_PROVIDERS)
    return not ours or resource["urn"] in state.entries


def _updated(resource: Mapping[str, Any], state: State) -> Mapping[str, Any]:
    entry = state.entries.get(str(resource["urn"]))
    if entry is None:
        return resource
    parts = {
        part: _merged(cast(Tree, resource.get(part) or {}), wanted)
        for part, wanted in (("inputs", entry.inputs), ("outputs", entry.outputs))
    }
    return {**resource, "id": entry.id, **parts}


def _merged(old: Tree, wanted: Mapping[str, Any]) -> Tree:
    """Unchanged values stay as they are. Changed values become secret, because the state of a hub does not record which
    are."""
    same: Callable[[str], bool] = lambda key: key in old and _plain(old[key]) == wanted[key]  # noqa: E731
    values = {key: old[key] if same(key) else _wrapped(value) for key, value in wanted.items()}
    return {**{key: value for key, value in old.items() if key.startswith("__")}, **values}


def _wrapped(value: Any) -> Tree:
    return {_SIGNATURE: _SECRET, "plaintext": json.dumps(value)}


def _state_in(path: Path) -> State:
    try:
        data: Tree = (yaml.safe_load(path.read_text()) or {}).get("data") or {}
        entries = [Entry.unpacked(text) for text in data.values()]
    except (OSError, yaml.YAMLError, AttributeError, StateError) as error:
        raise NotAdoptable(f"{path} is not a Secret with an install state: {error}") from None
    if not entries:
        raise NotAdoptable(f"{path} is not a Secret with an install state: it has no data")
    return State(entries={entry.urn: entry for entry in entries})


def main() -> int:
    """Returns 1, after printing the reason, if nothing was handed over."""
    parser = argparse.ArgumentParser(prog="python -m metal_ipi.cluster_api.adopt", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    commands.add_parser("take", help="print the Secret for a hub").add_argument("name", help="of the Cluster")
    commands.add_parser("give-back", help="print the state for `pulumi stack import`").add_argument("secret", type=Path)
    given = parser.parse_args()
    try:
        export = json.load(sys.stdin)
        if given.command == "take":
            yaml.safe_dump(secret(taken(export, given.name), given.name), sys.stdout, sort_keys=False)
        else:
            json.dump(given_back(export, _state_in(given.secret)), sys.stdout)
    except (NotAdoptable, ValueError) as error:
        print(f"not handed over:\n{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
