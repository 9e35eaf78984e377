"""Exceptions that a template can end in → sentences for people. Pure."""

from __future__ import annotations

import re

from jinja2 import Environment, TemplateError, TemplateSyntaxError

from syncengine.document.diagnostics import suggestion
from syncengine.templating.budget import TooMuch
from syncengine.templating.filters import FilterTrouble

SURPRISES = (
    *(TemplateError, TooMuch, ArithmeticError, TypeError, ValueError, LookupError, AttributeError),
    *(RecursionError, MemoryError, AssertionError, re.error),
)
"""Errors of a running template; SyntaxError if it is compiled then."""
_IN_WORDS = (TemplateError, TooMuch, FilterTrouble, RecursionError, MemoryError)
"""Errors whose text is meant for people."""
_NO_SUCH = re.compile(r"No (filter|test) named '(\w+)'")


def trouble(error: BaseException) -> str:
    """The error of a template, for a sentence."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply, or calls itself without end"
    if isinstance(error, MemoryError):
        return "it needs too much memory"
    return " ".join(str(error).split())[:300] or type(error).__name__


def named_trouble(error: BaseException) -> str:
    """Describe an error, with Python's name for it where its text alone says little."""
    return trouble(error) if isinstance(error, _IN_WORDS) else f"{type(error).__name__}: {trouble(error)}"


def syntax_trouble(error: TemplateSyntaxError, environment: Environment) -> str:
    """The syntax error of a template, and the filter or test that was probably meant."""
    message = f"the template is not valid: {(error.message or '').rstrip('.')}"
    match = _NO_SUCH.search(message)
    if match is None:
        return message
    table = environment.filters if match[1] == "filter" else environment.tests
    names = [name for name in table if name.isidentifier() and not name.startswith("_")]
    return message + suggestion(match[2], names)
