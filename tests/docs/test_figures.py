"""Pictures of the documentation: drawn from what was measured, and readable in light and dark."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.drawing import draw as draw_costs
from bench.proxy import Cost
from tests.docs.test_docs import ROOT
from website.drawing import Group, Row, bars, grids

PICTURES = sorted(ROOT.glob("docs/images/*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", ["call.svg", "losses.svg"])
def test_a_picture_is_what_happens(name: str) -> None:
    pytest.importorskip("jinja2", reason="the generator's dependencies are not here")
    from tests.docs import figures

    drawn = figures.PICTURES[name]()
    assert (figures.IMAGES / name).read_text("utf-8") == drawn, "run `python -m tests.docs.figures`"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_says_what_it_shows_and_follows_the_scheme(picture: Path) -> None:
    root = ElementTree.fromstring(picture.read_text("utf-8"))
    assert root.findtext(f"{SVG}title")
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")


def widths(picture: str) -> list[float]:
    rects = ElementTree.fromstring(picture).iter(f"{SVG}rect")
    return [float(rect.attrib["width"]) for rect in rects if rect.attrib["height"] == "16"]


def test_bars_are_as_long_as_their_values() -> None:
    rows = [Row("one", {"x": 10.0, "y": 30.0}), Row("two", {"x": 20.0, "y": 0.0}, "<b>")]
    picture = bars("title", {"x": "a", "y": "b"}, [Group("group", rows)])
    ten, thirty, twenty, nothing = widths(picture)
    assert (thirty, twenty, nothing) == (pytest.approx(3 * ten, abs=0.2), pytest.approx(2 * ten, abs=0.2), 0)
    assert "20  &lt;b&gt;" in picture


def test_a_grid_has_a_cell_for_each_pair_of_names() -> None:
    picture = grids("title", {"works": "a", "not": "none"}, ["p", "q"], {"link": [["a", "none"], ["a", "a"]]})
    assert (picture.count('height="30"'), picture.count('class="none"')) == (4, 2)


def test_costs_are_drawn_with_floor_and_proxy() -> None:
    picture = draw_costs([Cost("hs", "translating", 15.2, 46.4)])
    for part in ("HTTP to stdio, translating", "15  µs", "46  µs"):
        assert part in picture
