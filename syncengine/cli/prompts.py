"""Questions to a person before a terminal."""

from __future__ import annotations

import click

from syncengine.cli.streams import tell

ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


def agreed(question: str) -> bool:
    """Whether the answer is yes; asked again until it is an answer. On stderr, since stdout is for data."""
    while True:
        answer = click.prompt(f"{question} [y/N]", default="", show_default=False, err=True)
        if (found := ANSWERS.get(answer.strip().lower())) is not None:
            return found
        tell("Please answer y (yes) or n (no).\n")
