"""The plugin `pulumi-resource-metal-ipi`: our resources, and the components for programs in other languages.

Stacks of this project declare components themselves and use only the resources. So components are imported when a
program asks for one the first time.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from metal_ipi.provider import server
from metal_ipi.provider.plugin import VERSION, MetalIpiProvider


class _Servicer(server.Servicer):
    async def Construct(self, request: Any, context: Any) -> Any:
        from metal_ipi.construct import construct

        return await construct(request, context, self._engine_address)


def main() -> None:
    """Serve the engine that started this process; see `server.main`."""
    directory = os.environ.pop("METAL_IPI_DIRECTORY", None)
    if directory is not None:  # the engine's working directory, to which the program's relative paths refer
        os.chdir(directory)
    server.main(sys.argv[1:], VERSION, MetalIpiProvider(), _Servicer)


if __name__ == "__main__":
    main()
