"""Show plans, reports and everything else to people and machines: values → text, pure.

Here are the formats of plans, reports and diagnostics, by the names that `--format` and `--report` take. Each entry
maps a value and a `Look` to a text that is empty or ends with a line end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from syncengine.render.style import Look

if TYPE_CHECKING:
    from syncengine.errors import Diagnostic
    from syncengine.render.formats import PlanFormat, ReportFormat

T = TypeVar("T")


class Renderer(Generic[T]):
    """A function of a module of this package, which is imported when it is needed: most runs need only one."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def load(self) -> Callable[[T, Look], str]:
        """Return the function."""
        function: Callable[[T, Look], str] = getattr(import_module(f"syncengine.render.{self._module}"), self._name)
        return function

    def __call__(self, value: T, look: Look) -> str:
        return self.load()(value, look)


PLAN_FORMATS: Mapping[str, Renderer[PlanFormat]] = {
    "text": Renderer("text", "plan_text"),
    "json": Renderer("documents", "plan_json"),
    "markdown": Renderer("markdown", "plan_markdown"),
    "html": Renderer("html", "plan_html"),
}

REPORT_FORMATS: Mapping[str, Renderer[ReportFormat]] = {
    "text": Renderer("report", "report_text"),
    "json": Renderer("documents", "report_json"),
    "junit": Renderer("ci", "report_junit"),
    "sarif": Renderer("ci", "sarif"),
    "github": Renderer("ci", "github"),
    "gitlab": Renderer("ci", "gitlab"),
    "markdown": Renderer("markdown", "report_markdown"),
}

PLAN_REPORTS: Mapping[str, Renderer[PlanFormat]] = {
    **PLAN_FORMATS,
    "github": Renderer("ci", "github"),
    "gitlab": Renderer("ci", "gitlab"),
    "sarif": Renderer("ci", "sarif"),
}
"""The formats of `plan --report`: all formats of a plan, and annotations of its changes."""

DIAGNOSTIC_FORMATS: Mapping[str, Renderer[Sequence[Diagnostic]]] = {
    "text": Renderer("diagnostics", "diagnostics_text"),
    "json": Renderer("documents", "diagnostics_json"),
    "markdown": Renderer("markdown", "trouble_markdown"),
    "html": Renderer("html", "trouble_html"),
    "github": Renderer("ci", "github"),
    "gitlab": Renderer("ci", "gitlab"),
    "sarif": Renderer("ci", "sarif"),
    "junit": Renderer("ci", "trouble_junit"),
}
"""The formats of diagnostics: all formats of `plan --report` and `test`, because errors may prevent a plan or tests."""

VALIDATE_FORMATS = ("text", "json", "github", "gitlab", "sarif")
"""The formats that `validate` offers."""
