"""The exit codes that scripts rely on, each with a command line that ends with it."""

from __future__ import annotations

from pathlib import Path

from tests.contract.documents import saved_approval
from tests.contract.program import TODAY, restore, run_many

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
    """The first word of each invocation's name is its exit code."""
    folders = [_laid_out(tmp_path / f"{number}", at) for number, (_, at) in enumerate(INVOCATIONS.values())]
    runs = run_many([(folder, words) for folder, (words, _) in zip(folders, INVOCATIONS.values(), strict=True)])
    assert {name: ended.code for name, ended in zip(INVOCATIONS, runs, strict=True)} == {
        name: int(name.split()[0]) for name in INVOCATIONS
    }


def _laid_out(folder: Path, situation: str) -> Path:
    folder.mkdir()
    restore(folder, "planned" if situation == "broken" else situation)
    if situation == "interrupted":
        (folder / "saved.plan").write_bytes((TODAY / "planned" / "saved.plan").read_bytes())
    if situation == "broken":
        (folder / "manifests" / "broken.yaml").write_text("tags: [{nme: x}]\n")
    return folder
