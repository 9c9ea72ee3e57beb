"""The Node object of a machine that is installed again: deleted while the machine's old system does not run.

It must be deleted because a machine with an empty disk has another k8s.ovn.org/node-chassis-id, which ovn-kubernetes
refuses to write over the old one (go-controller/pkg/ovnwebhook/nodeadmission.go; OCPBUGS-80960). It is deleted while
the live system runs: then no kubelet misses the object, and the node's pods certainly do not run any more. What people
had set on it (`marks`) is stored in a ConfigMap of the cluster until it is restored on the new object: a run after a
killed one finds it there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import ProviderError
from metal_ipi.provider.installation.inputs import WORKER, Job
from metal_ipi.provider.installation.marks import Marks, marks_of, missing
from metal_ipi.provider.installation.nodes import CORDONED, Cluster, boot_of
from metal_ipi.provider.resources.installation import BEING_INSTALLED
from metal_ipi.provider.status import Status

_LONGEST_PAUSE = 2.0


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What is stored of a Node object."""

    machine: str
    """The platform's id of the node's machine."""
    uid: str
    """The UID of the object, which differs from that of a later object with the same name."""
    marks: Marks


class NodeObject:
    """The Node object of one machine."""

    def __init__(self, cluster: Cluster, job: Job, status: Status) -> None:
        self._cluster, self._job, self._status = cluster, job, status
        self._record_name = f"metal-ipi-node-{job.node}"
        self._nothing_kept = False
        """Whether it is known that nothing is stored."""

    async def is_kept(self) -> bool:
        """Whether an earlier run deleted the machine's Node object, or was about to."""
        record = await self._record()
        return record is not None and record.machine == self._job.machine_id

    async def save(self) -> Mapping[str, Any] | None:
        """Store what people had set on the current object; returns the object, or None if there is none."""
        node = await self._cluster.node(self._job.node)
        if node is None:
            return None
        record = await self._record()
        if record is not None and record.machine == self._job.machine_id and record.uid != _uid(node):
            node = await self._restore(record, node)  # an earlier run did not get to restoring it
        cordoned_here = CORDONED in (node["metadata"].get("annotations") or {})
        record = _Record(
            machine=self._job.machine_id, uid=_uid(node), marks=marks_of(node, cordoned_here=cordoned_here)
        )
        await self._cluster.write_config_map(
            self._record_name,
            {
                "purpose": f"labels, annotations and taints of node {self._job.node}, while metal-ipi installs its "
                "machine again",
                "record": json.dumps(asdict(record), sort_keys=True),
            },
        )
        self._nothing_kept = False
        return node

    async def remove(self) -> None:
        """Delete the object, after storing what people had set. The machine's old system must not run. Raises
        ProviderError when the time is up."""
        timeout = self._job.drain_timeout_seconds
        backoff = Backoff(timeout=timeout, longest=_LONGEST_PAUSE)
        while (node := await self.save()) is not None:
            metadata = node["metadata"]
            if not metadata.get("deletionTimestamp"):
                await self._cluster.remove_node(node)
                continue
            too_long = ProviderError(
                f"node {self._job.node} still exists after {timeout:g} s, because of its finalizers "
                f"{', '.join(metadata.get('finalizers') or [])}. Look at the programs that set them; then run "
                "the same command again"
            )
            await backoff.wait_for(f"the Node object {self._job.node} to go", self._status.live, too_long)

    async def remove_for_good(self) -> None:
        """Delete the object of a node that does not come back."""
        await self.remove()
        await self._cluster.delete_config_map(self._record_name)

    async def remove_former(self) -> bool:
        """Delete the object if it belongs to the machine's old system. Returns whether it did."""
        record, node = await self._record(), await self._cluster.node(self._job.node)
        if record is None or node is None or record.machine != self._job.machine_id or record.uid != _uid(node):
            return False
        await self.remove()
        return True

    async def put_back(self, boot_id: str) -> bool:
        """Restore once, on the new object, what people had set on the old one.

        Returns whether that is done, and the machine's kubelet has reported in this boot.
        """
        node = await self._cluster.node(self._job.node)
        if node is None or boot_of(node) not in ("", boot_id):
            return False
        record = None if self._nothing_kept else await self._record()
        if record is None:
            return True
        if record.uid == _uid(node):
            return False
        if record.machine == self._job.machine_id:
            await self._restore(record, node)
        else:
            await self._status.remark(
                f"the saved labels of node {self._job.node} are not restored: they are those of another machine, "
                f"{record.machine}"
            )
        await self._cluster.delete_config_map(self._record_name)
        self._nothing_kept = True
        return True

    async def _restore(self, record: _Record, node: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add what the object lacks; returns the object."""
        found: Mapping[str, Any] | None = node
        while found is not None:
            patch = missing(record.marks, found, worker=self._job.role == WORKER)
            if patch is None:
                return found
            if await self._cluster.patch_node(found, patch) and (kinds := _kinds_text(patch)):
                await self._status.remark(f"node {self._job.node} has its former labels again: {kinds}")
            found = await self._cluster.node(self._job.node)
        raise ProviderError(
            f"node {self._job.node} was removed by another program while its labels were restored; they are saved in "
            f"ConfigMap kube-system/{self._record_name}. Run the same command again, which continues"
        )

    async def _record(self) -> _Record | None:
        data = await self._cluster.config_map(self._record_name)
        self._nothing_kept = data is None
        if data is None:
            return None
        try:
            kept = json.loads(data["record"])
            return _Record(machine=kept["machine"], uid=kept["uid"], marks=Marks(**kept["marks"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ProviderError(
                f"ConfigMap kube-system/{self._record_name} cannot be read ({error!r}): it contains the labels, "
                f"annotations and taints of node {self._job.node}. Restore them by hand and delete the ConfigMap; "
                "then run the same command again"
            ) from None


def _uid(node: Mapping[str, Any]) -> str:
    return str(node["metadata"]["uid"])


def _kinds_text(patch: Mapping[str, Any]) -> str:
    """The keys in a patch, without values, which may be long; and without our own label, which is restored too."""
    metadata, spec = patch.get("metadata") or {}, patch.get("spec") or {}
    keys = {kind: sorted(set(metadata.get(kind) or ()) - {BEING_INSTALLED}) for kind in ("labels", "annotations")}
    parts = [f"{kind} {', '.join(those)}" for kind, those in keys.items() if those]
    if "taints" in spec:
        parts.append("taints " + ", ".join(f"{taint['key']}:{taint['effect']}" for taint in spec["taints"]))
    if "unschedulable" in spec:
        parts.append("unschedulable")
    return "; ".join(parts)
