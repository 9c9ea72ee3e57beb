"""Puts an image of a test's own into the hub's registry, in the facility's network; prints its reference.

`push_image STATE NAME REQUIREMENTS`: the lab's image of Ironic, with other requirements.
"""

from __future__ import annotations

import ssl
import sys
from dataclasses import replace
from pathlib import Path

import httpx

from lab.hub import images, oci
from lab.hub.layers import Wheels
from lab.hub.recipe import Recipe
from lab.layout import Layout
from lab.network import plan


def ironic_of(name: str, requirements: Path) -> Recipe:
    """The lab's image of Ironic, with other requirements."""
    layers = tuple(
        replace(each, requirements=requirements) if isinstance(each, Wheels) else each for each in images.IRONIC.layers
    )
    return replace(images.IRONIC, name=name, layers=layers)


def main(state: Path, name: str, requirements: Path) -> str:
    """The image's reference."""
    recipe = ironic_of(name, requirements)
    image = recipe.ensure(lambda line: print(line, file=sys.stderr))
    trust = ssl.create_default_context(cafile=Layout.of(state).ca)
    with httpx.Client(base_url=f"https://{plan.REGISTRY}", verify=trust, trust_env=False, timeout=60) as client:
        oci.push(client, name, recipe.key, image)
    return recipe.reference


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
