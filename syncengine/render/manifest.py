"""Resources → a manifest that declares them, with the origin of each as a comment; pure.

Every text is a double-quoted scalar with JSON escapes, so that no part of it is read as YAML syntax.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from syncengine.manifest.resources import item_of
from syncengine.manifest.schema import SECTIONS
from syncengine.render.escape import file_name
from syncengine.resource import Kind, Removed, Resource


def manifest_yaml(resources: Iterable[Resource], removals: Iterable[Removed] = ()) -> str:
    """Return the manifest of the resources and removals as YAML."""
    by_kind: dict[Kind, list[Resource]] = {kind: [] for kind in Kind}
    for resource in resources:
        by_kind[resource.key.kind].append(resource)
    lines: list[str] = []
    for section, kind in SECTIONS.items():
        if by_kind[kind]:
            lines.append(f"{section}:")
            for resource in by_kind[kind]:
                lines += _item(str(resource.source), item_of(resource))
    leaving = list(removals)
    if leaving:
        lines.append("removed:")
        for line in leaving:
            lines += _item(str(line.source), _removed(line))
    return "\n".join(lines) + "\n" if lines else "# nothing is declared\n"


def section_yaml(kind: Kind, items: Iterable[Mapping[str, Any]], origin: str) -> str:
    """Return a section with `items` to paste into a manifest, each item below a comment with `origin`."""
    section = next(section for section, each in SECTIONS.items() if each is kind)
    return "\n".join([f"{section}:", *(line for item in items for line in _item(origin, item))]) + "\n"


def manifest_json(resources: Iterable[Resource], removals: Iterable[Removed] = ()) -> str:
    """Return the manifest of the resources and removals as JSON, without comments."""
    sections: dict[str, list[Any]] = {}
    section_of = {kind: section for section, kind in SECTIONS.items()}
    for resource in resources:
        sections.setdefault(section_of[resource.key.kind], []).append(item_of(resource))
    for line in removals:
        sections.setdefault("removed", []).append(_removed(line))
    return json.dumps(sections, indent=2, ensure_ascii=False) + "\n"


def _removed(line: Removed) -> dict[str, Any]:
    return {"tag": line.key.name, "as": line.how.value, **({"reason": line.reason} if line.reason else {})}


def _item(origin: str, fields: Mapping[str, Any]) -> Iterator[str]:
    yield f"  # {file_name(origin)}"
    mark = "-"
    for name, value in fields.items():
        yield f"  {mark} {name}: {_value(value)}"
        mark = " "


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(name)}: {_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, bool | int):
        return json.dumps(value)
    text = json.dumps(value, ensure_ascii=False)
    # YAML has no surrogate pairs.
    escapes = (f"\\u{ord(each):04x}" if ord(each) < 0x10000 else f"\\U{ord(each):08x}" for each in text)
    return "".join(each if each.isprintable() else escape for each, escape in zip(text, escapes, strict=True))
