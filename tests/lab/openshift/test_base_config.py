"""What the lab's operating system adds to a machine's configuration."""

from __future__ import annotations

import json
import shlex
from typing import Any

from lab.openshift import base_config
from lab.openshift.base_config import IMAGE_UNITS, MASKED, STAND_INS


def _units(facility: dict[str, str] | None = None) -> list[dict[str, Any]]:
    return json.loads(base_config.render(facility))["systemd"]["units"]


def test_systemd_can_read_every_command() -> None:
    # One that it cannot read leaves a unit without a program, and a target that wants it does not start.
    lines = [line for unit in _units() for each in unit.get("dropins", ()) for line in each["contents"].splitlines()]
    commands = [line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart=")]
    programs = [shlex.split(command) for command in commands if command]
    assert len(programs) == len(STAND_INS) and all(words[0].startswith("/usr/") for words in programs)
    assert {len(words) for words in programs} == {2}


def test_a_unit_stands_in_one_list_only() -> None:
    names = [*(each.unit for each in STAND_INS), *MASKED, *IMAGE_UNITS]
    assert sorted(names) == sorted(set(names)) == sorted(unit["name"] for unit in _units())


def test_who_runs_api_servers_is_on_the_machine_where_somebody_does() -> None:
    assert json.loads(base_config.render(None))["storage"] == {"files": []}
    (file,) = json.loads(base_config.render({"server": "a:1"}))["storage"]["files"]
    assert file["mode"] == 0o600 and "a%3A1" in file["contents"]["source"]
