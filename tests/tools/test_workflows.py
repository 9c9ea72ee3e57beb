"""The workflows: whoever opens a pull request gets tests and a preview, and neither secrets nor a token that writes."""

from __future__ import annotations

import json
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import golang
from lab.go_tool import GoTool

_WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"
_NAMES = sorted(path.stem for path in _WORKFLOWS.glob("*.yml"))
_REHEARSED = "rehearsal"


def _read(name: str) -> dict[str, Any]:
    document = yaml.safe_load((_WORKFLOWS / f"{name}.yml").read_text())
    return {**document, "on": document.get("on", document.get(True))}  # YAML 1.1 takes `on` for true


def _scripts(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_a_pull_requests_code_runs_without_secrets_and_may_write_nothing() -> None:
    workflow = _read("preview")
    assert set(workflow["on"]) == {"pull_request"}
    assert workflow["permissions"] == {"contents": "read"}
    job = workflow["jobs"][_REHEARSED]
    assert "secrets." not in json.dumps(job) and "permissions" not in job and "environment" not in job


def test_tests_run_without_secrets_and_may_write_nothing() -> None:
    for name in ("test", "nightly"):
        workflow = _read(name)
        assert workflow["permissions"] == {"contents": "read"} and "secrets." not in json.dumps(workflow)
        assert not any("permissions" in job for job in workflow["jobs"].values())


def test_a_tag_makes_a_release_and_nothing_else_does() -> None:
    assert _read("release")["on"] == {"push": {"tags": ["v*"]}}


def test_pull_requests_and_nights_run_what_makefile_has() -> None:
    """`make test` for a pull request, `make test-all` at night."""
    commands = {name: {it for job in _read(name)["jobs"].values() for it in _scripts(job)} for name in _NAMES}
    assert {"make check", "make test", "make docs"} <= commands["test"]
    assert {"make test-all", "make conformance"} <= commands["nightly"]


def test_actionlint_finds_nothing() -> None:
    if golang.present() is None:
        pytest.skip("there is no Go to build actionlint with")
    linter = GoTool(
        program="actionlint",
        package="github.com/rhysd/actionlint/cmd/actionlint",
        pins=Path(__file__).with_name("actionlint"),
        minutes="half a minute",
    )
    files = sorted(str(path) for path in _WORKFLOWS.glob("*.yml"))
    done = subprocess.run([str(linter.ensure(print)), *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_credentials_are_for_branches_of_the_repository_alone() -> None:
    job = _read("preview")["jobs"]["with-credentials"]
    assert "github.event.pull_request.head.repo.full_name == github.repository" in job["if"]
    assert job["environment"] == "preview"


def test_what_may_write_runs_nothing_of_the_pull_request() -> None:
    workflow = _read("preview-comment")
    assert set(workflow["on"]) == {"workflow_run"} and workflow["on"]["workflow_run"]["workflows"] == ["preview"]
    (job,) = workflow["jobs"].values()
    assert not any("uses" in step for step in job["steps"]), "nothing is checked out"
    assert not any(re.search(r"\b(make|python|sh|bash|source)\b .*report", script) for script in _scripts(job))


@pytest.mark.parametrize("name", _NAMES)
def test_no_script_holds_what_others_chose(name: str) -> None:
    """A branch may be called `$(rm -rf ~)`: such names come as variables, which the shell does not run."""
    for job in _read(name)["jobs"].values():
        for script in _scripts(job):
            assert "${{" not in script
            done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr


def test_every_path_that_reports_are_about_starts_one() -> None:
    from tools.preview_report import facilities

    patterns = _read("preview")["on"]["pull_request"]["paths"]
    root = _WORKFLOWS.parents[1]
    files = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout.split()
    stacks = [stack for file in files if (stack := facilities.stack_of(file))]
    reported = {file for file in files if facilities.changed([file], stacks)}
    assert reported == {file for file in files if any(fnmatch(file, pattern) for pattern in patterns)}
