"""Readings of files → the desired resources, or all problems at once. Reads manifests through `manifest.load`.

A `Reading` has the declarations of one file; here the files are compared with each other. A problem's place is found by
reading its file again, which few resources need.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field, structs

from syncengine.document.diagnostics import MANY, SUGGESTIONS, Collector, in_order, nearest
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, Scalar, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.context import LoadContext, context_of
from syncengine.manifest.declarations import DefaultValues, default_values
from syncengine.manifest.files import SUFFIXES, TEMPLATE_SUFFIXES, ManifestFile, find
from syncengine.manifest.lints import CONTAINED, Shared, contained, mixed_categories, shared
from syncengine.manifest.load import read_all
from syncengine.manifest.read_file import NO_DEFAULTS, default_categories, nodes_of
from syncengine.manifest.reading import CategoryReference, ReadFile
from syncengine.manifest.sources.records import SourceUse
from syncengine.project import git
from syncengine.project.load import levelled
from syncengine.project.model import FILE_NAME, POLICIES, Level, Project
from syncengine.resource import ALTERNATIVES, Key, Kind, Removed, Resource, Row, Source

READ_SUFFIXES = (*SUFFIXES, *TEMPLATE_SUFFIXES)


class Desired(Struct, frozen=True):
    """The resources of all manifests, in the order of the files.

    `diagnostics` are warnings; `files` maps each file's name to the SHA-256 of its content and inputs; `sources` are
    the uses of all sources that were read.
    """

    resources: Mapping[Key, Resource] = field(default_factory=dict)
    removed: Mapping[Key, Removed] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[SourceUse, ...] = ()

    def rows_of_sources(self) -> dict[str, int]:
        """Return the number of rows of each source by its identity."""
        return {use.identity: use.rows for use in self.sources}


CATEGORY_FIELDS = frozenset(ALTERNATIVES)
"""The fields by which a tag refers to its category."""


class ManifestSet(NamedTuple):
    """A project's manifest files, with the project's defaults, its lint levels, and the problems found before reading.

    `wanted` are the desired resources, once the files have been read without errors. All files
    share the `context`.
    """

    files: Sequence[ManifestFile]
    defaults: DefaultValues = NO_DEFAULTS
    levels: Mapping[str, Level] = {}
    found: tuple[Diagnostic, ...] = ()
    wanted: Desired | None = None
    context: LoadContext | None = None

    def read(self, cache: ManifestCache | None = None, digests: Sequence[str] | None = None) -> Desired:
        """Return the desired resources, reading the files unless `wanted` is set. Raise `Problems` with all errors."""
        return self.wanted or desired(self, read_all(self.files, self.defaults, cache, digests))

    def inputs(self) -> set[Path]:
        """Return the files that were read, each under its name and, where that is a link, under its own."""
        named = {Path(path) for path in self.context.read} if self.context else set()
        return {path for path in named | {each.resolve() for each in named} if path.exists()}


def manifest_set(
    project: Project,
    answers: dict[object, Any] | None = None,
    *,
    is_offline: bool = False,
) -> ManifestSet:
    """Return the manifests of a project. `answers` and `is_offline` are those of its `LoadContext`."""
    context = context_of(project, answers, is_offline=is_offline)
    search = find(project.manifests, project.files, context, context.secret_files)
    problems, defaults = [*_left_out(project), *search.problems, *search.unread()], NO_DEFAULTS
    if project.defaults is not None and project.config is not None:
        findings = Collector(project.config.name)
        defaults = default_values(project.defaults, findings)
        problems += findings.found
    return ManifestSet(search.files, defaults, project.policy.diagnostics, tuple(problems), context=context)


def _left_out(project: Project) -> Iterator[Diagnostic]:
    """Yield an error if a sparse checkout leaves out manifests or rules, which would count as removed."""
    places = (*project.manifests, *project.policy_paths, project.files / POLICIES, project.files / FILE_NAME)
    names = [name for name in git.left_out(project.files, places) if name.lower().endswith(READ_SUFFIXES)]
    if names:
        more = f", nor {len(names) - 1:,} more" if len(names) > 1 else ""
        findings = Collector(os.fsencode(names[0]).decode("utf-8", "replace"))
        message = f"this sparse checkout does not have the file{more}: bring all with `git sparse-checkout disable`"
        findings.at("left-out", None, None, f"{message}, or what is declared there would count as removed")
        yield from findings.found


def load(project: Project) -> Desired:
    """Return the desired resources of a project. Raise `Problems` with all errors in its manifests."""
    return manifest_set(project).read()


def desired(manifests: ManifestSet, reads: Iterable[ReadFile]) -> Desired:
    """Return the declarations of all files together. Raise `Problems` with all errors at once."""
    gathering = _Gathering(manifests)
    for read in reads:
        gathering.take(read)
    gathering.finish()
    warnings = levelled(in_order([*manifests.found, *gathering.diagnostics]), manifests.levels)
    if any(d.severity is Severity.ERROR for d in warnings):
        raise Problems(warnings)
    return Desired(gathering.resources, gathering.removed, tuple(warnings), gathering.digests, tuple(gathering.sources))


class _Places:
    """The places of parts of resources, found by reading files again. The nodes of the last file are cached."""

    def __init__(self, files: Iterable[ManifestFile]) -> None:
        self.files = {file.name: file for file in files}
        self.file = ""
        self.nodes: dict[Key | int, MappingNode] = {}
        self.values: Node | None = None
        self.items: dict[str, Scalar] = {}

    def node(self, key: Key, file: str) -> MappingNode | None:
        """Return the node that declares a resource, or `None` when its file no longer declares it or is a template."""
        if file not in self.files or self.files[file].is_template:
            return None
        if file != self.file:
            data = self.files[file].content(Collector(file))
            self.file, self.nodes = file, nodes_of(data or b"", file)
        return self.nodes.get(key)

    def template(self, source: Source) -> MappingNode | None:
        """Return the node in a `generate` block that a resource was generated from, or `None`."""
        self.node(Key(Kind.TAG, ""), source.file)
        return self.nodes.get(source.line) if source.data is not None and self.file == source.file else None

    def of_former(self, key: Key, source: Source, name: str) -> tuple[int, int]:
        """Return the place of a former name, else of the whole list, else of the resource."""
        node = self.node(key, source.file)
        scalar = self._items(node, "previously").get(name) if node is not None else None
        node = node or self.template(source)
        return (source.line, 1) if node is None else place(scalar or node.get("previously") or node)

    def of_keyword(self, key: Key, source: Source, word: str | None) -> tuple[int, int]:
        """Return the place of a listed keyword, else of the tag's name, else of the resource."""
        node = self.node(key, source.file) or self.template(source)
        if node is None:
            return source.line, 1
        scalar = self._items(node, "keywords").get(word) if word is not None else None
        return place(scalar or node.get("name") or node)

    def _items(self, node: MappingNode, part: str) -> Mapping[str, Scalar]:
        """Return the first scalar of each text in a list. The result for the last list is cached."""
        if (values := node.get(part)) is not self.values:
            items = values.items if isinstance(values, SequenceNode) else []
            self.values = values
            self.items = {item.text: item for item in reversed(items) if isinstance(item, Scalar)}
        return self.items


