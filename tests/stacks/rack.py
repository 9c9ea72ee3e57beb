"""A rack's settings: three control plane machines and two workers, of which one lends the bootstrap machine."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from metal_ipi.stacks.problems import Problem
from metal_ipi.stacks.settings import Settings, parse
from tests.mocks import Recorder, config_text
from tests.stacks.answers import ANSWERS, declared, problems, stack_file

SECRET = "hunter2-canary"


def _server(name: str, place: int, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "bmc": {"address": f"https://10.0.0.{place}"},
        "mac": f"52:54:00:00:00:{place:02x}",
        "address": f"192.0.2.{place}",
        **changes,
    }


SERVERS = [
    _server("worker-4", 14),
    *(_server(f"control-plane-{number}", 10 + number) for number in (2, 0, 1)),
    _server("worker-0", 13),
]
_RACK: dict[str, Any] = {
    "clusterName": "rack",
    "baseDomain": "example.com",
    "openshiftVersion": "4.21.3",
    "platform": {
        "type": "redfish",
        "gateway": "192.0.2.1",
        "prefix": 24,
        "nameservers": ["192.0.2.53"],
        "bmc": {"username": "ipi", "password": SECRET},
        "bootstrap": {"type": "lend", "server": "worker-0"},
        "servers": SERVERS,
    },
    "boot": {"streamFile": "stacks/rhcos-4.21.json", "install": {"device": {"smallest": True}}},
    "dns": {"type": "none"},
    "artifacts": {
        "type": "s3",
        "bucket": "b",
        "region": "r",
        "baseUrl": "https://b.example.com",
        "accessKeyId": "a",
        "secretAccessKey": "b",
    },
    "install": {"pullSecret": '{"auths":{"quay.io":{"auth":"eDp5"}}}'},
}


def rack(**changes: Any) -> dict[str, Any]:
    """`platform__bmc__ca="..."` sets platform.bmc.ca; `platform__servers__0__mac` the first server's; None removes."""
    tree = copy.deepcopy(_RACK)
    for path, value in changes.items():
        *parents, last = path.split("__")
        section: Any = tree
        for part in parents:
            section = section[int(part)] if part.isdigit() else section.setdefault(part, {})
        if value is None:
            del section[last]
        else:
            section[last] = value
    return tree


def rack_settings(**changes: Any) -> Settings:
    """The same, validated."""
    return parse(rack_text(**changes), "s1")


def rack_problems(**changes: Any) -> tuple[Problem, ...]:
    """What is wrong with them; never with a secret in it."""
    found = problems(rack_text(**changes))
    assert SECRET not in str(found)
    return found


def rack_declared(answers: Mapping[str, Any] = ANSWERS, **changes: Any) -> Recorder:
    """What the program declares for them."""
    return declared("rack", answers, values=rack_text(**changes))


def rack7(**platform: Any) -> Recorder:
    """What a rehearsal of the stack `rack7` declares, with changes of its platform."""
    tree = stack_file("rack7")
    tree["platform"] |= platform
    tree["boot"]["streamFile"] = "stacks/rhcos-4.21.json"
    return declared("rack7", values=config_text({**tree, "rehearsal": True}), preview=True)


def rack_text(**changes: Any) -> dict[str, str]:
    """The same as the engine hands it over."""
    return config_text(rack(**changes))
