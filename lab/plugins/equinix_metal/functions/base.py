"""What all functions have in common: arguments that are checked, one look at the API, results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

from pulumi.provider.experimental import provider as api
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import CheckFailure

from lab.plugins.base import PluginError
from lab.plugins.equinix_metal.client import Client, Gone
from lab.plugins.fields import Field, problems, with_defaults
from lab.plugins.values import Json, plain_map, wrap_map

Arguments = Mapping[str, Json]
STRING = Field(kind="string")
REQUIRED = Field(kind="string", required=True)
CAPACITIES = Field(
    kind="list",
    element=Field(kind="object", fields={"plan": REQUIRED, "quantity": Field(kind="integer", default=1)}),
)


@dataclass(frozen=True, kw_only=True)
class Function:
    """One function of the plug-in."""

    arguments: Mapping[str, Field]
    """What it takes."""
    look: Callable[[Client, dict[str, Json]], Awaitable[dict[str, Json]]]
    """What it finds, without the arguments."""
    rules: Callable[[Arguments], Iterator[CheckFailure]] = lambda _: iter(())
    """What holds between arguments."""

    async def invoke(self, client: Client, given: Mapping[str, PropertyValue]) -> api.InvokeResponse:
        """Arguments and results together. As officially nothing is secret: one secret would make the whole result one,
        and with it every address that a program takes from a device."""
        arguments = plain_map(with_defaults(self.arguments, given, note=False))
        failures = list(problems(self.arguments, given)) or list(self.rules(arguments))
        if failures:
            return api.InvokeResponse({}, failures)
        try:
            found = await self.look(client, arguments)
        except Gone as error:
            raise PluginError(f"{error}: there is no such thing, or not any more: refresh, then go on") from None
        told = {name: value for name, value in {**arguments, **found}.items() if value is not None}
        return api.InvokeResponse(wrap_map(told))


def one_of(*names: str) -> Callable[[Arguments], Iterator[CheckFailure]]:
    """Exactly one of several arguments."""

    def rules(arguments: Arguments) -> Iterator[CheckFailure]:
        given = [name for name in names if arguments.get(name)]
        if not given:
            yield CheckFailure(names[0], f"one of {' and '.join(names)} is required")
        elif len(given) > 1:
            yield CheckFailure(given[1], f"{given[1]} and {given[0]} exclude each other: give one of them")

    return rules


def at_most_one(*names: str) -> Callable[[Arguments], Iterator[CheckFailure]]:
    """Not several of some arguments."""

    def rules(arguments: Arguments) -> Iterator[CheckFailure]:
        if any(arguments.get(name) for name in names):
            yield from one_of(*names)(arguments)

    return rules


async def everything(client: Client, path: str, collection: str, **query: str) -> list[dict[str, Json]]:
    """All entries of a list."""
    return [answer.document async for answer in client.entries(path, collection, **query)]


def the_only(found: list[dict[str, Json]], what: str) -> dict[str, Json]:
    """The one that was looked for; it is an error that there is none, or more than one."""
    if len(found) != 1:
        raise PluginError(f"{what}: {'there is none' if not found else f'there are {len(found)}, not one'}")
    return found[0]
