"""Figures as SVG, without a library: bars in groups, grids of cells, who sends what.

Lives here: how a figure looks, in a light and in a dark scheme. What it shows is said by whoever measures: `bench`,
`tests.peers.pairs`, `tests.docs.figures`. Colours differ in lightness as well as in hue, and each bar has its number
beside it, so nothing depends on telling colours apart.
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
.arrow{stroke:#3b5bdb;stroke-width:1.6}.answer{stroke-dasharray:5 4}.tip{fill:#3b5bdb}
.life{stroke:#ced4da;stroke-width:2}
@media (prefers-color-scheme:dark){
text{fill:#e6e8eb}.small,.tiny{fill:#a6adb7}
.a{fill:#5c7cfa}.b{fill:#bac8ff}.c{fill:#ff922b}.d{fill:#5c636a}.none{stroke:#5c636a}
.arrow{stroke:#91a7ff}.tip{fill:#91a7ff}.life{stroke:#3d444d}
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


@dataclass(frozen=True, slots=True)
class Arrow:
    """What one sends to another: their places among the names, and what it says."""

    sender: int
    receiver: int
    says: str
    is_answer: bool


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


def sequence(title: str, names: Sequence[str], arrows: Sequence[Arrow]) -> str:
    """Draw who sends what to whom, from top to bottom.

    Args:
        title: What the figure shows, for those who do not see it.
        names: Who takes part, from left to right.
        arrows: What is sent, in order.
    """
    step, space = 34, (WIDTH - 2 * MARGIN - 120) / (len(names) - 1)
    places = [MARGIN + 60 + number * space for number in range(len(names))]
    bottom = MARGIN + 40 + len(arrows) * step
    parts = [
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
    ]
    for name, place in zip(names, places, strict=True):
        parts.append(_text(place, MARGIN + 12, name, "head middle"))
        parts.append(f'<line x1="{place:g}" y1="{MARGIN + 22}" x2="{place:g}" y2="{bottom}" class="life"/>')
    for number, arrow in enumerate(arrows):
        height = MARGIN + 56 + number * step
        begin, end = places[arrow.sender], places[arrow.receiver]
        aside = 5 if begin < end else -5
        kind = f"arrow {'answer' if arrow.is_answer else ''}".strip()
        parts.append(
            f'<line x1="{begin + aside:g}" y1="{height}" x2="{end - aside:g}" y2="{height}" class="{kind}" '
            'marker-end="url(#head)"/>'
        )
        parts.append(_text((begin + end) / 2, height - 6, arrow.says, "small middle"))
    return _svg(title, bottom + MARGIN, parts)


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
