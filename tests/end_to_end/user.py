"""Somebody with a cluster's kubeconfig, outside of the lab."""

from __future__ import annotations

import json
import subprocess
import sys
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
        lab = [sys.executable, "-m", "lab", "run", "--state", str(self._project.layout.state), "--"]
        command = [*lab, sys.executable, "-m", "tests.end_to_end.kubernetes_user", str(self._kubeconfig), *arguments]
        done = subprocess.run(
            command, cwd=self._project.root, env=self._project.environment(), capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def apply(self, document: dict[str, Any]) -> tuple[int, str]:
        answer = self("apply", json.dumps(document))
        return answer["status"], answer["message"]
