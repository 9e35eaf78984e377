"""Digests are stored and shown, so their values must never change."""

from __future__ import annotations

from pathlib import Path

from syncengine.content import sha256_at, sha256_of, sha256_of_parts, sha256_of_values

TEXT, BYTES, VALUES = "fe263064ba02eaea", "fb8e20fc2e4c3f24", "749b2a8886e05ca3"


def test_digests_have_the_stored_values(tmp_path: Path) -> None:
    """For text, bytes, parts, files and values; the order of keys does not matter."""
    assert sha256_of("grün").startswith(TEXT)
    file = tmp_path / "ab"
    file.write_bytes(b"ab")
    of_bytes = {sha256_of(b"ab"), sha256_of_parts(iter((b"a", b"b"))), sha256_at(file)}
    assert of_bytes == {sha256_of("ab")}
    assert sha256_of("ab").startswith(BYTES)
    assert sha256_of_values((1, {"b": 2, "a": None})).startswith(VALUES)
    assert sha256_of_values((1, {"a": None, "b": 2})).startswith(VALUES)
