"""How a field says that its value is secret: `Secret[str]`, wherever in its annotation."""

from __future__ import annotations

from typing import Annotated, Final, TypeVar


class _Mark:
    """Stands in the metadata of an annotation."""


T = TypeVar("T")
SECRET: Final = _Mark()
Secret = Annotated[T, SECRET]
"""A value that the engine keeps encrypted, and shows to nobody."""
