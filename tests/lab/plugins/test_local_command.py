"""`command:local:Command`, measured against what the official plug-in answered to the same requests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue

from lab.plugins.base import NotInTheLab, PluginError
from lab.plugins.command.main import CommandPlugin
from lab.plugins.values import UNKNOWN, plain_map, wrap
from tests.end_to_end import processes
from tests.lab.plugins.harness import Driver, Heard, eventually, urn

TOKEN = "command:local:Command"


def driver(log: Heard | None = None) -> Driver:
    return Driver(CommandPlugin(log or Heard()), TOKEN)


async def test_output_is_kept_without_its_last_line_end() -> None:
    identifier, state = await driver().create({"create": "echo hi; echo err >&2; printf '\\n\\n'"})
    assert identifier.startswith("it")
    assert len(identifier) == len("it") + 8
    assert plain_map(state)["stdout"] == "hi\n\n"
    assert plain_map(state)["stderr"] == "err"


async def test_failure_tells_status_command_and_output() -> None:
    with pytest.raises(PluginError) as failure:
        await driver().create({"create": "echo out; exit 3"})
    assert str(failure.value) == 'exit status 3: running "echo out; exit 3":\nout\n'
    with pytest.raises(PluginError, match=r'^signal: killed: running "kill -9 \$\$":\n$'):
        await driver().create({"create": "kill -9 $$"})


async def test_secrets_of_inputs_stay_and_are_not_told() -> None:
    async def made(command: str) -> dict[str, PropertyValue]:
        properties = {"create": PropertyValue(command, is_secret=True), "environment": wrap({"A": "b"})}
        request = api.CreateRequest(urn(TOKEN), properties, 0, False)
        return (await CommandPlugin(Heard()).create(request)).properties

    state = await made("echo $A")
    assert state["create"].is_secret
    assert state["stdout"] == PropertyValue("b")
    with pytest.raises(PluginError, match="running a secret command") as failure:
        await made("false hunter2")
    assert "hunter2" not in str(failure.value)


async def test_stdin_environment_and_directory(tmp_path: Path) -> None:
    inputs = {"create": "echo $A $(cat) $PWD", "stdin": "in", "environment": {"A": "b"}, "dir": str(tmp_path)}
    assert plain_map((await driver().create(inputs))[1])["stdout"] == f"b in {tmp_path}"
    with pytest.raises(PluginError, match="/nonexistent"):
        await driver().create({"create": "pwd", "dir": "/nonexistent"})


async def test_a_shell_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.plugins.command.local.SHELL", ("/nonexistent",))
    with pytest.raises(PluginError, match="cannot start /nonexistent"):
        await driver().create({"create": "pwd"})


@pytest.mark.parametrize(
    ("logging", "shown"),
    [
        (None, {"out", "err"}),
        ("stdoutAndStderr", {"out", "err"}),
        ("stdout", {"out"}),
        ("stderr", {"err"}),
        ("none", set[str]()),
    ],
)
async def test_lines_are_shown_while_it_runs(logging: str | None, shown: set[str]) -> None:
    log = Heard()
    inputs = {"create": "echo out; printf err >&2"} | ({"logging": logging} if logging else {})
    await driver(log).create(inputs)
    assert set(log.lines) == shown


async def test_an_update_runs_the_command_again() -> None:
    state = {"create": "echo hi", "stdout": "old", "stderr": "olde"}
    assert (await driver().update("id", state, {"create": "echo new"}))["stdout"] == "new"
    assert (await driver().update("id", state, {"stdin": "x"}))["stdout"] == "old"


async def test_previews_run_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    inputs = {"create": f"touch {trace}"}
    _, state = await driver().create(inputs, preview=True)
    assert plain_map(state) == {**inputs, "stdout": UNKNOWN, "stderr": UNKNOWN}
    before = {**inputs, "stdout": "x", "stderr": ""}
    assert await driver().update("id", before, inputs, preview=True) == before
    changed = await driver().update("id", before, {**inputs, "stdin": "y"}, preview=True)
    assert changed["stdout"] == UNKNOWN
    assert not trace.exists()


DIFFERENCES: list[tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = [
    ({"create": "a"}, {"create": "a"}, {}),
    ({"create": "a"}, {"create": "b", "stdin": "u"}, {"create": "UPDATE", "stdin": "ADD"}),
    ({"triggers": ["1", "2"]}, {"triggers": ["1", "3"]}, {"triggers[1]": "UPDATE"}),
    ({"triggers": ["1", "2"]}, {"triggers": ["1"]}, {"triggers[1]": "DELETE"}),
    ({"triggers": ["1", "2"]}, {}, {"triggers": "DELETE_REPLACE"}),
    ({}, {"triggers": ["1", "2"]}, {"triggers": "ADD_REPLACE"}),
    (
        {"environment": {"A": "1", "B": "2"}},
        {"environment": {"A": UNKNOWN, "C.d": "2"}},
        {"environment.A": "UPDATE", "environment.B": "DELETE", 'environment["C.d"]': "ADD"},
    ),
]


@pytest.mark.parametrize(("old", "new", "found"), DIFFERENCES)
async def test_differences_are_those_of_the_official_plugin(
    old: dict[str, Any], new: dict[str, Any], found: dict[str, str]
) -> None:
    assert await driver().diff({**old, "stdout": "x", "stderr": ""}, new) == found


async def test_inputs_are_checked_all_at_once() -> None:
    wrong = {"crate": "x", "environment": {"A": 1}, "stdin": [], "logging": "loud", "triggers": {}}
    _, failures = await driver().check(wrong)
    assert failures.keys() == {*wrong, "environment.A", "addPreviousOutputInEnv"} - {"environment"}
    assert failures["crate"] == "crate is not an input of this resource; did you mean create?"
    unknown = {"create": UNKNOWN, "environment": UNKNOWN, "version": "1.2.1", "addPreviousOutputInEnv": False}
    _, failures = await driver().check(unknown)
    assert failures == {}


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"assetPaths": ["*"]}, "assetPaths"),
        ({"delete": "true"}, "delete"),
        ({"addPreviousOutputInEnv": True}, "addPreviousOutputInEnv True"),
    ],
)
async def test_what_is_missing_is_refused_by_name(given: dict[str, Any], what: str) -> None:
    with pytest.raises(NotInTheLab, match=f"stand-in for command does not implement the input {what}; install"):
        await driver().check({"create": "x", **given})


async def test_functions_are_refused_by_name() -> None:
    with pytest.raises(NotInTheLab, match="command:local:run"):
        await CommandPlugin(Heard()).invoke(api.InvokeRequest("command:local:run", {}))


@pytest.mark.parametrize("when", ["it starts", "it runs"])
async def test_a_command_that_is_cancelled_takes_its_children_along(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    start = asyncio.create_subprocess_exec

    async def slow(*command: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*command, **options)
        await eventually(child.exists)
        await asyncio.sleep(0.1)
        return process

    def runs() -> bool:
        return processes.alive(int(child.read_text()))

    if when == "it starts":
        monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
    command = f"sleep 600 & echo $! >{child}.new; mv {child}.new {child}; wait"
    task = asyncio.ensure_future(driver().create({"create": command}))
    await eventually(child.exists)
    assert runs()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not runs())


async def test_output_that_is_no_text_is_an_error() -> None:
    with pytest.raises(PluginError, match="stdout is not UTF-8"):
        await driver().create({"create": "printf '\\377abc'"})


async def test_a_command_below_components_is_a_command() -> None:
    below = Driver(CommandPlugin(Heard()), "metal-ipi:checks:Node$command:local:Command")
    assert plain_map((await below.create({"create": "echo hi"}))[1])["stdout"] == "hi"
    with pytest.raises(NotInTheLab, match="does not implement the resource type command:local:Nope;"):
        await Driver(CommandPlugin(Heard()), "a:b:C$command:local:Nope").create({})
