"""The adapter to pulumi-policy: converts its resources to plain data, and our rules to its policies.

The engine passes two things that the library does not pass on to rules: which values are secret, and the stack's
configuration with the names of encrypted keys. This module gets both by replacing two parts of the library:
`deserialize_properties` and `ConfigureStack`. It fails at start if the library does not have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyPack,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
    policy,
)
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY
from pulumi_policy.proxy import UnknownValueError

from .base import UNKNOWN, Given, Resource, Rule, SecretText
from .state import resources_before

_library = cast(Any, policy)
_configuration: dict[str, str] = {}
_secret_keys: set[str] = set()


def serve(name: str, rules: Sequence[Rule]) -> None:
    """Serves the engine that started this process."""
    _open_doors()
    PolicyPack(name, [_policy(rule) for rule in rules], enforcement_level=EnforcementLevel.MANDATORY)


def _open_doors() -> None:
    plain: Callable[..., Any] = _library.deserialize_properties

    def deserialize(properties: Mapping[str, Any], proxy_secrets: bool = False) -> Any:
        return plain(properties, True) if proxy_secrets else plain(_marked(properties))

    class Servicer(_library._PolicyAnalyzerServicer):
        def ConfigureStack(self, request: Any, context: Any) -> Any:
            _configuration.update(request.config)
            _secret_keys.update(request.config_secret_keys)
            return super().ConfigureStack(request, context)

    _library.deserialize_properties = deserialize
    _library._PolicyAnalyzerServicer = Servicer


def _marked(value: Any, secret: bool = False) -> Any:
    """The engine's property values without the envelopes of secrets: each text inside a secret becomes a
    `SecretText`."""
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        if found.get(SPECIAL_SIG_KEY) == SPECIAL_SECRET_SIG:
            return _marked(found["value"], True)
        return {key: _marked(item, secret) for key, item in found.items()}
    if isinstance(value, list):
        return [_marked(item, secret) for item in cast("list[Any]", value)]
    return SecretText(value) if secret and isinstance(value, str) else value


def _policy(rule: Rule) -> Policy:
    schema = PolicyConfigSchema({name: dict(parameter) for name, parameter in rule.parameters.items()})
    about: dict[str, Any] = {"config_schema": schema} if rule.parameters else {}
    if rule.resource is not None:
        return ResourceValidationPolicy(rule.name, rule.description, _resource_check(rule), **about)
    return StackValidationPolicy(rule.name, rule.description, _stack_check(rule), **about)


def _resource_check(rule: Rule) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
    check = rule.resource
    assert check is not None

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        resource = _resource(args)
        for message in check(resource, _given(args.get_config(), [resource])):
            report(message, None)

    return validate


def _stack_check(rule: Rule) -> Callable[[StackValidationArgs, ReportViolation], None]:
    check = rule.stack
    assert check is not None

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        resources = [_resource(each) for each in args.resources]
        for found in check(resources, _given(args.get_config(), resources)):
            report(found.message, found.urn)

    return validate


def _resource(told: ResourceValidationArgs | PolicyResource) -> Resource:
    return Resource(
        urn=told.urn,
        type=told.resource_type,
        name=told.name,
        properties=_plain(told.props),
        protected=bool(told.opts.protect),
    )


def _given(parameters: Mapping[str, Any], resources: Sequence[Resource] = ()) -> Given:
    return Given(
        parameters=parameters,
        configuration=_configuration,
        secret_keys=frozenset(_secret_keys),
        before=lambda: resources_before(resources),
    )


def _plain(value: Any) -> Any:
    """Converts the library's proxies, which raise for unknown values, to lists and dicts with UNKNOWN."""
    if isinstance(value, Mapping):
        found = cast("Mapping[str, Any]", value)
        return {key: _plain(_item(found, key)) for key in found}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[Any]", value)
        return [_plain(_item(items, number)) for number in range(len(items))]
    return value


def _item(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except UnknownValueError:
        return UNKNOWN
