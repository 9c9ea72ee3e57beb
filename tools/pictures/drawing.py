"""SVG drawing. Texts are measured conservatively, shortened if they are too long, and escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from xml.etree import ElementTree

from tools.pictures.resources import Change

FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
SIGNS: dict[Change, str] = {
    "create": "+ new",
    "update": "~ changed",
    "replace": "± replaced",
    "delete": "- going away",
}
"""Signs next to colours, for people who cannot distinguish the colours."""

_LIGHT = {
    "page": "#ffffff", "card": "#f6f8fa", "edge": "#d1d9e0", "ink": "#1f2328", "soft": "#59636e",
    "accent": "#0969da", "create": "#1a7f37", "update": "#9a6700", "replace": "#8250df", "delete": "#cf222e",
}  # fmt: skip
_DARK = {
    "page": "#0d1117", "card": "#151b23", "edge": "#3d444d", "ink": "#f0f6fc", "soft": "#9198a1",
    "accent": "#4493f8", "create": "#3fb950", "update": "#d29922", "replace": "#ab7df8", "delete": "#f85149",
}  # fmt: skip

_EMS = {
    **dict.fromkeys("iljI.,:;'| f/-", 0.37),
    **dict.fromkeys("tr()[]!", 0.42),
    **dict.fromkeys("abcdeghknopqsuvxyz0123456789*_$?", 0.64),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&", 0.79),
}
"""Width of a character relative to the font size; 1 for all others."""


def measure(text: str, size: float, *, bold: bool = False) -> float:
    """An upper limit of a text's width in pixels, in any of the fonts: DejaVu Sans is the widest of them."""
    return sum(_EMS.get(character, 1.0) for character in text) * size * (1.13 if bold else 1.0)


def fit(text: str, room: float, size: float, *, bold: bool = False, keep_end: bool = False) -> str:
    """The text, shortened to fit. `keep_end` also keeps its end, because names often differ at the end."""
    if measure(text, size, bold=bold) <= room:
        return text
    room -= measure("…", size, bold=bold)
    head = tail = ""
    for number in range(len(text)):
        at_end = keep_end and number % 2 == 1
        more = text[-1 - len(tail)] if at_end else text[len(head)]
        if measure(head + tail + more, size, bold=bold) > room:
            break
        head, tail = (head, more + tail) if at_end else (head + more, tail)
    return f"{head}…{tail}"


def plain(text: str) -> str:
    """Replaces characters that XML does not allow or that change how text is shown: controls, direction marks,
    surrogates."""
    return "".join("�" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn", "Co") else c for c in text)


def listed(values: Sequence[str], room: float, size: float) -> str:
    """As many values as fit, and the number of the others; at least the first value."""
    found = ""
    for count in range(1, len(values) + 1):
        left = len(values) - count
        text = ", ".join(values[:count]) + (f" and {left} more" if left else "")
        # Without «and n more», longer lists can only be longer.
        if found and measure(", ".join(values[:count]), size) > room:
            break
        if not found or measure(text, size) <= room:
            found = text
    return found


class Canvas:
    """A picture; later elements cover earlier ones."""

    def __init__(self, width: float, height: float, *, title: str, description: str) -> None:
        self._root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {_n(width)} {_n(height)}",
                "width": _n(width), "height": _n(height), "role": "img", "aria-labelledby": "title desc",
            },
        )  # fmt: skip
        ElementTree.SubElement(self._root, "title", id="title").text = plain(title)
        ElementTree.SubElement(self._root, "desc", id="desc").text = plain(description)
        ElementTree.SubElement(self._root, "style").text = _style()
        self.box(0.5, 0.5, width - 1, height - 1, "page")

    def box(self, x: float, y: float, width: float, height: float, kind: str, *, tip: str = "") -> None:
        """A rectangle with rounded corners."""
        places = {"x": _n(x), "y": _n(y), "width": _n(width), "height": _n(height)}
        element = ElementTree.SubElement(self._root, "rect", {"class": kind, **places, "rx": _n(min(6, height / 5))})
        if tip:
            ElementTree.SubElement(element, "title").text = plain(tip)

    def text(
        self, x: float, y: float, text: str, room: float, kind: str = "", *,
        size: float = 12, bold: bool = False, keep_end: bool = False, right: bool = False, full: str = "",
    ) -> None:  # fmt: skip
        """A line of text in `room` pixels to the right of `x` (with `right`: to the left). A shortened text gets a
        tooltip."""
        text, full = plain(text), plain(full)
        shown = fit(text, room, size, bold=bold, keep_end=keep_end)
        attributes = {"x": _n(x), "y": _n(y), "font-size": _n(size)}
        attributes |= {"class": kind} if kind else {}
        attributes |= {"font-weight": "600"} if bold else {}
        attributes |= {"text-anchor": "end"} if right else {}
        element = ElementTree.SubElement(self._root, "text", attributes)
        element.text = shown
        if (full or text) != shown:
            tip = ElementTree.SubElement(element, "title")
            tip.text = full or text

    def line(self, *points: tuple[float, float], kind: str = "line") -> None:
        """Straight lines between the points."""
        path = " L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        ElementTree.SubElement(self._root, "path", {"class": kind, "d": f"M{path}"})

    def dot(self, x: float, y: float, kind: str = "dot") -> None:
        """A dot where something is connected."""
        ElementTree.SubElement(self._root, "circle", {"class": kind, "cx": _n(x), "cy": _n(y), "r": "4.5"})

    def sign(self, right: float, y: float, change: Change) -> float:
        """The sign of a change, which ends at `right`; returns the width that it takes."""
        if change == "same":
            return 0
        width = measure(SIGNS[change], 11, bold=True)
        self.text(right, y, SIGNS[change], width, f"sign {change}", size=11, bold=True, right=True)
        return width + 8

    def svg(self) -> str:
        """The picture as SVG text."""
        ElementTree.indent(self._root)
        return ElementTree.tostring(self._root, encoding="unicode") + "\n"


def _style() -> str:
    """Colours for light and dark mode. No CSS variables, because some viewers do not support them."""
    shape = (
        f"text{{font-family:{FONT};font-variant-numeric:tabular-nums}}"
        "path{fill:none;stroke-width:1.5}.group{fill-opacity:.5}"
        ".dashed{stroke-dasharray:5 4}.unknown{font-style:italic}"
    )
    return f"{shape}{_colours(_LIGHT)}@media(prefers-color-scheme:dark){{{_colours(_DARK)}}}"


def _colours(c: dict[str, str]) -> str:
    rules = [
        f"text{{fill:{c['ink']}}}",
        f".soft,.unknown{{fill:{c['soft']}}}",
        f".page{{fill:{c['page']};stroke:{c['edge']}}}",
        f".card,.group,.rail{{fill:{c['card']};stroke:{c['edge']}}}",
        f".box{{fill:{c['page']};stroke:{c['edge']}}}",
        f".inside{{fill:{c['page']}}}",
        f".line{{stroke:{c['accent']}}}.grid{{stroke:{c['edge']};stroke-width:1}}",
        f".dot,.arrow{{fill:{c['accent']};stroke:none}}.accent{{fill:{c['accent']}}}",
        *(f".sign.{name}{{fill:{c[name]}}}.box.{name}{{stroke:{c[name]};stroke-width:2}}" for name in SIGNS),
        *(f".bar.{name}{{fill:{c[name]}}}" for name in ("accent", *SIGNS, "soft")),
    ]
    return "".join(rules)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
