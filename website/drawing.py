"""Figures as SVG, without a library: bars in groups, and grids of cells. They follow the light or dark scheme.

Lives here: how a figure looks. What it shows is said by whoever measures: `bench`, `tests.peers.pairs`,
`tests.docs.figures`. Colours differ in lightness as well as in hue, and each bar has its number beside it, so nothing
depends on telling colours apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

WIDTH: Final = 760
BAR: Final = 16
STEP: Final = 22
LABELS: Final = 190
MARGIN: Final = 14

STYLE: Final = """\
svg{color-scheme:light dark}
text{font:13px system-ui,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif;fill:#24292f}
.small{font-size:11.5px;fill:#57606a}.tiny{font-size:10.5px;fill:#57606a}.head{font-weight:600}.end{text-anchor:end}.middle{text-anchor:middle}
.a{fill:#3b5bdb}.b{fill:#91a7ff}.c{fill:#e8590c}.d{fill:#ced4da}.none{fill:none;stroke:#ced4da;stroke-dasharray:3 3}
@media (prefers-color-scheme:dark){
text{fill:#e6e8eb}.small,.tiny{fill:#a6adb7}
.a{fill:#5c7cfa}.b{fill:#bac8ff}.c{fill:#ff922b}.d{fill:#5c636a}.none{stroke:#5c636a}
}"""

KINDS: Final = ("a", "b", "c", "d")
"""Classes of the style, in the order in which series take them."""


@dataclass(frozen=True, slots=True)
class Row:
    """A bar: its name, the value of each series that it is made of, and what is written behind it."""

    name: str
    values: Mapping[str, float]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Bars under one heading."""

    name: str
    rows: Sequence[Row]


def bars(title: str, series: Mapping[str, str], groups: Sequence[Group]) -> str:
    """Draw bars in groups, each made of the values of its series, one after the other.

    Args:
        title: What the figure shows, for those who do not see it.
        series: Each series with its class of the style.
        groups: From top to bottom.
    """
    parts = _legend(series, MARGIN + 10)
    longest = max(sum(row.values.values()) for group in groups for row in group.rows)
    notes = max(len(row.note) for group in groups for row in group.rows) * 6.5
    scale = (WIDTH - LABELS - 2 * MARGIN - 48 - notes) / longest
    top = MARGIN + 34
    for group in groups:
        parts.append(_text(MARGIN, top + 12, group.name, "head"))
        top += STEP
        for row in group.rows:
            parts.append(_text(LABELS - 8, top + 12, row.name, "small end"))
            left = float(LABELS)
            for name, value in row.values.items():
                width = max(value * scale, 1.0 if value else 0)
                parts.append(_box(left, top, width, BAR, series[name]))
                left += width
            total = sum(row.values.values())
            parts.append(_text(left + 6, top + 12, f"{total:.0f}{row.note and f'  {row.note}'}", "small"))
            top += STEP
        top += 8
    return _svg(title, top + MARGIN - 8, parts)


def grids(
    title: str, legend: Mapping[str, str], names: Sequence[str], panels: Mapping[str, Sequence[Sequence[str]]]
) -> str:
    """Draw square grids side by side, four in a line.

    Args:
        title: What the figure shows, for those who do not see it.
        legend: What each class of the style means.
        names: Of the columns, which are those of the rows.
        panels: Each grid's heading, with the class of each cell, a sequence a row.
    """
    size, gap, label = 30, 3, 40
    wide = len(names) * (size + gap) + 14
    parts = _legend(legend, MARGIN + 10)
    for number, (name, rows) in enumerate(panels.items()):
        left = MARGIN + label + (number % 4) * wide
        top = MARGIN + 44 + (number // 4) * (len(names) * (size + gap) + 62)
        parts.append(_text(left, top, name, "head"))
        for place, column in enumerate(names):
            parts.append(_text(left + place * (size + gap) + size / 2, top + 19, column, "tiny middle"))
        for line, row in enumerate(rows):
            down = top + 24 + line * (size + gap)
            if number % 4 == 0:
                parts.append(_text(left - 6, down + size / 2 + 4, names[line], "tiny end"))
            for place, kind in enumerate(row):
                parts.append(_box(left + place * (size + gap), down, size, size, kind))
    lines = (len(panels) + 3) // 4
    return _svg(title, MARGIN + 44 + lines * (len(names) * (size + gap) + 62) - 24, parts)


def _legend(series: Mapping[str, str], baseline: float) -> list[str]:
    left, parts = float(MARGIN), list[str]()
    for name, kind in series.items():
        parts += [_box(left, baseline - 11, 12, 12, kind), _text(left + 18, baseline, name, "small")]
        left += 18 + len(name) * 6.4 + 22
    return parts


def _text(left: float, baseline: float, text: str, kind: str) -> str:
    return f'<text x="{left:g}" y="{baseline:g}" class="{kind}">{escape(text)}</text>'


def _box(left: float, top: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:g}" rx="3" class="{kind}"/>'


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", *parts, "</svg>", ""])
