"""Read the project file into the settings of one environment, and report the problems of every environment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Mapping as AnyMapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from syncengine.content import sha256_of
from syncengine.document.diagnostics import Collector, suggestion
from syncengine.document.nodes import Mapping, Node, RefusedNode, Scalar, at, described, items, place
from syncengine.document.nodes import Sequence as SequenceNode
from syncengine.document.reader import MAX_BYTES, read
from syncengine.document.validation import Model, display, validated
from syncengine.errors import Problems
from syncengine.project.delivery_schema import FILES, SINKS, ServeSection, check_addresses, check_names
from syncengine.project.references import ALWAYS, REFERENCE_KEYS, Reference, SecretPlaces
from syncengine.project.schema import Overlay, ProjectFile, check_allowed
from syncengine.project.types import Texts


class EnvironmentSettings(NamedTuple):
    """The settings of one environment, the locations of all secrets, and the line of each setting."""

    here: Overlay
    secrets: SecretPlaces = SecretPlaces()
    lines: AnyMapping[str, int] = {}


REFERRING = ("service", "state", "sources", "postedTime")
"""Sections that may contain references; a `{file: x}` elsewhere (metadata, variables) is plain data."""
UNUSED = {"upsertTag": "single tags also go through `upsertTags`, whose answer names each rejected tag"}
"""Operations of the service that `syncengine` never calls, each with the reason."""


def settings_of(
    path: Path | None,
    chosen: str | None,
    findings: Collector,
    operations: Collection[str],
    lints: Collection[str],
    digests: dict[str, str],
) -> EnvironmentSettings:
    """Return the settings of the `chosen` environment, or empty settings as soon as there is an error.

    The digest of what was read is added to `digests`, by path.
    """
    root = _root(path, findings, digests) if path else None
    overlays = _overlays(root)
    if chosen is not None and chosen not in overlays:
        hint = f"; there are {', '.join(overlays)}" if overlays else "; the project file has no `environments:`"
        findings.at("unknown-environment", None, None, f"there is no environment `{display(chosen)}`{hint}")
    if root is None or findings.found:
        return EnvironmentSettings(Overlay())
    validated(ProjectFile, root, findings)
    for part in (root, *overlays.values()):
        _check_names(part, ("service", "endpoints"), "operation", operations, findings)
        _check_names(part, ("policy", "diagnostics"), "warning", lints, findings)
    secrets = _secret_places((root, *overlays.values()))
    check_allowed((root, *overlays.values()), secrets.names, findings)
    if findings.found:
        return EnvironmentSettings(Overlay())
    merged = merge(root, overlays[chosen]) if chosen else root
    settings = validated(ProjectFile, merged, findings)
    assert isinstance(merged, Mapping)
    assert settings is not None
    node = merged.get("postedTime")
    if settings.posted_time is not None and isinstance(node, Mapping):
        check_names(settings.sources or {}, settings.posted_time, node, findings)
        check_addresses(settings.posted_time, settings.serve or ServeSection(), node, findings)
    return EnvironmentSettings(settings, secrets, dict(_lines_below(merged)))


def _lines_below(node: Node, name: str = "") -> Iterator[tuple[str, int]]:
    """Yield each setting below a node with its line, as a dotted name: `policy.maxDeletes.tags`, `quarantine.0`."""
    if isinstance(node, Mapping):
        for key, value in zip(node.keys, node.values, strict=True):
            yield f"{name}{key.text}", place(key)[0]
            yield from _lines_below(value, f"{name}{key.text}.")
    elif isinstance(node, SequenceNode):
        for number, item in reversed([*enumerate(node.items)]):  # the first of equal texts has the line
            yield f"{name}{number if item.text is None else item.text}", place(item)[0]


def environment_names(path: Path) -> list[str]:
    """Return the names under `environments:`, even when the rest of the file is invalid."""
    return list(_overlays(_root(path, Collector(path.name), {})))


def _root(path: Path, findings: Collector, digests: dict[str, str]) -> Mapping | None:
    with suppress(OSError):  # which opening it raises again
        if path.exists() and not (path.is_file() or path.is_dir()):
            findings.at("unreadable-file", None, None, "the project file is not a regular file")
            return None
    roots = _documents(path, "the project file", findings, digests)
    if not roots and not findings.found:
        findings.at("missing-field", 1, 1, "the project file needs `version: 1`")
    for extra in roots[1:]:
        findings.error("wrong-type", extra, "the project file must contain a single YAML document")
    root = roots[0] if roots else None
    if root is None or isinstance(root, Mapping):
        return root
    findings.error("wrong-type", root, f"the project file must be a mapping of settings, not {described(root)}")
    return None


def _documents(path: Path, what: str, findings: Collector, digests: dict[str, str]) -> Sequence[Node]:
    """Return the documents of a file, which messages call `what`. Its digest is added to `digests`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        findings.at("unreadable-file", None, None, f"{what} cannot be read: {error.strerror or error}")
        return ()
    digests[str(path)] = sha256_of(data)
    return read(data, findings).roots


