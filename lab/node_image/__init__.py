"""The lab's CoreOS stand-in: a live PXE image of Debian packages that boots, ignites and answers as RHCOS does.

`ensure()` builds it once per user, `NodeImage.publish()` puts it where a lab's machines boot from. `python -m
lab.node_image` builds it and says how big it is.
"""

from __future__ import annotations

from lab.node_image.build import ensure
from lab.node_image.errors import ImageError
from lab.node_image.image import NodeImage

__all__ = ["ImageError", "NodeImage", "ensure"]
