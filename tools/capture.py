"""`python -m tools.capture FILE.svg COMMAND...`: run a command as on a terminal, and draw the final screen.

Nothing is added or left out. Paths are shown as a user's: the project's as `metal-ipi`, the home as `~`.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tools.layout import ROOT

_WIDTH = 110
_TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(_WIDTH)}
_CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
# The same format as rich's own, but without fonts from the web.
_FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def screen(printed: str) -> list[str]:
    """The lines that a terminal shows after this output. Colours stay in them as escape sequences."""
    lines, row = [""], 0
    position = 0
    while position < len(printed):
        control = _CONTROL.match(printed, position)
        if control:
            count, kind = control[1], control[2]
            if kind == "A":
                row = max(0, row - int(count or 1))
            elif kind == "K":
                lines[row] = ""
            elif kind == "m":
                lines[row] += control[0]
            position = control.end()
            continue
        character = printed[position]
        position += 1
        if character == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif character != "\r":
            lines[row] += character
    while lines and not Text.from_ansi(lines[-1]).plain.strip():
        lines.pop()
    return lines


def shown(text: str) -> str:
    """The text with this computer's paths replaced."""
    return text.replace(str(ROOT), "metal-ipi").replace(str(Path.home()), "~")


def picture(command: str, lines: Sequence[str]) -> str:
    """The terminal as SVG."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}", style="bold"))
    for line in lines:
        console.print(Text.from_ansi(line), highlight=False)
    drawn = console.export_svg(title="metal-ipi", theme=MONOKAI, code_format=_FORMAT, unique_id="capture")
    return f"{drawn}\n"


def main() -> int:
    """Runs the command and draws its output; returns the command's status."""
    parser = argparse.ArgumentParser(prog="tools.capture", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    done = subprocess.run(
        options.command,
        env={**os.environ, **_TERMINAL},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    printed = done.stdout.decode(errors="replace")  # no newline translation, because carriage returns are significant
    options.file.parent.mkdir(parents=True, exist_ok=True)
    options.file.write_text(picture(" ".join(options.command), screen(shown(printed))))
    print(f"{' '.join(options.command)} ended with {done.returncode}; drawn to {options.file}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
