"""documents → resources, or every problem at once. Reads the manifests through `manifest.files`, else pure.

Files are read one after the other and their nodes dropped; what is kept is the resources and, until a category is
met, the places that refer to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from syncengine.collection import no_collection
from syncengine.document.findings import INVALID, MANY, Findings, in_order, nearest
from syncengine.document.nodes import Mapping as MappingNode
from syncengine.document.nodes import Scalar, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.errors import Diagnostic, Problems, Severity
from syncengine.manifest.declarations import Declarations, Declared, DefaultValues, declarations, default_values, merged
from syncengine.manifest.files import ManifestFile, find
from syncengine.manifest.lints import Words, cut_texts, levelled
from syncengine.manifest.schema import IDENTITIES, NEVER_FIELDS, RESOURCE_TABLES, TITLES
from syncengine.project_file import Level
from syncengine.resource import Body, Key, Kind, Removed, Resource, Source
from syncengine.settings import Project

NO_DEFAULTS = DefaultValues()
SUGGESTIONS = 25
"""Unknown categories for which a similar one is looked for; each costs a comparison with all."""


@dataclass(frozen=True, slots=True)
class Desired:
    """All that the manifests ask for, in the order of the files.

    `diagnostics` are warnings; `files` maps each file's name to the SHA-256 of its content.
    """

    resources: Mapping[Key, Resource] = field(default_factory=dict)
    removed: Mapping[Key, Removed] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def load(project: Project) -> Desired:
    """The desired resources of a project; Problems with everything that is wrong with its manifests."""
    found = find(project.manifests, project.root)
    problems = list(found.problems)
    defaults = NO_DEFAULTS
    if project.defaults is not None and project.config is not None:
        findings = Findings(project.config.name)
        defaults = default_values(project.defaults, findings)
        problems += findings.found
    return desired(found.files, defaults=defaults, levels=project.policy.diagnostics, before=problems)


def desired(
    files: Sequence[ManifestFile],
    *,
    defaults: DefaultValues = NO_DEFAULTS,
    levels: Mapping[str, Level] | None = None,
    before: Sequence[Diagnostic] = (),
) -> Desired:
    """What the files declare over the project's `defaults`. `before` are findings that belong to the same refusal."""
    gathering = _Gathering(defaults)
    with no_collection():
        for file in files:
            gathering.file(file)
        gathering.finish()
    found = levelled(in_order([*before, *gathering.found]), levels or {})
    if any(d.severity is Severity.ERROR for d in found):
        raise Problems(found)
    return Desired(gathering.resources, gathering.removed, tuple(found), gathering.digests)


class _Reference(NamedTuple):
    """A category that somebody refers to and that has not been met yet."""

    category: str
    file: str
    line: int
    column: int
    key: Key | None


