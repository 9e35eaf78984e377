"""Schemas, pages of help and exit codes, one line each in `digests.txt`: a line that differs names a visible change.

`SYNCENGINE_CONTRACT=write` writes it anew, where that is meant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from tests.contract.documents import saved_approval
from tests.contract.program import HERE, IS_WRITING, ROOT, TODAY, Ended, restore, run_many

FILE = HERE / "digests.txt"
COMMANDS = re.compile(r"^  (\w[\w-]*)  ", re.MULTILINE)
DEEPEST = 2
"""Words of a command, at most."""


def line(name: str, text: str) -> str:
    """A name, the size of the text in lines and letters, its digest."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{name}  {text.count(chr(10))} lines, {len(text)} letters  {digest}"


def kept(kind: str) -> list[str]:
    """The lines of this kind."""
    return [each for each in FILE.read_text(encoding="utf-8").splitlines() if each.startswith(f"{kind} ")]


def judge(kind: str, found: list[str]) -> None:
    """Compare, or write."""
    if IS_WRITING:
        lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
        others = [each for each in lines if not each.startswith(f"{kind} ")]
        FILE.write_text("\n".join(sorted([*others, *found])) + "\n", encoding="utf-8")
    assert sorted(found) == sorted(kept(kind))


def test_schemas_are_what_they_were() -> None:
    """Each file in `schemas/`, byte for byte."""
    files = (ROOT / "schemas").iterdir()
    judge("schema", [line(f"schema {file.name}", file.read_bytes().decode()) for file in files])


def test_help_is_what_it_was() -> None:
    """Of every command and subcommand, at a width of 80 letters, whatever the terminal is."""
    pages = dict(_pages([()]))
    groups = [words for words, page in pages.items() if words and _listed(page)]
    assert {("state",), ("time",), ("connector",), ("health",)} == set(groups)
    judge("help", [line(" ".join(("help", *words)), page) for words, page in pages.items()])


def _pages(commands: list[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Pages of these commands, and of those that they list."""
    runs = run_many([(HERE, [*words, "--help"]) for words in commands])
    for words, ended in zip(commands, runs, strict=True):
        assert ended.code == 0, ended
        yield words, ended.out
    inner = [(*words, name) for words, ended in zip(commands, runs, strict=True) for name in _listed(ended.out)]
    if inner:
        assert len(inner[0]) <= DEEPEST
        yield from _pages(inner)


def _listed(page: str) -> list[str]:
    """The commands of a page, which stand before its options."""
    return COMMANDS.findall(page.partition("\nOptions:\n")[0])


INVOCATIONS = {
    "0 no changes": (("plan", "--detailed-exitcode"), "interrupted"),
    "0 changes": (("plan",), "planned"),
    "0 valid": (("validate",), "planned"),
    "0 version": (("--version",), "planned"),
    "1 not recorded": (("state", "show", "tag/nowhere"), "planned"),
    "64 no such plan": (("apply", "nowhere.plan", "-y"), "planned"),
    "1 a report for a plan": (("apply", "report.json", "-y"), "planned"),
    "1 no such group": (("time", "show", "g-nowhere"), "planned"),
    "1 layout": (("fmt", "--check"), "planned"),
    "4 gate": (("plan", "--detailed-exitcode"), "planned"),
    "4 gate at apply": (("apply", "-y"), "planned"),
    "4 gate before a stale plan": (("apply", "-y", "saved.plan"), "interrupted"),
    "5 plan of another state": (("apply", "-y", "saved.plan", "--approve-deletes", saved_approval()), "interrupted"),
    "8 manifest": (("validate",), "broken"),
    "8 project file": (("--env", "nowhere", "plan"), "planned"),
    "64 option": (("plan", "--xyzzy"), "planned"),
    "64 command": (("nowhere",), "planned"),
    "64 scope": (("apply", "-y", "--sweep", "--target", "tag/*"), "planned"),
}


def test_exit_codes_are_what_they_were(tmp_path: Path) -> None:
    """The first word of each name is the code; the last line on stderr is kept with it."""
    folders = [_laid_out(tmp_path / f"{number}", at) for number, (_, at) in enumerate(INVOCATIONS.values())]
    runs = run_many([(folder, words) for folder, (words, _) in zip(folders, INVOCATIONS.values(), strict=True)])
    assert {name: ended.code for name, ended in zip(INVOCATIONS, runs, strict=True)} == {
        name: int(name.split()[0]) for name in INVOCATIONS
    }
    judge(
        "exit",
        [f"exit {name}  {_last(*each)}".rstrip() for name, *each in zip(INVOCATIONS, runs, folders, strict=True)],
    )


def _laid_out(folder: Path, situation: str) -> Path:
    folder.mkdir()
    restore(folder, "planned" if situation == "broken" else situation)
    if situation == "interrupted":
        (folder / "saved.plan").write_bytes((TODAY / "planned" / "saved.plan").read_bytes())
    if situation == "broken":
        (folder / "manifests" / "broken.yaml").write_text("tags: [{nme: x}]\n")
    return folder


def _last(ended: Ended, folder: Path) -> str:
    return ended.err.replace(str(folder), "/project").strip().rpartition("\n")[2]
