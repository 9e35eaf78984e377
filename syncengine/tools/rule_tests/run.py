"""Run a test: make its plan in memory and compare it with the expectations. Reads files of the project.

Nothing else is accessed: no state, no service, no sources but files, no environment variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import structs

from syncengine.document.diagnostics import Collector, in_order
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar
from syncengine.document.reader import Documents
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.declarations import DefaultValues
from syncengine.manifest.desired import Desired, ManifestSet, desired, manifest_set
from syncengine.manifest.files import ManifestFile, find
from syncengine.manifest.load import read_one
from syncengine.manifest.read_file import NO_DEFAULTS, read_documents
from syncengine.manifest.reading import ReadFile, Reading
from syncengine.manifest.schema import SECTIONS
from syncengine.plan.build import plan
from syncengine.plan.git_with_git import DeclaredState, recorded_as
from syncengine.plan.model import Basis, Options, Plan
from syncengine.plan.planner import options_of
from syncengine.plan.request import PlanRequest
from syncengine.project.model import Project
from syncengine.resource import Kind, Resource
from syncengine.rules.model import RuleSet, RuleTestCase
from syncengine.rules.results import Deviation, RuleTestResult
from syncengine.tools.rule_tests.compare import Wanted, deviations, differences
from syncengine.tools.rule_tests.context import OfflineContext, offline_context

BASIS = Basis("test", "", "", swept_before=True)
"""The basis of a plan without a service, after the first sweep of its state."""


def run_tests(project: Project, rule_set: RuleSet, tests: Iterable[RuleTestCase]) -> Iterator[RuleTestResult]:
    """Run tests one after the other and yield their results."""
    manifests = manifest_set(project)
    options = structs.replace(options_of(project, PlanRequest("test"), DeclaredState({}).facts()), rule_set=rule_set)
    for test in tests:
        with TemporaryDirectory(prefix="syncengine-") as folder:
            context = offline_context(test, project, Path(folder))
            yield _Run(test, context, manifests, options).result()


class _Run:
    """One test, and the problems found while reading its manifests."""

    def __init__(self, test: RuleTestCase, context: OfflineContext, own: ManifestSet, options: Options) -> None:
        self._test = test
        self._context = context
        self._own = own
        self._options = options
        self._files: list[ManifestFile] = []
        self._problems: list[Diagnostic] = []

    def result(self) -> RuleTestResult:
        test = self._test
        try:
            found = self._differences()
        except Problems as problems:
            errors = tuple(d for d in problems.found if d.severity is Severity.ERROR)
            return RuleTestResult(test.name, test.file, test.line, *self._unless_expected(errors))
        if test.expect.errors:
            found = (Deviation(("errors",), sorted(test.expect.errors), []), *found)
        return RuleTestResult(test.name, test.file, test.line, found)

    def _unless_expected(self, errors: tuple[Diagnostic, ...]) -> tuple[tuple[Deviation, ...], tuple[Diagnostic, ...]]:
        """Return deviations from the expected error codes, with the errors as an explanation."""
        if self._test.expect.errors is None:
            return (), errors
        expected, actual = sorted(self._test.expect.errors), sorted({error.code for error in errors})
        found = tuple(deviations({"errors": expected}, {"errors": actual}))
        return found, errors if found else ()

    def _differences(self) -> tuple[Deviation, ...]:
        """Plan and compare. Raise `Problems` with every problem of the manifests."""
        rows = [recorded_as(resource) for resource in self._read(self._test.recorded, self._own.defaults)]
        wanted = self._wanted()
        reads = [read for part in self._test.manifests for read in self._reads(part)]
        if self._problems:
            raise Problems(in_order(self._problems))
        declared: Desired = desired(self._own._replace(files=self._files, found=()), reads)
        made: Plan = plan(declared, {row.key: row for row in rows}, self._options, BASIS)
        return differences(self._test.expect, made, declared, wanted)

    def _wanted(self) -> Wanted:
        """Return the expected resources, by kind."""
        expect = self._test.expect
        sections: Mapping[str, Node | None] = {
            "tags": expect.tags,
            "tagCategories": expect.tag_categories,
            "activityTypes": expect.activity_types,
        }
        result: dict[Kind, Sequence[Resource]] = {}
        for name, node in sections.items():
            whole = MappingNode([Scalar(name, node.mark, "")], [node], node.mark) if node is not None else None
            result[SECTIONS[name]] = self._read(whole, NO_DEFAULTS)
        return result

    def _read(self, node: MappingNode | None, defaults: DefaultValues) -> tuple[Resource, ...]:
        """Return the resources of a manifest inside the test."""
        return self._inline(node, defaults).resources if node is not None else ()

    def _inline(self, node: MappingNode, defaults: DefaultValues) -> Reading:
        findings = Collector(self._test.file)
        reading = read_documents(Documents((node,)), findings, defaults, self._context)
        self._problems += (d for d in reading.found if d.severity is Severity.ERROR)
        return reading

    def _reads(self, part: MappingNode | Scalar) -> Iterator[ReadFile]:
        """Yield the manifest inside the test, or those of the project at a path."""
        if isinstance(part, MappingNode):
            yield ReadFile(self._inline(part, self._own.defaults))
            return
        search = find([self._context.root / part.text], self._context.root, self._context, self._context.secret_files)
        self._problems += search.problems
        self._files += search.files
        yield from (read_one(file, self._own.defaults) for file in search.files)
