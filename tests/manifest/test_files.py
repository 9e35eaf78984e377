"""Which files are manifests, and what is said of those that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

from syncengine.manifest.desired import load
from syncengine.manifest.files import find
from syncengine.project.load import load_project

from .loading import problems, write


def names(root: Path, *paths: str) -> list[str]:
    return [file.name for file in find([root / path for path in paths], root).files]


def codes(root: Path) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.file) for problem in find([root / "manifests"], root).problems]


def test_manifests_are_found_at_any_depth_and_in_order(tmp_path: Path) -> None:
    """YAML and JSON; hidden files and folders, and files of other kinds, are not looked at."""
    files = ["b.yaml", "a/z.yml", "a/b/c.json", "a/.hidden.yaml", ".git/x.yaml", "README.md"]
    write(tmp_path, {f"manifests/{name}": "" for name in files})
    assert names(tmp_path, "manifests") == ["manifests/a/b/c.json", "manifests/a/z.yml", "manifests/b.yaml"]


def test_a_manifest_is_known_by_its_name_in_any_case(tmp_path: Path) -> None:
    """Named by itself as in its folder."""
    write(tmp_path, {"m/A.YAML": "", "m/b.Yml": "", "m/c.JSON": "", "m/d.YAML.J2": ""})
    found = names(tmp_path, "m")
    assert found == ["m/A.YAML", "m/b.Yml", "m/c.JSON", "m/d.YAML.J2"] == names(tmp_path, *found)


UNREAD = ("a.yaml.txt", "b.yaml.bak", "c.yml~", "d.json.old", "deep/e.ymal", "f.csv", "g.xlsx", "h.YAML.orig")


def test_what_was_meant_to_be_a_manifest_is_told(tmp_path: Path) -> None:
    """An editor's second suffix, a list of matters; not what a manifest mentions, nor what is for people."""
    block = "generate:\n  - forEach: {csv: used.csv}\n    tags: [{name: '{{ row.n }}'}]\n"
    others = ("README.md", ".x.yaml.swp", "part.j2", "more.jsonl", "LICENSE.txt")
    write(tmp_path, {f"manifests/{name}": "" for name in (*UNREAD, *others)})
    write(tmp_path, {"manifests/m.yaml": block, "manifests/used.csv": "n\nA-0001\n"})
    desired = load(load_project(folder=tmp_path, environ={}))
    assert {d.code for d in desired.diagnostics} == {"unread-file"}
    assert [d.file for d in desired.diagnostics] == [f"manifests/{name}" for name in UNREAD]
    write(tmp_path, {"syncengine.yaml": "version: 1\npolicy: {diagnostics: {unread-file: error}}\n"})
    assert {d.code for d in problems(tmp_path, {})} == {"unread-file"}


def test_a_file_is_mentioned_by_its_whole_path_only(tmp_path: Path) -> None:
    """Not by one whose name ends alike, nor by one of another folder; in whatever way its own path is written."""
    write(tmp_path, {f"manifests/{name}": "n\n" for name in ("matters.csv", "people.csv", "deep/used.csv", "own.csv")})
    others = {"data/clio-matters.csv": "n\n", "data/people.csv": "n\n"}
    block = "  - forEach: {csv: %s}\n    tags: [{name: '{{ row.n }}'}]\n"
    paths = ("../data/clio-matters.csv", "../data/people.csv", "./deep/../deep/used.csv", "'{{ var.folder }}/own.csv'")
    write(tmp_path, {"manifests/m.yaml": "generate:\n" + "".join(block % path for path in paths), **others})
    write(tmp_path, {"syncengine.yaml": "version: 1\nvariables: {folder: ../manifests}\n"})
    found = load(load_project(folder=tmp_path, environ={})).diagnostics
    assert [d.file for d in found if d.code == "unread-file"] == ["manifests/matters.csv", "manifests/people.csv"]


def test_a_file_that_is_reached_twice_is_read_once(tmp_path: Path) -> None:
    """By two paths or by a link."""
    write(tmp_path, {"manifests/a/x.yaml": ""})
    (tmp_path / "manifests/y.yaml").symlink_to(tmp_path / "manifests/a/x.yaml")
    assert names(tmp_path, "manifests", "manifests/a") == ["manifests/a/x.yaml"]


def test_a_link_in_a_circle_ends(tmp_path: Path) -> None:
    """A folder is entered once."""
    write(tmp_path, {"manifests/x.yaml": ""})
    (tmp_path / "manifests/again").symlink_to(tmp_path / "manifests")
    assert names(tmp_path, "manifests") == ["manifests/x.yaml"]


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    """Files and folders alike: what is not in the project's folder is not in its review either."""
    write(tmp_path, {"outside/x.yaml": "", "p/manifests/y.yaml": ""})
    (tmp_path / "p/manifests/f.yaml").symlink_to(tmp_path / "outside/x.yaml")
    (tmp_path / "p/manifests/g").symlink_to(tmp_path / "outside")
    found = [(code, str(file)) for code, file in codes(tmp_path / "p")]
    assert sorted(found) == [("outside-project", "manifests/f.yaml"), ("outside-project", "manifests/g")]


def test_what_cannot_be_read_is_a_diagnostic(tmp_path: Path) -> None:
    """Broken links and pipes; a folder that is named like a file is a folder."""
    write(tmp_path, {"manifests/d.yaml/x.yaml": ""})
    (tmp_path / "manifests/broken.yaml").symlink_to("nowhere.yaml")
    os.mkfifo(tmp_path / "manifests/pipe.yaml")
    assert codes(tmp_path) == [
        ("unreadable-file", "manifests/broken.yaml"),
        ("unreadable-file", "manifests/pipe.yaml"),
    ]
    assert names(tmp_path, "manifests") == ["manifests/d.yaml/x.yaml"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    """Rather than a project that wants nothing, which would be a plan to remove everything."""
    assert [(d.code, d.file) for d in problems(tmp_path, {})] == [("missing-manifests", "manifests")]


def test_how_to_begin_is_said_where_there_is_no_project(tmp_path: Path) -> None:
    """To people who ran the first command that they read of."""
    (found,) = problems(tmp_path, {})
    assert (
        found.message
        == "the file or folder does not exist; there is no project here: run `syncengine init` to create one"
    )


def test_a_project_one_level_down_is_named(tmp_path: Path) -> None:
    """To people, and hooks, that stand above it; not where there is a project already."""
    write(tmp_path, {"firm/syncengine.yaml": "version: 1\n", ".git/syncengine.yaml": "version: 1\n"})
    (found,) = problems(tmp_path, {})
    assert found.message.startswith("the file or folder does not exist; for the project in firm, add `-C ")
    (found,) = problems(tmp_path, {"syncengine.yaml": "version: 1\n"})
    assert found.message == "the file or folder does not exist"
