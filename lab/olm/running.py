"""What runs for one cluster: OLM's two operators, and the server of the lab's catalogue.

OpenShift has OLM from the start. Here it comes when a cluster is formed, which costs its installation nothing.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import httpx

from lab.errors import LabError
from lab.kubernetes import crds, namespaces
from lab.kubernetes.access import Access, apply, define
from lab.kubernetes.process import Process, free_port
from lab.layout import write_private
from lab.olm import Olm, catalog, operands

_LOG = logging.getLogger(__name__)
MARKETPLACE = "openshift-marketplace"
_OWN = "openshift-operator-lifecycle-manager"
_CATALOGS = ("redhat-operators", "community-operators")
_BOOTSTRAP = "/api/v1/namespaces/kube-system/configmaps/bootstrap"
_LOOK_AGAIN = "15s"
"""OLM looks at everything anew so often; officially minutes."""


class Running:
    """One cluster's; what is asked of it comes again and again."""

    def __init__(self, directory: Path, address: str, programs: Olm) -> None:
        self._directory, self._address, self._programs = directory / "olm", address, programs
        self._processes: tuple[Process, ...] = ()
        self._asked: Access | None = None
        """The API server that OLM asks."""

    async def tend(self, access: Access) -> None:
        """One round, at an API server that runs."""
        try:
            if not await asyncio.to_thread(_formed, access):
                return
            if self._asked != access or any(not each.runs for each in self._processes):
                await asyncio.to_thread(self.stop)
                port = free_port(self._address)
                await asyncio.to_thread(self._furnish, access, port)
                # Processes end with the thread that starts them: this one lasts.
                self._start(access, port)
            with access.client() as client:
                await asyncio.to_thread(operands.step, client)
        except (httpx.HTTPError, LabError, OSError) as error:
            _LOG.warning("OLM, and what stands in for operators: %s", error)  # look again

    def stop(self) -> None:
        """End what runs."""
        processes, self._processes, self._asked = self._processes, (), None
        for each in processes:
            each.stop()

    def _furnish(self, access: Access, port: int) -> None:
        """What OpenShift has: definitions, namespaces, catalogues, the image registry's configuration."""
        define(access, [each for folder in self._programs.definitions for each in crds.read(folder)])
        with access.client() as client:
            for name in (MARKETPLACE, _OWN, operands.REGISTRY_NAMESPACE):
                namespaces.make(client, name)
            if client.get(f"{operands.REGISTRY}/cluster").status_code == httpx.codes.NOT_FOUND:
                apply(client, f"{operands.REGISTRY}/cluster", operands.registry_configuration())
            for name in _CATALOGS:
                apply(client, f"{_API}/namespaces/{MARKETPLACE}/catalogsources/{name}", self._source(name, port))

    def _source(self, name: str, port: int) -> dict[str, object]:
        return {
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "CatalogSource",
            "metadata": {"name": name, "namespace": MARKETPLACE},
            "spec": {"sourceType": "grpc", "address": f"{self._address}:{port}"},
        }

    def _start(self, access: Access, port: int) -> None:
        content, config = self._directory / "catalog", self._directory / "kubeconfig"
        content.mkdir(parents=True, exist_ok=True, mode=0o700)
        (content / "catalog.json").write_text(catalog.text())
        write_private(config, access.kubeconfig())
        programs, interval = self._programs, ("--interval", _LOOK_AGAIN)
        cache = ("--cache-dir", str(self._directory / "cache"), "--cache-enforce-integrity=false")
        served = ("serve", str(content), "--port", str(port), "--pprof-addr", "", "--termination-log", "/dev/null")
        commands = {
            "opm": [str(programs.opm), *served, *cache],
            "catalog": [str(programs.catalog), "--namespace", MARKETPLACE, "--kubeconfig", str(config), *interval],
            "olm": [str(programs.olm), "--namespace", _OWN, *interval],
        }
        environment = ["env", f"KUBECONFIG={config}", f"OPERATOR_NAMESPACE={_OWN}", f"HOME={self._directory}"]
        self._processes = tuple(
            Process(f"OLM's {name}", [*environment, *command], self._directory / f"{name}.log")
            for name, command in commands.items()
        )
        for each in self._processes:
            each.start()
        self._asked = access


_API = "/apis/operators.coreos.com/v1alpha1"


def _formed(access: Access) -> bool:
    """Whether its bootstrapping is complete."""
    with access.client() as client:
        answer = client.get(_BOOTSTRAP)
    return answer.is_success and (answer.json().get("data") or {}).get("status") == "complete"
