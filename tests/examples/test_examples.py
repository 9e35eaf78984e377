"""The example manifests are a small law firm, which the first command of the README shows on one screen."""

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.support import warm

MANIFESTS = Path(__file__).parents[2] / "manifests"
CLIENTS = {"hartmann", "northwind", "solera"}
ACTIVITIES = [f"A{number}" for number in range(101, 112)]
"""The activity codes of the UTBMS litigation code set of the American Bar Association."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with only the manifests, as in a clone."""
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    return tmp_path


def run(folder: Path, *words: str) -> str:
    done = warm.run(list(words), folder=folder, environ={"PATH": os.environ["PATH"], "HOME": str(folder)})
    assert done.code == 0, done.err
    return done.out


def test_every_matter_is_open_private_and_of_a_client_and_every_activity_is_offered(folder: Path) -> None:
    """Twelve matters of three clients; the closed one has no tag.

    Keywords and names are unique and have at least four characters, so that they match few words by chance. Without
    enableIfNew, a new activity type would be created, but users could not choose it.
    """
    assert run(folder, "validate").startswith("No problems found.")
    declared = json.loads(run(folder, "render", "--format", "json"))
    tags = declared["tags"]
    assert len(tags) == 11
    assert {tag["visibility"] for tag in tags} == {"PRIVATE"}
    assert {tag["category"] for tag in tags} == {each["externalId"] for each in declared["tagCategories"]} == CLIENTS
    words = [word.casefold() for tag in tags for word in (tag["name"], *tag["keywords"])]
    assert [word for word, times in Counter(words).items() if times > 1 or len(word) < 4] == []
    assert [each["code"] for each in declared["activityTypes"]] == ACTIVITIES
    assert {each.get("enableIfNew") for each in declared["activityTypes"]} == {True}


@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_file_is_of_one_screen_and_names_its_schema(path: Path) -> None:
    """The first line names this repository's schema, so that editors complete and check the manifest."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 30
    prefix, _, relative = lines[0].partition("$schema=")
    assert prefix == "# yaml-language-server: "
    assert (path.parent / relative).resolve() == MANIFESTS.parent / "schemas" / "manifest.schema.json"


def test_the_rules_for_them_fit_their_schema_and_their_tests_pass() -> None:
    """`syncengine test` passes in this repository's own project."""
    path = Path(__file__).parent / "policies" / "firm.yaml"
    text = path.read_text(encoding="utf-8")
    named = path.parent / text.splitlines()[0].rpartition("$schema=")[2]
    assert named.resolve() == MANIFESTS.parent / "schemas" / "policies.schema.json"
    jsonschema.validate(yaml.safe_load(text), json.loads(named.read_text(encoding="utf-8")))
    assert run(MANIFESTS.parent, "test", str(path.parent)) == "7 tests passed.\n"


COMMAND = [sys.executable, "-m", "syncengine", "apply", "--sandbox", "-y"]
SCREEN = 40
"""The most lines that a new user should see at once."""


def printed(folder: Path, columns: int | None) -> list[str]:
    """The lines in a pipe, or those that remain on a terminal of that width, without progress, which is erased."""
    master, slave = pty.openpty() if columns else os.pipe()
    if columns:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"NO_COLOR": "1"}
    process = subprocess.Popen(COMMAND, cwd=folder, env=environ, stdout=slave, stderr=subprocess.PIPE, encoding="utf-8")
    os.close(slave)
    shown = b""
    try:
        while more := os.read(master, 65536):
            shown += more
    except OSError:  # Linux's answer once the other end of a terminal is closed
        pass
    finally:
        os.close(master)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return [*shown.decode().splitlines(), *said.splitlines()]


@pytest.mark.parametrize("columns", [None, 80, 200])
def test_the_first_apply_prints_one_screen_and_a_repeat_where_it_is(folder: Path, columns: int | None) -> None:
    """In a pipe, and on a terminal of any usual width. A second apply changes nothing and suggests no next command."""
    lines = printed(folder, columns)
    assert len(lines) <= SCREEN
    assert columns is None or max(map(len, lines)) <= columns
    created = [line for line in lines if line.startswith("  + ")]
    assert [line.count("manifests/") for line in created] == [1] * 25
    assert any("visibility: PRIVATE" in line for line in lines)
    assert "Applied 25 changes. 3 requests." in lines
    assert "Next: `syncengine sandbox` shows the result in a browser." in lines
    assert "After an edit: `syncengine plan --sandbox`. In a new folder: `syncengine init`." in lines
    again = printed(folder, None)
    assert len(again) == 3
    assert "No changes. 25 resources match the recorded state." in again