class _Gathering:
    """The declarations of all files so far. `keys` includes unsound resources, so that one mistake is reported once."""

    def __init__(self, manifests: ManifestSet) -> None:
        self.project_defaults = manifests.defaults
        self.places = _Places(manifests.files)
        self.resources: dict[Key, Resource] = {}
        self.removed: dict[Key, Removed] = {}
        self.diagnostics: list[Diagnostic] = []
        self.keys: dict[Key, Source] = {}
        self.renamed: dict[Key, tuple[Key, Source]] = {}
        self.levels = manifests.levels
        self.category_names: set[str] = set()
        self.members: list[Resource] = []
        self.default_categories: list[CategoryReference] = []
        self.digests: dict[str, str] = {}
        self.unsound: list[Resource] = []
        self.sources: list[SourceUse] = []
        self.whole = True

    def take(self, read: ReadFile) -> None:
        """Add the declarations of one more file."""
        reading = read.reading
        self.diagnostics += reading.found
        self.whole = self.whole and reading.whole
        keys, resources = self.keys, self.resources
        for resource in reading.resources:
            if keys.setdefault(resource.key, resource.source) is not resource.source:
                self._repeated(resource, keys[resource.key])
                continue
            if resource.previously:
                self._renamed(resource)
            if resource.sound:
                resources[resource.key] = resource
            else:
                self.unsound.append(resource)
            if resource.key.kind is not Kind.TAG or not CATEGORY_FIELDS.isdisjoint(resource.body.fields):
                self._take_category(resource)
        for line in reading.removed:
            self._leaves(line)
        self.sources += reading.sources
        self.digests[reading.file] = read.sha256
        self.default_categories += reading.default_categories

    def _take_category(self, resource: Resource) -> None:
        """Add the name of a category, or the reference of a tag to one."""
        if resource.key.kind is Kind.CATEGORY:
            self.category_names.add(resource.key.name)
        elif resource.key.kind is Kind.TAG:
            self.members.append(resource)

    def _repeated(self, resource: Resource, first: Source) -> None:
        key, source = resource.key, resource.source
        self._error("duplicate-resource", source.file, (source.line, resource.column), _twice(key, source, first), key)
        if source.data is not None:  # which the message names already
            self.diagnostics[-1] = structs.replace(self.diagnostics[-1], data=source.data)

    def _renamed(self, resource: Resource) -> None:
        key, source = resource.key, resource.source
        for name in resource.previously:
            former = Key(key.kind, name)
            if former == key:
                at = self.places.of_former(key, source, name)
                message = f"{key} cannot be its own former name: remove it from `previously`"
                self._error("previously-own-name", source.file, at, message, key, source.data)
                continue
            other, there = self.renamed.setdefault(former, (key, source))
            if other != key:
                at = self.places.of_former(key, source, name)
                message = f"{former} is already a former name of {other} ({there})"
                self._error("previously-claimed", source.file, at, message, key, source.data)

    def _leaves(self, line: Removed) -> None:
        if (first := self.removed.setdefault(line.key, line)) is not line:
            message = f"{line.key} is already in `removed` at {first.source}"
            self._error("duplicate-resource", line.source.file, (line.source.line, line.column), message, line.key)

    def finish(self) -> None:
        """Report problems that involve several files, once every file has been added."""
        for former, (key, source) in self.renamed.items():
            if (declared := self.keys.get(former)) is not None:
                at = self.places.of_former(key, source, former.name)
                message = f"{former} is still declared at {declared}, so it cannot be a former name"
                self._error("previously-declared", source.file, at, message, key, source.data)
        for key, line in self.removed.items():
            if (declared := self.keys.get(key)) is not None:
                message = (
                    f"{key} is in `removed`, but still declared at {declared.file}:{declared.line}:"
                    " delete one of the two"
                )
                at = (line.source.line, line.column)
                self._error("removed-and-declared", line.source.file, at, message, key, declared.data)
        if self.whole:
            self._unknown_categories()
        tags = [resource for resource in self.resources.values() if resource.key.kind is Kind.TAG]
        overlaps = contained(tags) if self.levels.get(CONTAINED, Level.OFF) is not Level.OFF else ()
        for each in (*shared(tags), *mixed_categories(tags), *overlaps):
            self._warn_shared(each)

    def _unknown_categories(self) -> None:
        """Report references to categories that no manifest declares."""
        declared = self.category_names
        unknown = list(self._references(declared))
        names = list(dict.fromkeys(r.category for r in unknown))[:SUGGESTIONS] if len(declared) <= MANY else []
        near = {name: nearest(name, tuple(declared)) for name in names}
        for reference in unknown:
            hint = f"; did you mean `{near[reference.category]}`?" if near.get(reference.category) else ""
            message = f"no manifest declares {Key(Kind.CATEGORY, reference.category)}{hint}"
            at = (reference.line, reference.column)
            self._error("unknown-category", reference.file, at, message, reference.key, reference.data)

    def _references(self, declared: set[str]) -> Iterator[CategoryReference]:
        """Yield references to undeclared categories, in tags and in the defaults of files and of the project."""
        for resource in sorted(self.members, key=lambda resource: not resource.sound):
            category = resource.body.fields.get("category")
            if not category or category in declared:
                continue
            source = resource.source
            node = self.places.node(resource.key, source.file) or self.places.template(source)
            if node is None:
                yield CategoryReference(str(category), source.file, source.line, 1, resource.key, source.data)
            elif (value := node.get("category")) is not None:
                yield CategoryReference(str(category), source.file, *place(value), resource.key, source.data)
        for d in (*self.default_categories, *default_categories(self.project_defaults)):
            if d.category not in declared:
                yield d

    def _warn_shared(self, each: Shared) -> None:
        source = each.source
        line, column = self.places.of_keyword(each.key, source, each.word)
        message = each.message if source.data is None else f"{each.key}: {each.message}"
        Collector(source.file, self.diagnostics).at(
            each.code, line, column, message, severity=Severity.WARNING, address=str(each.key), data=source.data
        )

    def _error(
        self, code: str, file: str, at: tuple[int, int], message: str, key: Key | None, data: Row | None = None
    ) -> None:
        Collector(file, self.diagnostics).at(code, *at, message, address=str(key) if key else None, data=data)


def _twice(key: Key, source: Source, first: Source) -> str:
    """Return the message about a resource that is declared again at `source`."""
    there, row, other = f"{first.file}:{first.line}", source.data, first.data
    if row is None:
        return f"{key} is already declared at {first}"
    if other is None:
        return f"row {row.row} of {row.file} makes {key}, which is already declared at {there}"
    if row == other:
        return f"row {row.row} of {row.file} makes {key}, as it already does at {there}"
    if row.file != other.file:
        return f"row {row.row} of {row.file} makes {key}, as does row {other.row} of {other.file} at {there}"
    if (source.file, source.line) != (first.file, first.line):
        return f"rows {other.row} and {row.row} of {row.file} both make {key}, the first at {there}"
    cure = "correct one, or use only the first row of each with `distinct: COLUMN` under `forEach`"
    return f"rows {other.row} and {row.row} of {row.file} both make {key}: {cure}"
