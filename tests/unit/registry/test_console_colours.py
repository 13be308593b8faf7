"""Contrast of the console's colours, by the formulas of WCAG 2.2 (success criteria 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLE = Path(__file__).parents[3] / "services/registry/console/src/style.css"
# Level AA for text, and for parts of controls and charts.
TEXT, PART = 4.5, 3.0
WORDS = ("text", "muted", "link", "good", "warn", "bad", "word", "string", "number")
SERIES = ("series-1", "series-2", "series-3", "series-4")
# Colour, ground, and the least ratio.
PAIRS = (
    *((word, ground, TEXT) for word in WORDS for ground in ("page", "panel")),
    *((series, "panel", TEXT) for series in SERIES),
    *((series, "page", TEXT) for series in ("series-1", "series-3")),  # where an operator runs
    *((word, "bad-ground", TEXT) for word in ("text", "muted", "link", "bad")),
    *((word, "chosen", TEXT) for word in ("text", "muted", "word", "string", "number")),
    ("page", "link", TEXT),  # the main button, and the chosen completion
    *((part, ground, PART) for part in ("edge", "focus") for ground in ("page", "panel")),
)


def palettes() -> dict[str, dict[str, str]]:
    """The colours of both modes by name; dark mode has all colours of light mode."""
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root \{(.*?)\}", STYLE.read_text(), re.DOTALL)
    )
    return {"light": light, "dark": dark}


def luminance(colour: str) -> float:
    """Relative luminance of a colour such as `#0b57a4`, from 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one: str, other: str) -> float:
    """Contrast ratio, from 1 to 21."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_formula_has_the_known_values() -> None:
    assert ratio("#000000", "#ffffff") == 21
    assert ratio("#767676", "#ffffff") > TEXT > ratio("#777777", "#ffffff")


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_colours_have_the_contrast_of_level_aa(mode: str) -> None:
    palette = palettes()[mode]
    assert palette.keys() == palettes()["light"].keys()
    low = {
        (colour, ground): round(ratio(palette[colour], palette[ground]), 2)
        for colour, ground, least in PAIRS
        if ratio(palette[colour], palette[ground]) < least
    }
    assert low == {}