def _overlays(root: Mapping | None) -> dict[str, Node]:
    environments = root.get("environments") if root else None
    if not isinstance(environments, Mapping):
        return {}
    return {key.text: value for key, value in zip(environments.keys, environments.values, strict=True)}


def _check_names(root: Node, where: tuple[str, str], what: str, names: Collection[str], findings: Collector) -> None:
    """Report the keys of a mapping that are not in `names`; the mapping may be absent."""
    node = at(root, *where)
    for key in node.keys if names and isinstance(node, Mapping) else ():
        if why := UNUSED.get(key.text):
            findings.error(f"unknown-{what}", key, f"`{key.text}` is never called, so it cannot be configured: {why}")
        elif key.text not in names:
            hint = suggestion(key.text, sorted(names))
            findings.error(f"unknown-{what}", key, f"there is no {what} `{display(key.text)}`{hint}")


class _VariableFile(Model):
    """A file of variables, as if it stood in the project file."""

    variables: Texts


def variables_in(path: Path, digests: dict[str, str]) -> dict[str, str]:
    """Return the variables in a file given with `--var-file` (YAML or JSON), as texts like those under `variables:`.

    The file's digest is added to `digests`. Raise `Problems` when the file is not a mapping of names to texts.
    """
    findings = Collector(path.name)
    found: dict[str, str] = {}
    for root in _documents(path, "the variable file", findings, digests):
        if isinstance(root, Mapping):
            whole = Mapping([Scalar("variables", root.mark, "")], [root], root.mark)
            if (file := validated(_VariableFile, whole, findings)) is not None:
                found |= file.variables
        elif not isinstance(root, RefusedNode):
            findings.error("wrong-type", root, "a variable file must be a mapping of names to values")
    if findings.found:
        raise Problems(findings.found)
    return found


def merge(under: Node, over: Node) -> Node:
    """Merge `over` deeply into `under`: mappings merge; all other values and references ({env}, {file}) replace."""
    if not isinstance(under, Mapping) or not isinstance(over, Mapping) or _is_reference(under) or _is_reference(over):
        return over
    keys = {key.text: key for key in (*under.keys, *over.keys)}
    below = {key.text: value for key, value in zip(under.keys, under.values, strict=True)}
    above = {key.text: value for key, value in zip(over.keys, over.values, strict=True)}
    values = [
        merge(below[name], above[name]) if name in below and name in above else above.get(name, below.get(name))
        for name in keys
    ]
    return Mapping(list(keys.values()), [value for value in values if value is not None], under.mark)


def _is_reference(node: Mapping) -> bool:
    return len(node.keys) == 1 and node.keys[0].text in REFERENCE_KEYS


# --- where secrets are


def _secret_places(parts: tuple[Node, ...]) -> SecretPlaces:
    """Return the places of secrets at the top level and in every environment."""
    names, files, databases = set(ALWAYS), set[str](), set[str | Reference]()
    for part in parts:
        for section in REFERRING:
            for kind, text in _references(at(part, section)):
                (names if kind == "env" else files).add(text)
        databases.update(_places(at(part, "state")))
        for sink in items(at(part, "postedTime", "deliver")):
            written = (at(sink, kind, name) for kind, model in SINKS.items() for name in FILES.get(model, ()))
            files |= {node.text for node in written if isinstance(node, Scalar)}
            databases.update(_places(at(sink, "sql", "url")))
            source = at(sink, "sql", "source")
            if isinstance(source, Scalar):
                for other in parts:  # any of them may define it
                    databases.update(_places(at(other, "sources", source.text, "sql")))
    return SecretPlaces(frozenset(names), frozenset(files), frozenset(databases))


def _references(root: Node | None) -> Iterator[tuple[str, str]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, SequenceNode):
            waiting += node.items
        elif isinstance(node, Mapping):
            waiting += node.values
            if len(node.keys) == 1 and node.keys[0].text in REFERENCE_KEYS and isinstance(node.values[0], Scalar):
                yield node.keys[0].text, node.values[0].text


def _places(node: Node | None) -> Iterator[str | Reference]:
    if isinstance(node, Scalar):
        yield node.text
    for kind, text in _references(node):
        yield Reference(**{kind: text})
