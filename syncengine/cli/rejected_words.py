"""Read the command and the options of a command line that click may have rejected."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import click

FORMATS = ("--format", "--log-format")


class CommandLine(NamedTuple):
    """The name of the command that was called, empty if there is none, and the last value of each option."""

    command: str
    values: dict[str, str]


def read_words(program: click.Command, words: Sequence[str]) -> CommandLine:
    """Return what a command line says: the command is the first word that is no value of a global option.

    No command is imported, since an error of its import may be what is told.
    """
    options = (each for each in program.params if isinstance(each, click.Option) and not each.is_flag)
    takes_value = {*FORMATS, *(name for option in options for name in option.opts)}
    command, values = "", dict[str, str]()
    waiting = deque(words)
    while waiting and (word := waiting.popleft()) != "--":
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            command = command or word
        elif equals:
            values[name] = value
        elif waiting and name in takes_value and waiting[0] not in FORMATS:  # or its value was forgotten
            values[name] = waiting.popleft()
    return CommandLine(command, values)
