"""The README's promises: its examples print what it says, and it stays short."""

from __future__ import annotations

from pathlib import Path

from tests.support.pages import ROOT, Walk, blocks, walked

README = ROOT / "README.md"
LONGEST = 950
"""Words of a README that is read to its end."""


def test_the_plan_is_the_one_that_the_readme_shows(tmp_path: Path) -> None:
    """Its files are written and its commands run in order, and their outputs stand below them."""
    text, walk = walked(README, Walk(tmp_path))
    assert walk == text


def test_one_plan_is_shown() -> None:
    """Once is enough; more is in the page that begins."""
    assert sum("Plan: " in block for block in blocks(README, "console")) == 1


def test_the_readme_is_short() -> None:
    """Whatever is added to it belongs into a page of docs."""
    assert len(README.read_text(encoding="utf-8").split()) <= LONGEST
