"""Read the command and the options of a command line that click may have rejected."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

import click

FORMATS = ("--format", "--log-format")


class CommandLine(NamedTuple):
    """All values of each option, and the other words, the first of which is the command in a line of the program."""

    values: dict[str, list[str]]
    others: list[str]

    def last(self, name: str) -> str:
        """Return the last value of an option; empty without one."""
        return self.values[name][-1] if name in self.values else ""


def read_words(command: click.Command, words: Sequence[str]) -> CommandLine:
    """Return what a command line says to the program or to one command.

    No command is imported for it, since an error of its import may be what is told.
    """
    options = [each for each in command.params if isinstance(each, click.Option) and not each.is_flag]
    takes_value = {*FORMATS, *(name for option in options for name in option.opts)}
    values, others = defaultdict[str, list[str]](list), list[str]()
    waiting = deque(words)
    while waiting and (word := waiting.popleft()) != "--":
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            others.append(word)
        elif not word.startswith("--") and len(word) > 2 and word[:2] in takes_value:  # `-CDIR`
            values[word[:2]].append(word[2:])
        elif equals:
            values[name].append(value)
        elif waiting and name in takes_value and waiting[0] not in FORMATS:  # or its value was forgotten
            values[name].append(waiting.popleft())
    return CommandLine(dict(values), others)
