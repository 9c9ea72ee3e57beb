"""Somebody with a cluster's kubeconfig, outside of the lab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.end_to_end.project import Project
from tests.end_to_end.secrets import outputs
from tools.engine import ensure


class User:
    """Runs `kubernetes_user` in the lab's network."""

    def __init__(self, project: Project, directory: Path) -> None:
        self._project = project
        self._kubeconfig = directory / "kubeconfig"
        self._kubeconfig.write_text(outputs(project, str(ensure(print).path))["kubeconfig"])

    def __call__(self, *arguments: str) -> Any:
        return json.loads(self._project.within("kubernetes_user", str(self._kubeconfig), *arguments))

    def apply(self, document: dict[str, Any]) -> tuple[int, str]:
        answer = self("apply", json.dumps(document))
        return answer["status"], answer["message"]
