"""Every filter and test of both kinds of templates, on values of every type, and further statements.

The templates are the keys of `results.json`.
"""

import re
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import StrictUndefined

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Scalar
from syncengine.manifest.generate.scalars import Compiled
from syncengine.posted_time.templates import Compiler, RenderTrouble
from syncengine.project.types import Written
from syncengine.resource import Row
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble
from syncengine.templating.values import Record
from tests.posted_time.projects import bare_route
from tests.posted_time.samples import group

MOMENT = datetime(2024, 5, 2, 9, 5, 7, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "text": " Müller & <b>Söhne</b>,\n\n it's 3;a ",
    "empty": "",
    "digits": "12.345",
    "day": "2024-05-02",
    "whole": 10000,
    "negative": -2.5,
    "decimal": Decimal("2.345"),
    "flag": True,
    "none": None,
    "moment": MOMENT,
    "date": date(2024, 5, 2),
    "numbers": [3, 1, 2],
    "texts": ("b", "A", "a", "b"),
    "mixed": [1, None, "x", 2.5, True],
    "mappings": [{"n": "b", "v": 2, "w": {"k": 1}}, {"n": "a", "v": 1.5, "w": {"k": 2}}],
    "mapping": {"b": 1, "a": ["x"], "C": None},
    "undefined": StrictUndefined(name="x"),
}


class Case(NamedTuple):
    """A template and the values of `x` that it is rendered with, by their names."""

    text: str
    values: tuple[str, ...]


Results = dict[str, str]
"""A result → the values with it; `!` where rendering fails, with our words if there are any; `?` and why."""


def _words(value: Any) -> str:
    """A result's representation, without memory addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:100]


def _result(make: Callable[[Any], Any], value: Any) -> str:
    try:
        return _words(make(value))
    except RenderTrouble as error:
        said = str(error).removeprefix("the template at syncengine.yaml:1 failed: ")
    except (*SURPRISES, NameError) as error:
        said = trouble(error)
    # Sentences that name nothing may be those of any error of a type, whose words differ between Python's versions.
    return f"! {said[:100]}" if "`" in said else "!"


def _results(make: Callable[[Any], Any], values: tuple[str, ...]) -> Results:
    results: dict[str, str] = {}
    for name in values:
        result = _result(make, deepcopy(VALUES[name]))
        results[result] = f"{results[result]} {name}" if result in results else name
    return results


class Mark(NamedTuple):
    """A place in no file."""

    line: int
    column: int


def of_manifests(case: Case) -> Results:
    """The results of a manifest's template, or why it is refused; `r` is a row that has `x`, too."""
    findings = Collector("m.yaml")
    compiled = Compiled(TemplateSandbox(), ("x", "r", "var"), findings)
    leaf = compiled.leaf(Scalar(case.text, Mark(0, 0), '"'))  # type: ignore[arg-type] # a place is enough
    if leaf is None:
        return {"? " + found.message: "" for found in findings.found}
    return _results(lambda x: leaf.value({"x": x, "r": Record({"x": x}, Row("r.csv", 2)), "var": {}}), case.values)


def of_posted_time(case: Case, *, is_path: bool = False) -> Results:
    """The results of a template of posted time, or why it is refused."""
    compiler = Compiler(Path(), "syncengine.yaml")
    compiled = (compiler.path if is_path else compiler.text)(Written(case.text, 1, 1), {"x": None})
    if compiled is None:
        return {"? " + found.message: "" for found in compiler.found}
    return _results(lambda x: compiled.value({**VARIABLES, "x": x}), case.values)


VARIABLES = bare_route().variables(group(tzOffsetMins=120, activityType={"code": "A1"}, totalDurationSecs=10000))


RESULTS = Path(__file__).with_name("results.json")
Stored = dict[str, dict[str, Results]]
"""Results by kind and template."""
KINDS: dict[str, Callable[[Case], Results]] = {
    "manifests": of_manifests,
    "posted time": of_posted_time,
    "paths": lambda case: of_posted_time(case, is_path=True),
}


def results_of(stored: Stored) -> Stored:
    """The current results of the stored templates, with the same values."""
    return {
        kind: {
            text: KINDS[kind](Case(text, tuple(n for n in VALUES if n in " ".join(was.values()).split())))
            for text, was in of.items()
        }
        for kind, of in stored.items()
    }
