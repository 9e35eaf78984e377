"""Manifest files → the desired resources, or all problems at once. Reads files, or their readings from the cache.

A `Reading` has the declarations of one file; here the files are compared with each other. A problem's place is found by
reading its file again, which few resources need.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field, structs

from syncengine.content import sha256_of, sha256_of_values
from syncengine.document.diagnostics import MANY, SUGGESTIONS, Collector, in_order, nearest
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Node, items, place
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.cache import ManifestCache
from syncengine.manifest.context import Input, LoadContext, context_of
from syncengine.manifest.files import GENERATES, SUFFIXES, TEMPLATE_SUFFIXES, ManifestFile, find
from syncengine.manifest.lints import CONTAINED, contained, mixed_categories, shared
from syncengine.manifest.read_file import NO_DEFAULTS, default_categories, nodes_of, read_manifest
from syncengine.manifest.resources import CategoryReference, DefaultValues, ReadFile, Reading, default_values
from syncengine.manifest.sources.records import SourceUse
from syncengine.project import git
from syncengine.project.load import levelled
from syncengine.project.model import FILE_NAME, POLICIES, Level, Project
from syncengine.resource import ALTERNATIVES, Key, Kind, Removed, Resource, Source

KEPT_AT_ONCE = 8
"""The number of readings that wait in memory to be stored in the cache together."""
CATEGORY_FIELDS = frozenset(ALTERNATIVES)
"""The fields by which a tag refers to its category."""


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
    problems, defaults = [*search.problems, *search.unread()], NO_DEFAULTS
    # What a sparse checkout leaves out would count as removed, or as a rule that allows everything.
    places = (*project.manifests, *project.policy_paths, project.files / POLICIES, project.files / FILE_NAME)
    suffixes = SUFFIXES + TEMPLATE_SUFFIXES
    if names := [name for name in git.left_out(project.files, places) if name.lower().endswith(suffixes)]:
        more = f", nor {len(names) - 1:,} more" if len(names) > 1 else ""
        message = f"this sparse checkout does not have the file{more}: bring all with `git sparse-checkout disable`"
        Collector(os.fsencode(names[0]).decode("utf-8", "replace"), problems).at(
            "left-out", None, None, f"{message}, or what is declared there would count as removed"
        )
    if project.defaults is not None and project.config is not None:
        defaults = default_values(project.defaults, Collector(project.config.name, problems))
    return ManifestSet(search.files, defaults, project.policy.diagnostics, tuple(problems), context=context)


def load(project: Project) -> Desired:
    """Return the desired resources of a project. Raise `Problems` with all errors in its manifests."""
    return manifest_set(project).read()


# --- files → their readings


def digests_of(files: Sequence[ManifestFile], cache: ManifestCache) -> list[str] | None:
    """Return the digest of each file with all its inputs, empty if unreadable, or `None` when the cache is empty.

    A file whose inputs are unknown or have changed has the digest of its bytes, under which nothing is cached.
    """
    digests = cache.digests()
    return [_known_digest(file, cache, digests) for file in files] if digests else None


def _known_digest(file: ManifestFile, cache: ManifestCache, digests: Container[str]) -> str:
    sha256, context = file.sha256(), file.context
    if context is None:
        return sha256
    if sha256:  # or else reading it says why
        context.note(file.path, sha256)
    if cache.digest(file.name, sha256) in digests:
        return sha256  # it has no other inputs
    inputs = cache.inputs(file.name, sha256)
    if inputs is None:
        return sha256
    from syncengine.manifest.sources.read import are_unchanged  # sources cost more than most manifests

    is_same = are_unchanged(context, (context.root / file.name).parent, inputs)
    return _with_inputs(sha256, context, inputs) if is_same else sha256


def _with_inputs(sha256: str, context: LoadContext, inputs: Sequence[Input]) -> str:
    """Return the digest of a file that generates, of all that its resources depend on."""
    return sha256_of_values((sha256, context.variables, context.environ, inputs))


def read_all(
    files: Sequence[ManifestFile],
    defaults: DefaultValues = NO_DEFAULTS,
    cache: ManifestCache | None = None,
    digests: Sequence[str] | None = None,
) -> Iterator[ReadFile]:
    """Yield a `ReadFile` for each file, and store new ones in the cache. `digests` are those of the files, if known."""
    if cache is None:
        yield from (read_one(file, defaults) for file in files)
        return
    hashed = digests or digests_of(files, cache) or [""] * len(files)
    entries = cache.entries(files, hashed).values()
    new: list[ReadFile] = []
    for file, entry, sha256 in zip(files, entries, hashed, strict=True):
        read = cache.get(entry, sha256)
        if read is None:
            read = read_one(file, defaults)
            new.append(read)
        if len(new) >= KEPT_AT_ONCE:
            cache.keep(new)
            new = []
        yield read
    cache.keep(new)


def read_one(file: ManifestFile, defaults: DefaultValues) -> ReadFile:
    """Read one file."""
    findings, context = Collector(file.name), file.context
    data = file.content(findings)
    if data is None:
        return ReadFile(Reading(file.name, found=tuple(findings.found), whole=False))
    sha256 = sha256_of(data)
    if context is not None:
        context.note(file.path, sha256)
        context = replace(context, inputs={})
    if file.is_template:
        from syncengine.manifest.read_template import read_template  # Jinja2 costs more than most manifests

        read = ReadFile(read_template(data, file.name, defaults, context or LoadContext()))
    else:
        read = ReadFile(read_manifest(data, file.name, defaults, context))
    # A word in YAML may be written with escapes, so what was read counts, too.
    if context is None or not (file.is_template or GENERATES in data or context.inputs):
        return read._replace(sha256=sha256)
    if context.allowance.is_used_up:
        return read  # without a digest it is not cached: its templates may have more time in another run
    inputs = tuple(context.inputs)
    if len({each[:2] for each in inputs}) < len(inputs):
        return read  # an input was replaced meanwhile, and what was read is neither of the old one nor of the new one
    return read._replace(sha256=_with_inputs(sha256, context, inputs), inputs=inputs, content=sha256)


# --- readings → desired resources


def desired(manifests: ManifestSet, reads: Iterable[ReadFile]) -> Desired:
    """Return the declarations of all files together. Raise `Problems` with all errors at once."""
    all_of_it = _AllFiles(manifests)
    for read in reads:
        all_of_it.take(read)
    all_of_it.compare()
    warnings = levelled(in_order([*manifests.found, *all_of_it.found]), manifests.levels)
    if any(d.severity is Severity.ERROR for d in warnings):
        raise Problems(warnings)
    return Desired(all_of_it.resources, all_of_it.removed, tuple(warnings), all_of_it.digests, tuple(all_of_it.sources))


class _AllFiles:
    """The declarations of all files so far. `keys` includes unsound resources, so that one mistake is reported once."""

    def __init__(self, manifests: ManifestSet) -> None:
        self.manifests = manifests
        self.files = {file.name: file for file in manifests.files}
        self.resources: dict[Key, Resource] = {}
        self.removed: dict[Key, Removed] = {}
        self.found: list[Diagnostic] = []
        self.digests: dict[str, str] = {}
        self.sources: list[SourceUse] = []
        self.keys: dict[Key, Source] = {}
        self.formers: dict[Key, tuple[Key, Source]] = {}
        self.categories: set[str] = set()
        self.members: list[Resource] = []
        self.default_categories: list[CategoryReference] = []
        self.whole = True
        self.nodes: tuple[str, dict[Key | int, MappingNode]] = "", {}
        """The nodes of the file in which a place was looked for last, since the next problem is mostly in it, too."""
        self.items: tuple[Node | None, dict[str | None, Node]] = None, {}
        """The first item of each text in the last list, since a long list may have a problem in every item."""

    def take(self, read: ReadFile) -> None:
        """Add the declarations of one more file."""
        reading, keys = read.reading, self.keys
        self.found += reading.found
        self.whole = self.whole and reading.whole
        for resource in reading.resources:
            key, source = resource.key, resource.source
            if (first := keys.setdefault(key, source)) is not source:
                at = (source.line, resource.column)
                self._error("duplicate-resource", source, at, _twice(key, source, first), key)
                continue
            for name in resource.previously:
                former = Key(key.kind, name)
                other, there = self.formers.setdefault(former, (key, source)) if former != key else (key, source)
                if former == key:
                    code, message = (
                        "previously-own-name",
                        f"{key} cannot be its own former name: remove it from `previously`",
                    )
                elif other != key:
                    code, message = "previously-claimed", f"{former} is already a former name of {other} ({there})"
                else:
                    continue
                self._error(code, source, self._place(key, source, "previously", name), message, key)
            if resource.sound:
                self.resources[key] = resource
            if key.kind is Kind.CATEGORY:
                self.categories.add(key.name)
            elif key.kind is Kind.TAG and not CATEGORY_FIELDS.isdisjoint(resource.body.fields):
                self.members.append(resource)
        for line in reading.removed:
            if (known := self.removed.setdefault(line.key, line)) is not line:
                message = f"{line.key} is already in `removed` at {known.source}"
                self._error("duplicate-resource", line.source, (line.source.line, line.column), message, line.key)
        self.sources += reading.sources
        self.digests[reading.file] = read.sha256
        self.default_categories += reading.default_categories

    def compare(self) -> None:
        """Report problems that involve several files, once every file has been added."""
        for former, (key, source) in self.formers.items():
            if (declared := self.keys.get(former)) is not None:
                at = self._place(key, source, "previously", former.name)
                message = f"{former} is still declared at {declared}, so it cannot be a former name"
                self._error("previously-declared", source, at, message, key)
        for key, removed in self.removed.items():
            if (declared := self.keys.get(key)) is not None:
                there = f"{declared.file}:{declared.line}"
                message = f"{key} is in `removed`, but still declared at {there}: delete one of the two"
                at = (removed.source.line, removed.column)
                self._error("removed-and-declared", removed.source._replace(data=declared.data), at, message, key)
        if self.whole:  # a problem may hide a category
            self._report_unknown_categories()
        tags = [resource for resource in self.resources.values() if resource.key.kind is Kind.TAG]
        is_asked_for = self.manifests.levels.get(CONTAINED, Level.OFF) is not Level.OFF
        for each in (*shared(tags), *mixed_categories(tags), *(contained(tags) if is_asked_for else ())):
            line, column = self._place(each.key, each.source, "keywords", each.word, instead="name")
            message = each.message if each.source.data is None else f"{each.key}: {each.message}"
            self._error(each.code, each.source, (line, column), message, each.key, Severity.WARNING)

    def _report_unknown_categories(self) -> None:
        """Report references to undeclared categories, in tags and in the defaults of files and of the project."""
        unknown: list[CategoryReference] = []
        for resource in sorted(self.members, key=lambda resource: not resource.sound):
            category, source = resource.body.fields.get("category"), resource.source
            if not category or category in self.categories:
                continue
            node = self._node(resource.key, source)
            value = None if node is None else node.get("category")
            if node is None or value is not None:  # else it is of the defaults
                line, column = (source.line, 1) if value is None else place(value)
                unknown.append(CategoryReference(str(category), source.file, line, column, resource.key, source.data))
        defaults = (*self.default_categories, *default_categories(self.manifests.defaults))
        unknown += [each for each in defaults if each.category not in self.categories]
        names = list(dict.fromkeys(r.category for r in unknown))[:SUGGESTIONS] if len(self.categories) <= MANY else []
        near = {name: nearest(name, tuple(self.categories)) for name in names}
        for each in unknown:
            hint = f"; did you mean `{near[each.category]}`?" if near.get(each.category) else ""
            message = f"no manifest declares {Key(Kind.CATEGORY, each.category)}{hint}"
            source = Source(each.file, each.line, each.data)
            self._error("unknown-category", source, (each.line, each.column), message, each.key)

    def _node(self, key: Key, source: Source) -> MappingNode | None:
        """Return the node that a resource was declared by or generated from, or `None` when its file is a template."""
        file = self.files.get(source.file)
        if file is None or file.is_template:
            return None
        if file.name != self.nodes[0]:
            self.nodes = file.name, nodes_of(file.content(Collector(file.name)) or b"", file.name)
        nodes = self.nodes[1]
        return nodes.get(key) or (None if source.data is None else nodes.get(source.line))

    def _place(self, key: Key, source: Source, part: str, text: str | None, instead: str = "") -> tuple[int, int]:
        """Return the place of a text in a list of a resource, else of the list or the field `instead`, or its own."""
        node = self._node(key, source)
        if node is None:
            return source.line, 1
        values = node.get(part)
        if values is not self.items[0]:
            self.items = values, {item.text: item for item in reversed(items(values))}
        return place((text and self.items[1].get(text)) or node.get(instead or part) or node)

    def _error(
        self,
        code: str,
        source: Source,
        at: tuple[int, int],
        message: str,
        key: Key | None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        names_rows = code == "duplicate-resource"
        Collector(source.file, self.found).at(
            code,
            *at,
            message,
            severity=severity,
            address=str(key) if key else None,
            data=None if names_rows else source.data,
        )
        if names_rows:
            self.found[-1] = structs.replace(self.found[-1], data=source.data)


def _twice(key: Key, source: Source, first: Source) -> str:
    """Return the message about a resource that is declared again at `source`."""
    there, row, other = f"{first.file}:{first.line}", source.data, first.data
    if row is None and source == first:
        return f"{key} is declared twice on this line, or here and again by an alias"
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
