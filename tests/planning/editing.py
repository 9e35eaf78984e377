"""Manifests in several files, and random edits like those of people: most are valid, some are not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

Json = dict[str, Any]
File = dict[str, Any]

BULK = "zz/bulk.yaml"
"""A file with a long comment, which makes the manifests large enough to be cached."""

WORDS = ("Acme", "ACME", "acme", "Bolt vs Nut", "bolt vs nut", "Straße", "STRASSE", "re: will", "TEN-4", "at", "T-1")


@dataclass
class Estate:
    """Manifests by file name. A file maps sections to items, and `raw` to invalid text."""

    files: dict[str, File] = field(default_factory=dict)

    def copy(self) -> Estate:
        return Estate(copy.deepcopy(self.files))

    def write(self, folder: Path) -> None:
        """Write the manifests to a folder, without touching files that do not change."""
        texts = {name: text_of(file) for name, file in self.files.items()}
        texts[BULK] = "tags:\n- {name: BULK-1}\n" + "# nothing to see here\n" * 5_000
        for path in [p for p in folder.rglob("*.yaml") if p.is_file()]:
            if path.relative_to(folder).as_posix() not in texts:
                path.unlink()
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")

    def all_of(self, section: str) -> list[tuple[str, Json]]:
        return [(name, item) for name, file in self.files.items() for item in file.get(section, [])]


def text_of(file: File) -> str:
    lines: list[str] = []
    for section in ("defaults", "tagCategories", "activityTypes", "tags", "removed"):
        if isinstance(file.get(section), dict):
            lines.append(f"{section}: {json.dumps(file[section])}")
        elif file.get(section):
            lines += [f"{section}:", *(f"  - {json.dumps(item, ensure_ascii=False)}" for item in file[section])]
    return "\n".join([*lines, file.get("raw", "")]) + "\n"


def first(random: Random) -> Estate:
    """Return an estate that is valid."""
    estate = Estate()
    for number in range(1, 5):
        estate.files[f"{'b/' if number > 2 else ''}{number}.yaml"] = {
            "tagCategories": [{"externalId": f"c{number}", "label": f"Label {number}"}],
            "activityTypes": [{"code": f"A{number}", "label": f"Label {number}", "enableIfNew": True}],
            "tags": [_new_tag(random, f"T-{number}{n}", [f"c{number}"]) for n in range(random.randint(1, 5))],
        }
    return estate


def _new_tag(random: Random, name: str, categories: list[str]) -> Json:
    made: Json = {"name": name}
    if random.random() < 0.5:
        made["category"] = random.choice(categories)
    if random.random() < 0.5:
        made["keywords"] = [f"words of {name}"]
    if random.random() < 0.3:
        made["metadata"] = {"Client": name}
    if random.random() < 0.2:
        made["externalId"] = f"ext-{random.randint(1, 6)}"
    return made


def edit(estate: Estate, random: Random) -> None:
    """Make one random edit."""
    random.choice(EDITS)(estate, random)


def _tag(estate: Estate, random: Random) -> tuple[str, Json] | None:
    tags = estate.all_of("tags")
    return random.choice(tags) if tags else None


def _file(estate: Estate, random: Random) -> File:
    if not estate.files:
        estate.files["new.yaml"] = {}
    return estate.files[random.choice(sorted(estate.files))]


def change_tag(estate: Estate, random: Random) -> None:
    if (found := _tag(estate, random)) is None:
        return
    _, tag = found
    what = random.choice(["keywords", "category", "path", "protect", "externalId", "defaultActivityTypeCode"])
    if what == "keywords":
        tag["keywords"] = random.sample(WORDS, random.randint(0, 2))
    elif what == "category":
        names = [item["externalId"] for _, item in estate.all_of("tagCategories")]
        tag["category"] = random.choice([*names, *names, "nowhere"])
    elif what == "protect":
        tag["protect"] = not tag.get("protect", False)
    elif what in tag and random.random() < 0.4:
        del tag[what]
    else:
        values = {"path": "/a", "defaultActivityTypeCode": random.choice(["A1", "A2", "A9"])}
        tag[what] = values.get(what, f"ext-{random.randint(1, 6)}")


def add_tag(estate: Estate, random: Random) -> None:
    name = random.choice([f"T-{random.randint(1, 60)}", random.choice(WORDS), f"t-{random.randint(1, 30)}"])
    names = [item["externalId"] for _, item in estate.all_of("tagCategories")] or ["nowhere"]
    tags = _file(estate, random).setdefault("tags", [])
    tags.insert(random.randint(0, len(tags)), _new_tag(random, name, names))


def drop_tag(estate: Estate, random: Random) -> None:
    if found := _tag(estate, random):
        estate.files[found[0]]["tags"].remove(found[1])


def move_tag(estate: Estate, random: Random) -> None:
    if found := _tag(estate, random):
        estate.files[found[0]]["tags"].remove(found[1])
        _file(estate, random).setdefault("tags", []).append(found[1])


def rename_tag(estate: Estate, random: Random) -> None:
    if found := _tag(estate, random):
        tag = found[1]
        tag["previously"] = [*tag.get("previously", []), tag["name"]]
        tag["name"] = f"R-{random.randint(1, 99)}"


def remove_tag(estate: Estate, random: Random) -> None:
    if found := _tag(estate, random):
        estate.files[found[0]]["tags"].remove(found[1])
        line = {random.choice(["retire", "forget"]): found[1]["name"]}
        _file(estate, random).setdefault("removed", []).append(
            {"tag": next(iter(line.values())), "as": next(iter(line))}
        )


def change_category(estate: Estate, random: Random) -> None:
    categories = estate.all_of("tagCategories")
    what = random.choice(["label", "add", "move", "drop"])
    if what == "add" or not categories:
        made = {"externalId": f"c{random.randint(5, 9)}", "label": "new"}
        _file(estate, random).setdefault("tagCategories", []).append(made)
        return
    name, category = random.choice(categories)
    if what == "label":
        category["label"] = f"Label {random.randint(1, 9)}"
        return
    estate.files[name]["tagCategories"].remove(category)
    if what == "move":
        _file(estate, random).setdefault("tagCategories", []).append(category)


def defaults(estate: Estate, random: Random) -> None:
    given = random.choice([{"path": "/d"}, {"category": "c1"}, {"metadata": {"Office": "Rome"}}, {}])
    _file(estate, random)["defaults"] = {"tags": given} if given else {}


def drop_file(estate: Estate, random: Random) -> None:
    if estate.files:
        del estate.files[random.choice(sorted(estate.files))]


def rename_file(estate: Estate, random: Random) -> None:
    if estate.files:
        file = estate.files.pop(random.choice(sorted(estate.files)))
        estate.files[f"{random.choice(['', 'a/', 'z/'])}r{random.randint(1, 9)}.yaml"] = file


def break_file(estate: Estate, random: Random) -> None:
    _file(estate, random)["raw"] = random.choice(
        ["tags: [", "\x01", "unknown: 1", "tags: []", "---\ntags: [{name: D-1}]"]
    )


def share_word(estate: Estate, random: Random) -> None:
    """Give a keyword of one tag to another tag as well."""
    one, other = _tag(estate, random), _tag(estate, random)
    if one and other:
        word = random.choice([*one[1].get("keywords", []), one[1]["name"]])
        other[1]["keywords"] = list(dict.fromkeys([*other[1].get("keywords", []), word.upper()]))


EDITS: tuple[Callable[[Estate, Random], None], ...] = (
    *(change_tag, add_tag, drop_tag, move_tag) * 3,
    rename_tag,
    remove_tag,
    change_category,
    defaults,
    drop_file,
    rename_file,
    break_file,
    *(share_word,) * 2,
)
