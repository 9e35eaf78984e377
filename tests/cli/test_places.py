"""Folders and files that a person names: of commands to copy, of outputs, and of `-C`."""

from __future__ import annotations

import json
import os
import shlex

import pytest

from .program import Project, tag

OLD = [tag("OLD-1"), tag("OLD-2")]


def command_in(text: str, start: str) -> list[str]:
    """The words of the printed command that starts so."""
    (line,) = (line.strip() for line in text.splitlines() if line.strip().startswith(start))
    return shlex.split(line)[1:]


def test_the_command_that_approves_names_folder_environment_and_plan(project: Project) -> None:
    """Pasted, it applies what was shown, and nothing else."""
    project.settle(tags=OLD)
    project.wants(tags=[])
    outside = project.folder.parent
    shown = project.run("-C", "project", "plan", cwd=outside)
    words = command_in(shown.out, "syncengine apply")
    assert words[-2:] == ["-C", "project"]
    saved = project.run("-C", "project", "plan", "--out", "saved plan", cwd=outside)
    words = command_in(saved.out, "syncengine apply")
    assert (words[1], words[-2:]) == ("saved plan", ["-C", "project"])
    refused = project.run("apply", "saved plan", "-C", "project", cwd=outside)
    assert command_in(refused.out, "syncengine apply") == words
    done = project.run(*words, cwd=outside)
    assert (done.code, "Applied 2 changes." in done.out) == (0, True), done.err


def test_the_command_that_approves_a_plan_of_the_sandbox_says_so(project: Project) -> None:
    """Without the option, it would be for the service."""
    project.wants(tags=OLD)
    assert project.run("apply", "--sandbox", "-y").code == 0
    project.wants(tags=[])
    shown = project.run("plan", "--sandbox")
    assert command_in(shown.out, "syncengine apply")[-1] == "--sandbox"


def test_a_plan_of_the_sandbox_is_applied_there(project: Project) -> None:
    """The service has nothing to do with it."""
    project.wants(tags=OLD)
    assert project.run("plan", "--sandbox", "--out", "saved.plan").code == 0
    done = project.run("apply", "saved.plan")
    assert (done.code, "apply it with --sandbox" in done.err) == (5, True)


def test_the_command_that_approves_selects_what_was_shown(project: Project) -> None:
    """Else it would apply more than that."""
    project.settle(tags=OLD)
    project.wants(tags=[tag("NEW-1")])
    shown = project.run("plan", "--target", "tag/OLD*")
    words = command_in(shown.out, "syncengine apply")
    assert words[-2:] == ["--target", "tag/OLD*"]
    done = project.run(*words, "-y")
    assert (done.code, "Applied 2 changes." in done.out) == (0, True), done.err


def test_the_plan_that_is_shown_is_named(project: Project) -> None:
    """Also where its name looks like an option."""
    project.settle(tags=OLD)
    project.wants(tags=[])
    assert "syncengine apply ./-x.plan" in project.run("plan", "--out", "-x.plan").err
    assert command_in(project.run("show", "./-x.plan").out, "syncengine apply")[1] == "./-x.plan"


@pytest.mark.parametrize("words", ["schema -o made", "plan", "show x", "sandbox --port 0", "fmt"])
def test_a_folder_that_does_not_exist_is_refused_and_not_made(project: Project, words: str) -> None:
    """Whatever the command would do there."""
    done = project.run("-C", "typo", *words.split())
    assert (done.code, "typo: no such folder" in done.err) == (64, True)
    assert not (project.folder / "typo").exists()


@pytest.mark.parametrize(
    "words",
    [
        "plan --out syncengine.yaml",
        "plan --out manifests/all.yaml",
        "plan --out manifests/new.YML",
        "plan --report markdown=syncengine.yaml",
        "apply -y --report json=manifests/all.yaml",
        "state export --out manifests/all.yaml",
        "publish saved.plan --to github --dotenv syncengine.yaml",
    ],
)
def test_no_output_overwrites_what_people_write(project: Project, words: str) -> None:
    """A project file, a manifest, a table: they are refused before anything is planned or sent."""
    project.wants(tags=OLD)
    before = {path: path.read_text() for path in project.folder.rglob("*.yaml")}
    done = project.run(*words.split())
    assert (done.code, "no output is written to a" in done.err) == (64, True)
    assert {path: path.read_text() for path in before} == before


