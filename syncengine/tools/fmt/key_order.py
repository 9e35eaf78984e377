"""Define the canonical order of keys in a manifest, derived from its models. Data only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syncengine.document.model import names_of
from syncengine.manifest.generate_schema import ForEach, Generate
from syncengine.manifest.schema import MODELS, SECTIONS, RemovedTag

SECTION_ORDER = ("defaults", *SECTIONS, "generate", "removed")
"""The order of sections: defaults, which apply to everything that follows, come first, removals last."""
FIELD_ORDER: Mapping[str, Sequence[str]] = {
    section: tuple(names_of(MODELS[kind])) for section, kind in SECTIONS.items()
}
REMOVED_ORDER, GENERATE_ORDER, FOR_EACH_ORDER = (tuple(names_of(model)) for model in (RemovedTag, Generate, ForEach))


def order_at(path: Sequence[str]) -> Sequence[str] | None:
    """Return the order of the keys of a mapping at `path`, where `[]` is a list item, or `None` to keep the order."""
    match list(path):
        case []:
            return SECTION_ORDER
        case [section, "[]"] if section in FIELD_ORDER:
            return FIELD_ORDER[section]
        case ["generate", "[]", "forEach"]:
            return FOR_EACH_ORDER
        case ["defaults"]:
            return tuple(SECTIONS)
        case ["defaults", section] if section in FIELD_ORDER:
            return FIELD_ORDER[section]
        case ["removed", "[]"]:
            return REMOVED_ORDER
        case ["generate", "[]"]:
            return GENERATE_ORDER
        case ["generate", "[]", section, "[]"] if section in FIELD_ORDER:
            return FIELD_ORDER[section]
        case _:
            return None


def ordered(keys: Sequence[str], order: Sequence[str]) -> list[str]:
    """Return the keys in their canonical order; unknown keys come last, in their original order."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(keys, key=lambda key: places.get(key, len(places)))
