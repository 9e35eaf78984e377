"""`validate` with a cache of unchanged manifests reports the same as without."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from syncengine.manifest.cache import Settled, seal, unseal
from tests.manifest.loading import write
from tests.support.git import git
from tests.tools.test_validate import found, validate

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


def test_a_change_is_noticed(estate: Path) -> None:
    validate(estate)
    file = estate / "manifests/b.yaml"
    file.write_text("tags:\n  - name: Beta\n    keywords: [Matter 00007]\n")
    assert "same-keyword" in validate(estate)[1]
    file.write_text("tags:\n  - name: Beta\n    keywords: ['00007']\n")
    assert "keyword-contained" not in validate(estate)[1]
    (estate / "syncengine.yaml").write_text("version: 1\npolicy: {diagnostics: {keyword-contained: error}}\n")
    assert validate(estate)[0] == 8
    (estate / "syncengine.yaml").write_text(
        "version: 1\npolicy: {diagnostics: {keyword-contained: off, keyword-too-broad: off}}\n"
    )
    assert "warning" not in validate(estate)[1]
    file.write_text("tags:\n  - nmae: Beta\n")
    assert validate(estate)[0] == 8


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
    (known_good / ".syncengine" / "cache.db").chmod(0o644)
    assert "keyword-too-broad" in validate(known_good)[1]
    assert (known_good / ".syncengine" / "cache.db").stat().st_mode & 0o077 == 0
