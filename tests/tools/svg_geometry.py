"""What a picture's text says of places, to be checked: boxes, and texts with their widths as they are measured."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

from tools.pictures.drawing import measure

_SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float
    kind: str = ""

    def holds(self, other: Box) -> bool:
        """Whether another one is within this one; half a pixel is nothing, for numbers are rounded."""
        return (
            self.left - 0.5 <= other.left
            and other.right <= self.right + 0.5
            and self.top - 0.5 <= other.top
            and other.bottom <= self.bottom + 0.5
        )

    def meets(self, other: Box) -> bool:
        """Whether they share any area."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def boxes(svg: str) -> list[Box]:
    """All rectangles."""
    found: list[Box] = []
    for each in ElementTree.fromstring(svg).iter(f"{_SVG}rect"):
        x, y, width, height = (float(each.attrib[name]) for name in ("x", "y", "width", "height"))
        found.append(Box(x, y, x + width, y + height, each.get("class", "")))
    return found


def texts(svg: str) -> list[tuple[str, Box]]:
    """All texts that are shown, and what room they take."""
    found: list[tuple[str, Box]] = []
    for each in ElementTree.fromstring(svg).iter(f"{_SVG}text"):
        text = (each.text or "").strip()
        x, y, size = float(each.attrib["x"]), float(each.attrib["y"]), float(each.attrib["font-size"])
        width = measure(text, size, bold="font-weight" in each.attrib)
        left = x - width if each.get("text-anchor") == "end" else x
        found.append((text, Box(left, y - 0.8 * size, left + width, y + 0.2 * size)))
    return found


def all_text(svg: str) -> str:
    """Every text in it: what is shown, what is told by tooltips, and the description."""
    return " ".join(ElementTree.fromstring(svg).itertext())


def muddled(svg: str) -> list[str]:
    """What is wrong with a picture's places: boxes that overlap without holding each other, texts out of their box."""
    rectangles = boxes(svg)
    wrong = [
        f"{one} overlaps {other}"
        for number, one in enumerate(rectangles)
        for other in rectangles[number + 1 :]
        # Bars are times: those of one row may overlap.
        if one.meets(other) and not (one.holds(other) or other.holds(one) or one.kind[:3] == other.kind[:3] == "bar")
    ]
    shown = [each for each in texts(svg) if each[0]]
    for text, place in shown:
        around = [box for box in rectangles if box.meets(place)]
        wrong += [f"{text!r} {place} leaves {box}" for box in around if not box.holds(place) and "bar" not in box.kind]
    wrong += [
        f"{one!r} is upon {other!r}"
        for number, (one, place) in enumerate(shown)
        for other, beside in shown[number + 1 :]
        if place.meets(beside)
    ]
    return wrong