class _Gathering:
    """Everything declared so far. `keys` has unsound resources too, so that one mistake is reported once."""

    def __init__(self, defaults: DefaultValues) -> None:
        self.project_defaults = defaults
        self.resources: dict[Key, Resource] = {}
        self.removed: dict[Key, Removed] = {}
        self.digests: dict[str, str] = {}
        self.found: list[Diagnostic] = []
        self.keys: dict[Key, Source] = {}
        self.former: dict[Key, tuple[Source, int, int, Key]] = {}
        self.leaving: dict[Key, tuple[str, int, int]] = {}
        self.references: list[_Reference] = []
        self.words = Words()
        self.whole = True

    def file(self, file: ManifestFile) -> None:
        findings = Findings(file.name)
        loaded = file.load(findings)
        declared = declarations(loaded.documents, findings)
        cut_texts(loaded.documents.cut, findings)
        self.digests[file.name] = loaded.sha256
        self.whole = self.whole and declared.whole
        self._declarations(declared)
        self.found += findings.found

    def _declarations(self, declared: Declarations) -> None:
        own, project = declared.defaults.values, self.project_defaults.values
        defaults = {kind: merged(project.get(kind, {}), own.get(kind, {})) for kind in Kind}
        for resource in declared.resources:
            self._resource(resource, defaults[resource.kind], declared.findings)
        self._removed_lines(declared)
        for node in declared.defaults.nodes.get(Kind.TAG, ()):
            self._default_refers(node, declared.file)

    def _resource(self, declared: Declared, defaults: Mapping[str, Any], findings: Findings) -> None:
        key, node = declared.key, declared.node
        values = merged(defaults, declared.values) if defaults else declared.values
        absent = _BESIDES_IDENTITY[declared.kind].difference(values)
        if absent:
            RESOURCE_TABLES[declared.kind].missing({*values, IDENTITIES[declared.kind]}, node, findings)
        if key is None:
            return
        source = Source(findings.file, place(node)[0])
        if (first := self.keys.setdefault(key, source)) is not source:
            self._repeated(key, first, node, findings)
            return
        if key.kind is Kind.TAG and "category" in declared.values:
            self._refers(declared.values["category"], node, findings.file, key)
        if "previously" in declared.values:
            self._renamed(key, source, node, findings)
        if declared.sound and not absent:
            self._sound(key, values, source, node, findings)

    def _sound(
        self, key: Key, values: Mapping[str, Any], source: Source, node: MappingNode, findings: Findings
    ) -> None:
        body = _BODIES[key.kind](key, values)
        self.resources[key] = Resource(key, body, source, values.get("protect", False), values.get("previously", ()))
        if key.kind is Kind.TAG:
            self.words.tag(key, source, body.keywords, node, findings)

    def _repeated(self, key: Key, first: Source, node: MappingNode, findings: Findings) -> None:
        findings.error("duplicate-resource", node, f"{key} is already declared at {first}", str(key))

    def _refers(self, category: Any, node: MappingNode, file: str, key: Key | None) -> None:
        if not category or category is INVALID or Key(Kind.CATEGORY, category) in self.keys:
            return
        line, column = place(node.get("category") or node)
        self.references.append(_Reference(category, file, line, column, key))

    def _default_refers(self, node: MappingNode, file: str) -> None:
        value = node.get("category")
        if isinstance(value, Scalar) and not value.is_null:
            self._refers(value.text, node, file, None)

    def _renamed(self, key: Key, source: Source, node: MappingNode, findings: Findings) -> None:
        listed = node.get("previously")
        for item in listed.items if isinstance(listed, SequenceNode) else ():
            if not isinstance(item, Scalar):
                continue
            former = Key(key.kind, item.text)
            line, column = place(item)
            if former == key:
                findings.error("previously-own-name", item, f"{key} cannot have been renamed from itself", str(key))
                continue
            other_source, *_, other = self.former.setdefault(former, (source, line, column, key))
            if other != key:
                message = f"{former} is already a former name of {other} ({other_source})"
                findings.error("previously-claimed", item, message, str(key))

    def _removed_lines(self, declared: Declarations) -> None:
        for line in declared.removed:
            self.leaving.setdefault(line.key, (declared.file, *place(line.node)))
            source = Source(declared.file, place(line.node)[0])
            removed = Removed(line.key, line.how, source, line.reason)
            if (first := self.removed.setdefault(line.key, removed)) is not removed:
                message = f"{line.key} already leaves at {first.source}"
                declared.findings.error("duplicate-resource", line.node, message, str(line.key))

    def finish(self) -> None:
        """What can be judged only when every file has been read."""
        for former, (source, line, column, key) in self.former.items():
            if (declared := self.keys.get(former)) is not None:
                message = f"{former} is still declared at {declared}, so it cannot be a former name"
                self._late("previously-declared", source.file, line, column, message, key)
        for key in self.removed:
            if (declared := self.keys.get(key)) is not None:
                message = f"{key} is in `removed`, and declared at {declared}"
                self._late("removed-and-declared", *self.leaving[key], message, key)
        for node in self.project_defaults.nodes.get(Kind.TAG, ()):
            self._default_refers(node, self.project_defaults.file)
        if self.whole:
            self._unknown_categories()

    def _unknown_categories(self) -> None:
        """Not when a file could not be read: the category might have been in it."""
        known = tuple(key.name for key in self.keys if key.kind is Kind.CATEGORY)
        unknown = [r for r in self.references if Key(Kind.CATEGORY, r.category) not in self.keys]
        names = list(dict.fromkeys(r.category for r in unknown))[:SUGGESTIONS] if len(known) <= MANY else []
        near = {name: nearest(name, known) for name in names}
        for r in unknown:
            hint = f"; did you mean `{near[r.category]}`?" if near.get(r.category) else ""
            findings = Findings(r.file, self.found)
            message = f"no manifest declares {Key(Kind.CATEGORY, r.category)}{hint}"
            findings.at("unknown-category", r.line, r.column, message, address=str(r.key) if r.key else None)

    def _late(self, code: str, file: str, line: int, column: int, message: str, key: Key) -> None:
        Findings(file, self.found).at(code, line, column, message, address=str(key))


def _tag_body(key: Key, values: Mapping[str, Any]) -> Body:
    """engine.md 2.3: effective keywords; 2.4: whether the name is excluded is always explicit."""
    name, excluded = key.name, values.get("excludeTagNameKeyword", False)
    keywords: tuple[str, ...] = values.get("keywords", ())
    if not excluded and name not in keywords:
        keywords = (*keywords, name)
    fields = {n: v for n, v in values.items() if n not in _NOT_TAG_FIELDS}
    fields["excludeTagNameKeyword"] = excluded
    return Body(fields, keywords, values.get("metadata", {}))


def _plain_body(key: Key, values: Mapping[str, Any]) -> Body:
    not_fields = {IDENTITIES[key.kind], "protect", "previously"}
    return Body({n: v for n, v in values.items() if n not in not_fields})


_BESIDES_IDENTITY = {kind: table.required - {IDENTITIES[kind]} for kind, table in RESOURCE_TABLES.items()}
_NOT_TAG_FIELDS = NEVER_FIELDS | {IDENTITIES[Kind.TAG]}
_BODIES = {Kind.TAG: _tag_body, Kind.CATEGORY: _plain_body, Kind.ACTIVITY_TYPE: _plain_body}
assert _BODIES.keys() == TITLES.keys() == RESOURCE_TABLES.keys()
