"""The results of tests of rules and manifests, as values."""

from __future__ import annotations

from typing import Any, NamedTuple

from syncengine.errors import Diagnostic


class Deviation(NamedTuple):
    """A difference and its path, such as `("tags", "A", "keywords", 0)`. A missing value is `None`."""

    path: tuple[str | int, ...]
    expected: Any
    actual: Any


class RuleTestResult(NamedTuple):
    """The result of one test. `diagnostics` are unexpected errors that prevented the plan."""

    name: str
    file: str
    line: int
    deviations: tuple[Deviation, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def passes(self) -> bool:
        return not (self.deviations or self.diagnostics)
