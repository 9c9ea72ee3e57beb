"""Reads the docstrings of classes and of their fields."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from typing import Any


def of(item: Any) -> str:
    """The docstring of a class or a function."""
    return inspect.cleandoc(item.__doc__ or "")


def of_members(item: type) -> dict[str, str]:
    """The docstrings of fields, attributes and properties, by name; those of base classes included."""
    found: dict[str, str] = {}
    for parent in reversed(item.__mro__):
        if parent.__module__.partition(".")[0] not in {"builtins", "pulumi", "typing"}:
            found |= _own(parent)
    return found


@cache
def _own(item: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(item))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(statement, ast.FunctionDef):
            found[statement.name] = ast.get_docstring(statement) or ""
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            docstring = following.value if isinstance(following, ast.Expr) else None
            if isinstance(docstring, ast.Constant) and isinstance(docstring.value, str):
                found[statement.target.id] = inspect.cleandoc(docstring.value)
    return found
