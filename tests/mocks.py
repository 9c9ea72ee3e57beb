"""Pulumi mocks that fail closed: a resource type nobody told them about is an error, not an empty answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pulumi
from pulumi.runtime import mocks, settings
from pulumi.runtime import stack as runtime_stack

from metal_ipi.provider.alike import rebuilt
from metal_ipi.provider.installation.pool import whole
from metal_ipi.stacks.spare_time import Loop, declared

_STACK = "pulumi:pulumi:Stack"
Answer = Callable[[pulumi.runtime.MockResourceArgs], Mapping[str, Any]]


@dataclass
class Recorder(mocks.Mocks):
    """Answers registered types, remembers every resource in order of registration."""

    answers: Mapping[str, Answer]
    calls: Mapping[str, Callable[[pulumi.runtime.MockCallArgs], Mapping[str, Any]]] = field(default_factory=dict)
    """What functions answer, by token; where `answers` does not say it."""
    resources: list[pulumi.runtime.MockResourceArgs] = field(default_factory=list)
    requests: dict[str, Any] = field(default_factory=dict)
    """What was sent to the engine, by resource name: type, parent, provider, dependencies, options."""
    outputs: dict[str, Any] = field(default_factory=dict)
    """The outputs of the program that was run."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        self.resources.append(args)
        if args.typ.startswith("pulumi:providers:"):
            return f"{args.name}-id", dict(args.inputs)
        if args.typ not in self.answers:
            raise AssertionError(f"no answer for a resource of type {args.typ} ({args.name})")
        return f"{args.name}-id", {**args.inputs, **self.answers[args.typ](args)}

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        answer: Callable[[Any], Mapping[str, Any]] | None = self.calls.get(args.token) or self.answers.get(args.token)
        if answer is None:
            raise AssertionError(f"no answer for a call of {args.token}")
        return dict(answer(args)), []

    def of(self, typ: str) -> list[pulumi.runtime.MockResourceArgs]:
        """The resources of one type, by name."""
        return sorted((args for args in self.resources if args.typ == typ), key=lambda args: args.name)

    def depends_on(self, name: str) -> set[str]:
        """The names of the resources that one waits for by itself: explicitly, or because it takes their outputs."""
        return {_name(urn) for urn in self.requests[name].dependencies}

    def after(self, name: str) -> set[str]:
        """The names of all resources that stand before one, however far away."""
        found: set[str] = set()
        waiting = self.depends_on(name)
        while waiting:
            found |= waiting
            waiting = {other for known in waiting for other in self.depends_on(known)} - found
        return found

    def urn(self, name: str) -> str:
        """The URN the engine would give: all types from the outermost component inwards, and the name."""
        request = self.requests[name]
        parent = _name(request.parent) if request.parent else None
        types = [request.type]
        while parent in self.requests and self.requests[parent].type != _STACK:
            types.append(self.requests[parent].type)
            parent = _name(self.requests[parent].parent)
        return f"{'$'.join(reversed(types))}::{name}"

    def inputs(self, name: str) -> dict[str, Any]:
        """The inputs of the one resource of that name, without the marks of secrets; files are whole, and what an
        installation has in common with its pool is there."""
        found = plain(self.one(name).inputs)
        if isinstance(found.get("common"), str):
            found = dict(whole(found, self.inputs(found["common"].removesuffix("-id"))))
        return {**found, "files": whole_files(found)} if "derived" in found else found

    def one(self, name: str) -> pulumi.runtime.MockResourceArgs:
        """The one resource of that name that is not a component."""
        found = [args for args in self.resources if args.name == name]
        assert len(found) == 1, f"{len(found)} resources are named {name}"
        return found[0]


class _Monitor(mocks.MockMonitor):
    """The SDK's mock monitor, which forgets dependencies and parents; this one hands them to the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._recorder = recorder

    def RegisterResource(self, request: Any) -> Any:
        if request.name in self._recorder.requests:
            raise AssertionError(f"two resources are named {request.name}")
        self._recorder.requests[request.name] = request
        return super().RegisterResource(request)


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def run(
    program: Callable[[], None],
    recorder: Recorder,
    config: Mapping[str, str],
    *,
    stack: str = "test",
    preview: bool = False,
) -> dict[str, Any]:
    """Run a program against the mocks; returns its plain outputs. Errors of the program are raised."""

    async def whole() -> dict[str, Any]:
        await runtime_stack.run_pulumi_func(lambda: declared(program))
        outputs = settings.get_root_resource().outputs  # pyright: ignore
        return {name: await _plain(value) for name, value in outputs.items()}

    # What an earlier program left belongs to its own loop, which is closed: what it exported, and what waits still.
    cast(Any, settings).set_root_resource(None)
    settings._get_rpc_manager().clear()  # pyright: ignore[reportPrivateUsage]
    cast(Any, settings.SETTINGS).outputs.clear()
    loop = Loop()
    try:
        asyncio.set_event_loop(loop)
        mocks.set_mocks(recorder, project="metal-ipi", stack=stack, preview=preview, monitor=_Monitor(recorder))
        pulumi.runtime.set_all_config({f"metal-ipi:{key}": value for key, value in config.items()})
        recorder.outputs = loop.run_until_complete(whole())
        return recorder.outputs
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _plain(value: Any) -> Any:
    return await pulumi.Output.from_input(value).future()


_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"


def plain(value: Any) -> Any:
    """A registered input without the marks that the wire gives to secrets."""
    if isinstance(value, dict):
        return plain(value["value"]) if _SIGNATURE in value else {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def whole_files(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The texts of an `Artifacts`, by name."""
    files, derived = (plain(inputs.get(key)) or {} for key in ("files", "derived"))
    return {**files, **{name: rebuilt(files[plain(inputs["like"])], told) for name, told in derived.items()}}


def is_secret(value: Any) -> bool:
    """Whether a registered input is marked as a secret."""
    return isinstance(value, dict) and value.get(_SIGNATURE) == _SECRET


def secret(value: Any) -> dict[str, Any]:
    """What a resource answers as a secret."""
    return {_SIGNATURE: _SECRET, "value": value}


def config_text(values: Mapping[str, Any]) -> dict[str, str]:
    """Configuration as the engine hands it over: every value a string."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
