"""Markers that declarations of inputs (`provider.inputs`) add to a field's type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeVar, get_args

import pulumi
from pydantic import Strict, ValidationError, ValidationInfo, WrapValidator

from metal_ipi.provider.values import Unknown

if TYPE_CHECKING:
    from pydantic import ValidatorFunctionWrapHandler

T = TypeVar("T")


class Marker:
    """A marker of a field, besides its type."""


def said(annotation: Any) -> Iterator[Marker]:
    """The markers of an annotation, including those of nested types."""
    for each in (*getattr(annotation, "__metadata__", ()), *get_args(annotation)):
        if isinstance(each, Marker):
            yield each
        else:
            yield from said(each)


SECRET: Final = Marker()
"""The value is encrypted in the state."""
GIVEN: Final = Marker()
"""A program may give an output."""
FLAT: Final = Marker()
"""The members of this field are at the same level as the other fields, in Pulumi's protocol."""
LOCAL: Final = Marker()
"""The field is not part of Pulumi's protocol."""
LEFT_OUT: Final = Marker()
"""False, and an empty list or map, is not sent, so states of versions without the field do not change."""

Secret = Annotated[T, SECRET]
Flat = Annotated[T, FLAT]
Local = Annotated[T, LOCAL]
LateFlag = Annotated[bool, LEFT_OUT]


@dataclass(frozen=True)
class Reading:
    """Validation context: the value comes from Pulumi's protocol."""

    lenient: bool
    """Whether it comes from a state, where no value is refused."""


def pass_what_is_not_known(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Validate a value that the provider reads. Values from a program, and values that a preview does not know, are not
    validated."""
    reading = info.context
    if not isinstance(reading, Reading) or isinstance(value, Unknown):
        return value
    try:
        return handler(value)
    except ValidationError:
        if reading.lenient:
            return value
        raise


if TYPE_CHECKING:

    class Given(Generic[T]):
        """A value: a program may give an output, and the provider reads a `T`."""

        def __get__(self, instance: object, owner: Any) -> T: ...
        def __set__(self, instance: object, value: pulumi.Input[T]) -> None: ...

    class GivenList(Generic[T]):
        """A list: a program may give an output for it or for its items, and the provider reads a tuple."""

        def __get__(self, instance: object, owner: Any) -> tuple[T, ...]: ...
        def __set__(self, instance: object, value: pulumi.Input[Sequence[pulumi.Input[T]]]) -> None: ...

    class GivenMap(Generic[T]):
        """A map with text keys: a program may give an output for it or for its values."""

        def __get__(self, instance: object, owner: Any) -> Mapping[str, T]: ...
        def __set__(self, instance: object, value: pulumi.Input[Mapping[str, pulumi.Input[T]]]) -> None: ...

    class ListOf(Generic[T]):
        """A list that is known when the program runs, items included."""

        def __get__(self, instance: object, owner: Any) -> tuple[T, ...]: ...
        def __set__(self, instance: object, value: Sequence[T]) -> None: ...

    class MapOf(Generic[T]):
        """A map with text keys, known when the program runs."""

        def __get__(self, instance: object, owner: Any) -> Mapping[str, T]: ...
        def __set__(self, instance: object, value: Mapping[str, T]) -> None: ...

else:
    _items = WrapValidator(pass_what_is_not_known)

    class ListOf:
        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[tuple[Annotated[item, _items], ...], Strict(False)]

    class MapOf:
        def __class_getitem__(cls, item: Any) -> Any:
            return dict[str, Annotated[item, _items]]

    class Given:
        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[item, GIVEN]

    class GivenList:
        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[ListOf[item], GIVEN]

    class GivenMap:
        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[MapOf[item], GIVEN]


def default(value: Any = None) -> Any:
    """The default of a field, typed so that a type checker accepts it for any field."""
    return value
