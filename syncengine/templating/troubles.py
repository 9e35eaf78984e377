"""The exceptions of templates → messages for people. Pure."""

from __future__ import annotations

import re

from jinja2 import Environment, TemplateError, TemplateSyntaxError, UndefinedError

from syncengine.document.diagnostics import suggestion
from syncengine.templating.bounds import TooMuch
from syncengine.templating.filters import FilterTrouble

SURPRISES = (
    *(TemplateError, TooMuch, ArithmeticError, TypeError, ValueError, LookupError, AttributeError),
    *(RecursionError, MemoryError, AssertionError, re.error),
)
"""The exceptions of a running template. A template that is compiled while it runs can also raise `SyntaxError`."""
_IN_WORDS = (TemplateError, TooMuch, FilterTrouble, RecursionError, MemoryError)
"""The exceptions whose text is a message for people."""
_NO_SUCH = re.compile(r"No (filter|test) named '(\w+)'")


class NoElement(UndefinedError):
    """Raised when a value lacks an element that a template uses, such as the second part of a name without a dash."""


def is_of_data(error: BaseException) -> bool:
    """Return whether a template failed with its data, and not by itself or because of a limit."""
    of_values = isinstance(error, ArithmeticError | TypeError | ValueError | LookupError | AttributeError)
    return isinstance(error, NoElement) or (of_values and not isinstance(error, TemplateError | FilterTrouble))


def trouble(error: BaseException) -> str:
    """Return the message of an exception that a template raised."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply or calls itself endlessly"
    if isinstance(error, MemoryError):
        return "it needs too much memory"
    return " ".join(str(error).split())[:300] or type(error).__name__


def named_trouble(error: BaseException) -> str:
    """Return the message of an exception, after its class name unless the text is made for people."""
    return trouble(error) if isinstance(error, _IN_WORDS) else f"{type(error).__name__}: {trouble(error)}"


_DOTTED = re.compile(r"\b(\w+)\.(\w[^\"'{}|()\[\]=<>!,+*~%:]*)")
"""A name behind a dot, up to a sign that cannot be part of a column's name."""
_WORDS_AROUND = re.compile(r"\s(?:if|else|and|or|in|is|not)\s.*", re.DOTALL)


def column_hint(text: str) -> str:
    """Return how to write a column whose name has blanks or signs, if the text has one behind a dot, or nothing."""
    for match in _DOTTED.finditer(text):
        name = _WORDS_AROUND.sub("", match[2]).strip()
        if not re.fullmatch(r"\w+(\.[^\W\d]\w*)*", name) and f"{match[1]}." not in name:
            return f'; write a column whose name has blanks or signs as `{match[1]}["{name}"]`'
    return ""


def syntax_trouble(error: TemplateSyntaxError, environment: Environment, text: str = "") -> str:
    """Return the message of a syntax error in `text`, with a suggestion for an unknown filter, test or column."""
    message = f"the template is not valid: {(error.message or '').rstrip('.')}{column_hint(text)}"
    match = _NO_SUCH.search(message)
    if match is None:
        return message
    table = environment.filters if match[1] == "filter" else environment.tests
    names = [name for name in table if name.isidentifier() and not name.startswith("_")]
    return message + suggestion(match[2], names)
