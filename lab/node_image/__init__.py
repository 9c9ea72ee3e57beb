"""The lab's CoreOS stand-in: a live PXE image of Debian packages that boots, ignites and answers as RHCOS does.

`ensure()` builds it once per user, `NodeImage.publish()` puts it where a lab's machines boot from.
"""

from __future__ import annotations

from lab.node_image.build import ensure

__all__ = ["ensure"]
