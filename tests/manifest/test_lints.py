"""Suspicions are few, right, and as loud as the project wants them."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncengine.manifest.lints import LINTS, is_broad

from .loading import loaded, problems

SUSPICIOUS = {
    "same-keyword": (
        "tags:\n  - {name: Alpha, keywords: [Shared Word]}\n  - {name: Beta, keywords: [shared word]}\n"
        "  - {name: Gamma, keywords: [SHARED WORD]}\n",
        (3, 29),
    ),
    "keyword-too-broad": ("tags:\n  - {name: Alpha, keywords: [ab]}\n", (2, 30)),
    "similar-name": ("tags:\n  - name: Straße\n  - name: STRASSE\n", (3, 11)),
    "comment-in-text": ("tags:\n  - name: Alpha\n    description: case #12\n", (3, 18)),
}


def test_every_lint_has_a_case() -> None:
    """The table above is complete."""
    assert SUSPICIOUS.keys() == LINTS.keys()


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_a_suspicion_is_said_once_and_at_its_place(code: str, tmp_path: Path) -> None:
    """As a warning, which does not keep the manifests from being used."""
    text, place = SUSPICIOUS[code]
    (found,) = loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics
    assert (found.code, found.severity, (found.line, found.column)) == (code, "warning", place)


@pytest.mark.parametrize("code", SUSPICIOUS)
def test_a_suspicion_can_be_switched_off_or_made_an_error(code: str, tmp_path: Path) -> None:
    """By `policy.diagnostics` of the project file."""
    manifests = {"manifests/m.yaml": SUSPICIOUS[code][0]}
    project = "version: 1\npolicy: {{diagnostics: {{{0}: {1}}}}}\n"
    assert loaded(tmp_path, {**manifests, "syncengine.yaml": project.format(code, "off")}).diagnostics == ()
    (found,) = problems(tmp_path, {**manifests, "syncengine.yaml": project.format(code, "error")})
    assert (found.code, found.severity) == (code, "error")


@pytest.mark.parametrize(
    "text",
    [
        "tags:\n  - {name: Alpha, keywords: [Matter, matter]}\n",
        "tags:\n  - name: Alpha  # the first\n    protect: true #why\n",
        'tags:\n  - name: "Alpha #12"\n',
        "tagCategories:\n  - {externalId: ab, keywords: [ab]}\n  - {externalId: cd, keywords: [ab]}\n",
    ],
)
def test_what_is_meant_is_not_suspected(text: str, tmp_path: Path) -> None:
    """Comments, quoted text, one tag's own spellings, and keywords of categories."""
    assert loaded(tmp_path, {"manifests/m.yaml": text}).diagnostics == ()


@pytest.mark.parametrize("word", ["ab", "x", "123", "The", "Outlook"])
def test_short_and_common_words_are_broad(word: str) -> None:
    """One or two letters, up to three digits, words of everyone's day."""
    assert is_broad(word)


@pytest.mark.parametrize("word", ["1234", "ABC", "特許", "A 1"])
def test_words_that_say_something_are_not_broad(word: str) -> None:
    """Two signs are a word where signs are words."""
    assert not is_broad(word)
