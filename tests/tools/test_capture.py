"""What a recorded terminal shows."""

from __future__ import annotations

from tools.capture import picture, screen


def test_what_was_erased_is_not_shown() -> None:
    live = "\r\x1b[2K"
    assert screen(f"begin\nwaiting 1 s{live}waiting 2 s{live}  done\nwaiting 3 s{live}end\n\n") == [
        "begin", "  done", "end",
    ]  # fmt: skip


def test_several_live_lines_are_erased_upwards() -> None:
    assert screen("begin\none\ntwo\r\x1b[2K\x1b[1A\x1b[2Kdone\n") == ["begin", "done"]


def test_colours_stay() -> None:
    assert screen("\x1b[32mgood\x1b[0m\n") == ["\x1b[32mgood\x1b[0m"]


def test_a_picture_needs_nothing_from_elsewhere() -> None:
    drawn = picture("make up", ["\x1b[32mgood\x1b[0m", "<&>"])
    assert "good" in drawn and "&lt;&amp;&gt;" in drawn
    assert "url(http" not in drawn and "@font-face" not in drawn