@pytest.mark.parametrize(
    "words",
    [
        "plan --out {}",
        "plan --report markdown={}",
        "apply -y --report json={}",
        "state export -o {}",
        "publish saved.plan --to github --dotenv {}",
    ],
)
@pytest.mark.parametrize(
    ("place", "kind"), [("manifests/more.json", "a manifest"), (".syncengine/state.db", "a database")]
)
def test_no_output_overwrites_what_is_read(project: Project, words: str, place: str, kind: str) -> None:
    """A manifest in JSON, the state: nothing is planned or sent."""
    project.settle(tags=OLD)
    (project.folder / "manifests/more.json").write_text('{"tags": [{"name": "NEW-1"}]}')
    before = (project.folder / place).read_bytes()
    done = project.run(*words.format(place).split())
    assert (done.code, f"this file is {kind} and would be overwritten" in done.err) == (64, True)
    assert (project.folder / place).read_bytes() == before


@pytest.mark.parametrize("content", ["", "not JSON", "[1]", '{"other": 1}', "\ud800", "{" * 100_000])
def test_an_output_overwrites_any_other_file(project: Project, content: str) -> None:
    """Among them an earlier plan."""
    project.wants(tags=OLD)
    (project.folder / "saved.json").write_text(content, errors="surrogatepass")
    for _ in range(2):
        assert project.run("plan", "--out", "saved.json").code == 0


def test_the_reviewed_plan_is_not_overwritten(project: Project) -> None:
    """By the plan that is compared with it."""
    project.wants(tags=OLD)
    assert project.run("plan", "--out", "saved.json").code == 0
    before = (project.folder / "saved.json").read_bytes()
    done = project.run("plan", "--since", "saved.json", "--out", "./saved.json")
    assert (done.code, "the reviewed plan of --since would be overwritten" in done.err) == (64, True)
    assert (project.folder / "saved.json").read_bytes() == before


def test_a_plan_is_saved_in_a_file_of_its_own(project: Project) -> None:
    """Neither on stdout nor where a report goes."""
    project.wants(tags=OLD)
    assert "prints it to stdout" in project.run("plan", "--out", "-").err
    done = project.run("plan", "--out", "z.plan", "--report", "markdown=./z.plan")
    assert (done.code, "a report is written to the same file" in done.err) == (64, True)
    done = project.run("plan", "--report", "json=a.json", "--report", "text=./a.json")
    assert (done.code, "two reports are written to" in done.err) == (64, True)
    assert project.run("plan", "--out", "a.plan").code == 0
    before = (project.folder / "a.plan").read_bytes()
    assert project.run("apply", "a.plan", "--report", "json=a.plan").code == 64
    assert (project.folder / "a.plan").read_bytes() == before


def test_messages_as_json_have_code_and_place(project: Project) -> None:
    """As the text has them."""
    project.wants(tags=[tag("A", category="nosuch")])
    done = project.run("plan", "--log-format", "json")
    (line,) = (each for each in map(json.loads, done.err.splitlines()) if each["level"] == "error")
    assert (line["level"], line["code"], line["file"]) == ("error", "unknown-category", "manifests/all.yaml")
    assert line["line"] > 0
    done = project.run("plan", "--log-format", "json", "--var-file", os.fsdecode(b"x\xff.yaml"))
    assert done.code == 8
    assert [json.loads(each)["level"] for each in done.err.splitlines()] == ["error"]


@pytest.mark.parametrize(("word", "near"), [("lst", "list"), ("pul", "pull"), ("redelivr", "redeliver")])
def test_a_misspelt_command_of_a_group_is_suggested(project: Project, word: str, near: str) -> None:
    assert f"Did you mean '{near}'?" in project.run("time", word).err
