"""`validate` reports diagnostics of the given PATHS, the same with a cache of unchanged manifests as without."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from syncengine.manifest.cache import Settled, seal, unseal
from tests.manifest.loading import write
from tests.support import warm
from tests.support.git import git

BROAD = "tags:\n  - {name: Alpha, keywords: [ab]}\n"
WRONG = "tags:\n  - {nam: Beta}\n"


def validate(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `validate` and return its exit code and output."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = warm.run(["validate", *arguments], folder=folder, environ=environ)
    assert "Traceback" not in done.err
    return done.code, done.out


def found(folder: Path, *arguments: str) -> tuple[int, list[tuple[str, str]]]:
    code, out = validate(folder, "--format", "json", *arguments)
    return code, [(d["file"], d["code"]) for d in json.loads(out)["diagnostics"]]


def test_paths_narrow_errors_as_they_narrow_warnings(tmp_path: Path) -> None:
    """If all errors are outside of PATHS, they are reported, to explain exit code 8."""
    write(tmp_path, {f"manifests/{name}": WRONG for name in ("a.yaml", "b.yaml")})
    write(tmp_path, {f"manifests/{name}": BROAD.replace("Alpha", name) for name in ("c.yaml", "d.yaml")})
    for paths, files in (((), "abcd"), (("manifests/a.yaml",), "a"), (("manifests/c.yaml",), "abc")):
        code, told = found(tmp_path, *paths)
        assert (code, {file for file, _ in told}) == (8, {f"manifests/{name}.yaml" for name in files})


def test_a_path_without_a_manifest_is_a_warning(tmp_path: Path) -> None:
    """A path without a manifest is the warning `nothing-selected`, except the project file, which is always checked."""
    write(tmp_path, {"syncengine.yaml": "version: 1\n", "manifests/c.yaml": BROAD, "data/m.csv": "n\n"})
    assert found(tmp_path, "data/m.csv") == (0, [("data/m.csv", "nothing-selected")])
    assert found(tmp_path, "data") == (0, [("data", "nothing-selected")])
    assert found(tmp_path, "syncengine.yaml") == (0, [])
    assert found(tmp_path, ".") == found(tmp_path, "manifests") == (0, [("manifests/c.yaml", "keyword-too-broad")])
    strict = "version: 1\npolicy: {diagnostics: {nothing-selected: error}}\n"
    write(tmp_path, {"syncengine.yaml": strict})
    assert found(tmp_path, "data") == (8, [("data", "nothing-selected")])


@pytest.mark.parametrize("root", [".git/HEAD", ".git"])
def test_paths_begin_at_the_root_of_the_repository(tmp_path: Path, root: str) -> None:
    """Annotations have paths from the root of the repository, which is a folder with a folder or file `.git`."""
    project = tmp_path / "time" / "project"
    write(project, {"manifests/c.yaml": BROAD})
    write(tmp_path, {root: "gitdir: elsewhere\n"})
    for format in ("github", "gitlab", "sarif"):
        assert "time/project/manifests/c.yaml" in validate(project, "--format", format)[1]
    assert "time/project" not in validate(project, "--format", "text")[1]
    (project / ".git").mkdir()
    assert "file=manifests/c.yaml," in validate(project, "--format", "github")[1]


# --- with a cache

MANY = 4_000


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    """A project that is large enough for the cache, with one warning."""
    tags = "".join(f"  - name: Matter {n:05}\n    description: about number {n}\n" for n in range(MANY))
    first = f"tags:\n{tags}  - name: Alpha\n    keywords: [ab]\n"
    second = "tags:\n  - name: Beta\n    keywords: [word of beta]\n"
    write(tmp_path, {"manifests/a.yaml": first, "manifests/b.yaml": second})
    return tmp_path


def test_a_second_validate_reports_the_same(estate: Path) -> None:
    first = validate(estate)
    assert (first[0], "keyword-too-broad" in first[1]) == (0, True)
    assert f"{MANY + 2:,} resources in 2 files" in first[1]
    assert validate(estate) == first
    assert found(estate) == (0, [("manifests/a.yaml", "keyword-too-broad")])


@pytest.fixture
def known_good(estate: Path) -> Path:
    """A project with a forged cache that hides a warning."""
    validate(estate)
    cache = estate / ".syncengine" / "cache.db"
    with closing(sqlite3.connect(cache)) as connection, connection:
        for name, content in connection.execute("SELECT name, content FROM basis").fetchall():
            settled = msgspec.msgpack.decode(unseal(content) or b"", type=Settled)
            silent = seal(msgspec.msgpack.encode(msgspec.structs.replace(settled, diagnostics=())))
            connection.execute("UPDATE basis SET content = ? WHERE name = ?", (silent, name))
    assert "keyword-too-broad" not in validate(estate)[1]
    return estate


def test_a_committed_cache_is_not_used(known_good: Path) -> None:
    """A cache that is in Git is neither used nor changed, since a pull request could forge it."""
    git(known_good, "init")
    assert "keyword-too-broad" not in validate(known_good)[1]
    git(known_good, "add", "--force", ".")
    committed = (known_good / ".syncengine" / "cache.db").read_bytes()
    assert "keyword-too-broad" in validate(known_good)[1]
    assert (known_good / ".syncengine" / "cache.db").read_bytes() == committed


@pytest.mark.parametrize("linked", ["", "cache.db"])
def test_a_cache_behind_a_link_is_not_used(known_good: Path, linked: str) -> None:
    git(known_good, "init")
    place = known_good / ".syncengine" / linked
    place.rename(known_good / "other")
    place.symlink_to(known_good / "other")
    git(known_good, "add", "--force", ".")
    assert "keyword-too-broad" in validate(known_good)[1]


def test_a_cache_that_others_may_read_is_not_used(known_good: Path) -> None:
    """A cache that others may read, as from an archive, is not used, and is replaced by a private one."""
    cache = known_good / ".syncengine" / "cache.db"
    cache.chmod(0o644)
    assert "keyword-too-broad" in validate(known_good)[1]
    assert cache.stat().st_mode & 0o077 == 0
