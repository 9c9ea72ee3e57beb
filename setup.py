"""What the wheel needs of other packages; pyproject.toml has everything else."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup


def _requirements(file: str) -> list[str]:
    """What is pinned, and newer up to the next major version: other programs have pins of their own."""
    lines = (Path(__file__).resolve().parent / file).read_text().splitlines()
    pins = [line.split("==") for line in lines if "==" in line]
    return [f"{name}>={version},<{int(version.split('.')[0]) + 1}" for name, version in pins]


setup(
    install_requires=_requirements("requirements.txt"),
    extras_require={"cluster-api": _requirements("requirements-cluster-api.txt")},
)
