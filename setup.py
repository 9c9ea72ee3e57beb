"""Builds the wheel: the rooms that other programs need, below one package, so that they take no names of theirs.

In the repository the rooms are packages of their own, and import each other as such; in a wheel `components` becomes
`metal_ipi.components`, and so on.
"""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_ROOT = Path(__file__).resolve().parent
_ROOMS = ("components", "provider", "stacks")
_SUFFIXES = {".py", ".sh"}
_SCHEMA = Path("provider", "schema.json")
_IMPORT = re.compile(rf"^(\s*(?:from|import) )({'|'.join(_ROOMS)})\b", re.MULTILINE)
_PIN = re.compile(r"^([A-Za-z0-9_.-]+)==((\d+)[\d.]*)$", re.MULTILINE)


class Build(build_py):
    """Puts `metal_ipi` and the rooms where the wheel is made of."""

    def run(self) -> None:
        """Copies what they need at run time; what makes the schema stays behind."""
        target = Path(self.build_lib)
        for source in _sources():
            below = source.relative_to(_ROOT)
            place = target / (below if below.parts[0] == "metal_ipi" else Path("metal_ipi", below))
            place.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text()
            place.write_text(_IMPORT.sub(r"\1metal_ipi.\2", text) if source.suffix == ".py" else text)


def _sources() -> list[Path]:
    found = [path for room in ("metal_ipi", *_ROOMS) for path in sorted((_ROOT / room).rglob("*"))]
    tools = _ROOT / "metal_ipi" / "schema"
    return [
        path for path in found if (path.suffix in _SUFFIXES and tools not in path.parents) or path == _ROOT / _SCHEMA
    ]


def _requirements() -> list[str]:
    """What is pinned, and newer up to the next major version: other programs have pins of their own."""
    pins = _PIN.findall((_ROOT / "requirements.txt").read_text())
    return [f"{name}>={version},<{int(major) + 1}" for name, version, major in pins]


setup(
    packages=["metal_ipi"],
    cmdclass={"build_py": Build},
    install_requires=_requirements(),
    entry_points={"console_scripts": ["pulumi-resource-metal-ipi = metal_ipi.plugin:main"]},
)
