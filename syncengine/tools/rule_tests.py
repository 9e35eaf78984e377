"""Run a test: make its plan in memory and compare it with the expectations. Reads files of the project.

The plan is that for the recorded and the declared resources of the test. Nothing else is accessed: no state, no
service, no sources but files, no environment variables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import structs
from msgspec.structs import asdict

from syncengine.document.diagnostics import Collector, in_order
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Scalar
from syncengine.document.reader import Documents
from syncengine.document.text import to_camel
from syncengine.document.validation import names_of
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.context import LoadContext, context_of
from syncengine.manifest.desired import Desired, ManifestSet, desired, manifest_set, read_one
from syncengine.manifest.files import ManifestFile, find
from syncengine.manifest.read_file import NO_DEFAULTS, read_documents
from syncengine.manifest.resources import DefaultValues, ReadFile, Reading, item_of
from syncengine.manifest.schema import IDENTITIES, SECTIONS
from syncengine.manifest.sources.records import SourceTrouble
from syncengine.plan.base import DeclaredState, recorded_as
from syncengine.plan.build import plan
from syncengine.plan.judgement import asking_rules, denying_rules, warning_rules
from syncengine.plan.model import Basis, Options, Plan
from syncengine.plan.planner import options_of
from syncengine.plan.request import PlanRequest
from syncengine.project.model import Project
from syncengine.resource import Kind, Resource
from syncengine.rules.model import Deviation, RuleSet, RuleTestCase, RuleTestResult
from syncengine.rules.read import Expectation

BASIS = Basis("test", "", "", swept_before=True)
"""The basis of a plan without a service, after the first sweep of its state."""


def run_tests(project: Project, rule_set: RuleSet, tests: Iterable[RuleTestCase]) -> Iterator[RuleTestResult]:
    """Run tests one after the other and yield their results."""
    manifests = manifest_set(project)
    options = structs.replace(options_of(project, PlanRequest("test"), DeclaredState({}).facts()), rule_set=rule_set)
    for test in tests:
        with TemporaryDirectory(prefix="syncengine-") as folder:
            context = offline_context(test, project, Path(folder))
            errors: tuple[Diagnostic, ...] = ()
            expected = test.written.expect.errors
            try:
                found = _differences(test, context, manifests, options)
                if expected:
                    found = (Deviation(("errors",), sorted(expected), []), *found)
            except Problems as problems:
                found, errors = (), tuple(d for d in problems.found if d.severity is Severity.ERROR)
                if expected is not None:
                    codes = sorted({error.code for error in errors})
                    found = tuple(deviations({"errors": sorted(expected)}, {"errors": codes}))
                    errors = errors if found else ()
            yield RuleTestResult(test.written.name, test.file, test.line, found, errors)


class _Reader:
    """The reader of manifests inside one test, and of those of the project that it names, and its `problems`."""

    def __init__(self, test: RuleTestCase, context: OfflineContext, own: ManifestSet) -> None:
        self._test, self._context, self._own = test, context, own
        self.files: list[ManifestFile] = []
        self.problems: list[Diagnostic] = []

    def inline(self, node: MappingNode, defaults: DefaultValues) -> Reading:
        reading = read_documents(Documents((node,)), Collector(self._test.file), defaults, self._context)
        self.problems += (d for d in reading.found if d.severity is Severity.ERROR)
        return reading

    def reads(self, part: MappingNode | Scalar) -> Iterator[ReadFile]:
        """Yield the manifest inside the test, or those of the project at a path."""
        if isinstance(part, MappingNode):
            yield ReadFile(self.inline(part, self._own.defaults))
            return
        root = self._context.root
        search = find([root / part.text], root, self._context, self._context.secret_files)
        self.problems += search.problems
        self.files += search.files
        yield from (read_one(file, self._own.defaults) for file in search.files)


def _differences(
    test: RuleTestCase, context: OfflineContext, own: ManifestSet, options: Options
) -> tuple[Deviation, ...]:
    """Plan and compare. Raise `Problems` with every problem of the manifests."""
    written, expect, reader = test.written, test.written.expect, _Reader(test, context, own)
    recorded = () if written.recorded is None else reader.inline(written.recorded, own.defaults).resources
    wanted: dict[Kind, Sequence[Resource]] = {}
    nodes = {"tags": expect.tags, "tagCategories": expect.tag_categories, "activityTypes": expect.activity_types}
    for name, node in nodes.items():
        whole = MappingNode([Scalar(name, node.mark, "")], [node], node.mark) if node is not None else None
        wanted[SECTIONS[name]] = () if whole is None else reader.inline(whole, NO_DEFAULTS).resources
    reads = [read for part in written.manifests for read in reader.reads(part)]
    if reader.problems:
        raise Problems(in_order(reader.problems))
    declared = desired(own._replace(files=reader.files, found=()), reads)
    rows = {row.key: row for row in map(recorded_as, recorded)}
    return differences(expect, plan(declared, rows, options, BASIS), declared, wanted)


class OfflineSources(dict[str, Any]):
    """The sources of a test, none of which can be queried."""

    def get(self, name: str, default: Any = None) -> Any:
        raise SourceTrouble(f"a test is offline and cannot query the source `{name}`: test its template with a file")


@dataclass(frozen=True)
class OfflineContext(LoadContext):
    """The context of a test. `files` maps the path of each data file to the file that replaces it."""

    files: Mapping[Path, Path] = field(default_factory=dict)

    def data(self, name: str, folder: Path) -> Path:
        return self.files.get(_normal(folder / name)) or super().data(name, folder)

    def name_of(self, path: Path) -> str:
        return super().name_of(next((place for place, file in self.files.items() if file == path), path))


def offline_context(test: RuleTestCase, project: Project, folder: Path) -> OfflineContext:
    """Return the project's context without its environment and sources, with the test's data written into `folder`."""
    context = context_of(project)
    parts = {each.name: getattr(context, each.name) for each in fields(context) if each.name != "memo"}
    parts |= {"variables": {**context.variables, **(test.written.variables or {})}, "environ": {}, "secrets": {}}
    files: dict[Path, Path] = {}
    for n, (name, text) in enumerate((test.written.data or {}).items()):
        file = folder / f"{n}{Path(name).suffix}"
        file.write_text(text, encoding="utf-8")
        # Templates name it relative to the test's folder, or to the project's.
        files |= {_normal(base / name): file for base in ((project.root / test.file).parent, project.root)}
    return OfflineContext(**{**parts, "sources": OfflineSources()}, files=files)


def _normal(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - the file need not be there


Wanted = Mapping[Kind, Iterable[Resource]]
"""The expected resources, by kind."""


def differences(expect: Expectation, plan: Plan, desired: Desired, wanted: Wanted) -> tuple[Deviation, ...]:
    """Return the deviations from every expectation that is set."""
    expected: dict[str, Any] = {}
    actual: dict[str, Any] = {}
    for name, attribute in names_of(Expectation).items():
        value = getattr(expect, attribute)
        if value is None or name == "errors":
            continue
        if (kind := SECTIONS.get(name)) is not None:
            declared = (each for each in desired.resources.values() if each.key.kind is kind)
            expected[name], actual[name] = _items(wanted[kind]), _items(declared)
        else:
            value = value.model_dump(by_alias=True, exclude_unset=True) if name == "summary" else value
            expected[name] = value if isinstance(value, dict) else sorted(value)
            actual[name] = FACTS[name](plan, value)
    return tuple(deviations(expected, actual))


FACTS: Mapping[str, Callable[[Plan, Any], Any]] = {
    "denied": lambda plan, _: sorted(denying_rules(plan.diagnostics)),
    "warned": lambda plan, _: sorted(warning_rules(plan.diagnostics)),
    "approve": lambda plan, _: sorted(asking_rules(plan.gate)),
    "summary": lambda plan, value: {
        to_camel(name): count for name, count in asdict(plan.summary).items() if to_camel(name) in value
    },
    "changes": lambda plan, value: (
        {str(change.key): change.action.word for change in plan.changes}
        if isinstance(value, dict)
        else sorted(str(change.key) for change in plan.changes)
    ),
}


def _items(resources: Iterable[Resource]) -> dict[str, Any]:
    """Return resources by name, each as a manifest would declare it, without its identity."""
    return {
        each.key.name: {name: value for name, value in item_of(each).items() if name != IDENTITIES[each.key.kind]}
        for each in resources
    }


def deviations(expected: Any, actual: Any) -> Iterator[Deviation]:
    """Yield every difference between two JSON values, at its path and ordered by path."""
    if expected == actual:
        return
    from deepdiff.diff import DeepDiff  # loads pydantic: import it only when there is something to compare

    # With the default threshold, mappings that share few keys would be one difference as a whole.
    found = DeepDiff(expected, actual, view="tree", threshold_to_diff_deeper=0)
    levels = sorted((level for levels in found.values() for level in levels), key=lambda level: str(level.path()))
    for level in levels:
        yield Deviation(tuple(level.path(output_format="list")), _value(level.t1), _value(level.t2))


def _value(value: Any) -> Any:
    """Return a value of deepdiff, or `None` for its marker of an absent value."""
    return value if isinstance(value, str | int | float | list | dict) else None
