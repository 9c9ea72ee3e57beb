"""The steps to do for a cluster's program: compares its declared resources with the state. Pure, like a preview."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from metal_ipi.cluster_api.engine import monitor
from metal_ipi.cluster_api.engine.commands import Command
from metal_ipi.cluster_api.engine.monitor import Registered
from metal_ipi.cluster_api.engine.state import Entry, State, Values, name_of
from metal_ipi.components.install.previous_runs import READ, READ_STATE
from metal_ipi.provider import configuration
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.installation import InstallationPool
from metal_ipi.provider.installation.pool import whole
from metal_ipi.provider.plugin import resource_types
from metal_ipi.provider.resource import Context, ResourceType
from metal_ipi.provider.status import NoLog, Status
from metal_ipi.provider.values import Secret, has_unknown

Action = Literal["keep", "create", "update", "replace", "delete"]
_PROVIDER = "pulumi:providers:metal-ipi"


class Unsupported(ValueError):
    """The program declares a resource that only Pulumi's own engine and plug-ins can create."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A resource, and the action for it."""

    urn: str
    action: Action
    inputs: Values
    """Its inputs; UNKNOWN for unknown values."""
    dependencies: tuple[str, ...]
    """The URNs of resources that must be complete first."""
    order: int
    """Its position in the program."""
    entry: Entry | None = None
    """Its entry in the state; None if there is none."""

    @property
    def name(self) -> str:
        """The resource's name."""
        return name_of(self.urn)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All steps, in the order of the program; deletions come last."""

    steps: Mapping[str, Step]
    settings: Settings
    """The configuration of our provider."""
    outputs: Mapping[str, Any]
    """The outputs of the program; None for unknown ones."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Every text that the program declares to be secret."""

    def ready(self) -> Iterator[Step]:
        """Steps that can be done now: their dependencies are complete, and their inputs are known."""
        kept_by = {each for step in self.steps.values() if step.entry for each in step.entry.dependencies}
        yield from (step for step in self._next() if not has_unknown(step.inputs))
        yield from (step for step in self.steps.values() if step.action == "delete" and step.urn not in kept_by)

    def _next(self) -> Iterator[Step]:
        """Steps whose dependencies are complete, without deletions."""
        pending = {urn for urn, step in self.steps.items() if step.action != "keep"}
        for step in self.steps.values():
            if step.action in ("create", "update") and pending.isdisjoint(step.dependencies):
                yield step

    def after(self, done: Step, entry: Entry) -> Plan | None:
        """The plan when a step is done, or only begun: then its entry has no id. None if the program must be run again,
        because a step can be next whose inputs are not known, or because the step was one of another plan.

        The program is not run again for every step: as in `up`, what it read of the state is that of its start.
        """
        step = self.steps.get(done.urn)
        if step is None or step.action not in ("create", "update") or _lasting(step.inputs) != _lasting(done.inputs):
            return None
        if entry.id and entry.unfinished:
            return None
        step = replace(step, action="keep" if entry.id else step.action, entry=entry)
        found = replace(self, steps={**self.steps, done.urn: step})
        return None if found._is_open() else found

    def _is_open(self) -> bool:
        """Whether the program would tell more now: the inputs of a step, or its own outputs."""
        if all(step.action == "keep" for step in self.steps.values()):
            return None in self.outputs.values()
        return any(has_unknown(step.inputs) for step in self._next())

    def waiting(self, mine: Callable[[str], bool]) -> list[Step]:
        """The names of selected resources that do not exist yet, or differ from their declaration."""
        return [step for step in self.steps.values() if mine(step.name) and step.action != "keep"]

    def settled(self, name: str) -> bool:
        """Whether a resource exists as declared; false if it is not declared."""
        return any(step.name == name and step.action == "keep" for step in self.steps.values())


def _lasting(inputs: Values) -> Values:
    """Inputs without the one that says whether there was a cluster when the program ran."""
    return {name: value for name, value in inputs.items() if name != "disposable"}


def types() -> dict[str, ResourceType]:
    """The resource types that can be created here, by token; new objects for each attempt."""
    return {**resource_types(), Command.token: Command()}


