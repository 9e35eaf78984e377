"""How often a property is tried: in full, or a tenth of it with `--hypothesis-profile dev` while one edits."""

from __future__ import annotations

from hypothesis import settings

FULL = 100
"""`max_examples` of the profile `ci`: the profiles' numbers are percents of what a property asks for."""


def tried(examples: int) -> int:
    """As many of so many examples as the profile says that is loaded."""
    return max(1, examples * settings().max_examples // FULL)