def plan(program: Callable[[], Mapping[str, Any]], state: State, known: Mapping[str, ResourceType], stack: str) -> Plan:
    """Compare the declared resources of a program with the state.

    Raises what the program raises, ProviderError for invalid inputs, and Unsupported. Blocks for a second. Only one
    may be made at a time (`monitor.run`).
    """
    preview = _Preview(state, known)
    registered, outputs = monitor.run(program, preview, stack=stack)
    custom = {each.urn for each in registered if each.custom and each.type != _PROVIDER}
    steps = {
        urn: replace(step, dependencies=tuple(each for each in step.dependencies if each in custom))
        for urn, step in preview.steps.items()
    }
    for urn, entry in sorted(state.entries.items(), key=lambda pair: -pair[1].order):
        if urn not in steps:
            steps[urn] = Step(
                urn=urn, action="delete", inputs=entry.inputs, dependencies=(), order=entry.order, entry=entry
            )
    secrets = frozenset(text for each in registered for text in each.secrets)
    return Plan(steps=steps, settings=preview.settings, outputs=outputs, secrets=secrets)


def kept(kind: ResourceType, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Values:
    """Inputs and outputs together, as Pulumi's engine keeps them."""
    plain = {key: value.value if isinstance(value, Secret) else value for key, value in outputs.items()}
    return {**{key: value for key, value in inputs.items() if key not in kind.hidden_inputs}, **plain}


def in_full(inputs: Mapping[str, Any], pools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The inputs of a resource; for an installation including the common inputs of its pool. `pools`: by id."""
    common = inputs.get("common")
    return dict(whole(inputs, pools[common]) if isinstance(common, str) and common in pools else inputs)


def context(urn: str, settings: Settings, status: Status | None = None) -> Context:
    """The context of an operation on a resource."""
    return Context(urn=urn, settings=settings, status=status or Status(NoLog(), urn))


class _Preview:
    """See `monitor.Answers`."""

    def __init__(self, state: State, known: Mapping[str, ResourceType]) -> None:
        self._state, self._known = state, known
        self.settings = Settings()
        self.steps: dict[str, Step] = {}
        self._pools: dict[str, Mapping[str, Any]] = {}
        """The common inputs of installations, by the id of their pool."""

    def resource(self, declared: Registered) -> tuple[str, Mapping[str, Any]]:
        if declared.type == _PROVIDER:
            self.settings, problems = configuration.parse(declared.inputs)
            if problems:
                raise InvalidInputs("; ".join(f"{problem.path} {problem.reason}" for problem in problems))
            return declared.name, declared.inputs
        kind = self._known.get(declared.type)
        if kind is None:
            raise Unsupported(
                f"{declared.name} is a {declared.type}, which the Cluster API providers cannot make: use `up` for "
                "this cluster, or remove the setting that declares it (docs/cluster-api-providers.md)"
            )
        if problems := kind.check(declared.inputs):
            raise InvalidInputs("; ".join(f"{declared.name}: {each.path} {each.reason}" for each in problems))
        entry = self._state.entries.get(declared.urn)
        if declared.type == InstallationPool.token and entry is not None:
            self._pools[entry.id] = declared.inputs
        # The state has the complete inputs of each installation: each resource has a Secret key of its own.
        declared = replace(declared, inputs=in_full(declared.inputs, self._pools))
        action, outputs, inputs = self._compared(declared, kind, entry)
        self.steps[declared.urn] = Step(
            urn=declared.urn,
            action=action,
            inputs=inputs,
            dependencies=declared.dependencies,
            order=len(self.steps),
            entry=entry,
        )
        return entry.id if entry else "", outputs

    def _compared(
        self, declared: Registered, kind: ResourceType, entry: Entry | None
    ) -> tuple[Action, Mapping[str, Any], Values]:
        given, about = dict(declared.inputs), context(declared.urn, self.settings)
        if entry is None or not entry.id:
            return "create", kept(kind, given, kind.preview(about, None, given)), given
        old = {**entry.inputs, **entry.outputs}
        given.update({key: old[key] for key in declared.ignored if key in old})
        changes = kind.diff(about, old, given)
        if changes.replaces:
            return "replace", kept(kind, given, kind.preview(about, None, given)), given
        if changes.changes or entry.unfinished:
            return "update", kept(kind, given, kind.preview(about, old, given)), given
        return "keep", entry.outputs, given

    def call(self, token: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if token != READ_STATE:
            raise Unsupported(f"function {token} cannot be called by the Cluster API providers")
        outputs = {urn: {"outputs": _read(entry)} for urn, entry in self._state.entries.items() if entry.id}
        return {"name": arguments["stackName"], "outputs": outputs}


def _read(entry: Entry) -> Values:
    """What the program reads of a resource of earlier runs."""
    return {name: value for name, value in {**entry.inputs, **entry.outputs}.items() if name in READ}
