"""`fmt` gives every manifest one layout, without losing meaning or comments."""

import json
import re
from pathlib import Path

import pytest

from syncengine.document.diagnostics import Collector
from syncengine.tools.fmt import laid_out
from tests.support import warm

MANIFESTS = Path(__file__).parents[2] / "manifests"

MESSY = """\
# The head stays on top.
tags:
# Above the second matter.
- keywords:
  - a
  # above b
  - "b"
  url: ""   # behind the url
  # above the name
  name: 0123   # behind the name
  description: |
    # this is text
     and deep

- {metadata: {A: 'x'}, name: no,
   keywords: [one,
     two]}
  # at the end of the list
removed:
- as: retire
  tag: old
defaults: {tags: {managedBy: x, visibility: PRIVATE}}
"""
NEAT = """\
# The head stays on top.
defaults: {tags: {visibility: PRIVATE, managedBy: x}}

tags:
  # Above the second matter.
  # above the name
  - name: 0123  # behind the name
    description: |
      # this is text
       and deep
    keywords:
      - a
      # above b
      - "b"
    url: ""  # behind the url

  - {name: no, keywords: [one, two], metadata: {A: 'x'}}
  # at the end of the list

removed:
  - tag: old
    as: retire
"""
LAYOUTS = {
    "documents": "tags: [{name: a}]\n---\n# second\ntags:\n- name: b\n...\n",
    "marks": "# head\n---\n# first\ntags: [{name: a}]\n# its end\n---\n# second\ntags:\n- name: b\n# end\n",
    "scalars": "tags:\n- {name: a, keywords: [1.10, 0o7, 1e3, no, ~x, 'null', \"\\u00e9\\t\", 2024-01-01, <<, =]}\n",
    "blocks": "tags:\n- name: a\n  description: >+\n   kept\n\n\n  url: |2\n     indented\n  path: /\n",
    "folded": "tags:\n- description: one\n    two\n\n    three\n  name: 'a\n    b'\n",
    "anchors": "tags:\n- keywords: &k [a]\n  name: x\n- keywords: *k\n  name: y\n",
    "long": f"tags:\n- name: a\n  keywords: [{', '.join(f'a word of number {n}' for n in range(20))}]\n",
    "generate": "generate:\n- tags:\n  - url: '{{ m.b }}'\n    name: '{{ m.a }}'\n  as: m\n  forEach: {csv: x.csv}\n",
    "returns": "tags:\r\n- url: x\r\n  name: a # why\r\n",
    "times and question marks in braces": "tags:\n- {name: A?b, closedTimestamp: 2024-01-01T00:00:00Z} # why\n",
    "an anchor that is given again": "tags:\n- {name: &a x, url: *a}\n- name: &a y\n  url:  *a\n",
    "unknown": "tags:\n- nmae: a\n  zebra: b\n  name: c\nremoved: [1]\n",
    "wide": (
        "tags:\n      -   url: x\n          name: Ünïcode 😀 # ö\n"
        "          metadata:\n                B: 1\n                A: 2\n"
    ),
}


def lay(text: str) -> str:
    findings = Collector("m.yaml")
    result = laid_out(text.encode(), findings)
    assert result is not None, findings.found
    assert not findings.found
    return result


def fmt(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = warm.run(["fmt", *arguments], folder=folder, environ={"HOME": str(folder)})
    assert "Traceback" not in done.err
    return done


def project(folder: Path, text: str = MESSY, name: str = "m.yaml") -> Path:
    (folder / "manifests").mkdir(exist_ok=True)
    file = folder / "manifests" / name
    file.write_bytes(text.encode())
    return file


def test_order_indentation_and_comments_are_canonical() -> None:
    assert lay(MESSY) == NEAT


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_final_and_keeps_every_comment(name: str) -> None:
    once = lay(LAYOUTS[name])
    assert lay(once) == once
    assert sorted(re.findall("#.*", once)) == sorted(re.findall("#[^\r\n]*", LAYOUTS[name]))


@pytest.mark.parametrize("path", sorted(MANIFESTS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_example_manifests_are_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert lay(text) == text


def test_a_comment_at_the_end_stays_there() -> None:
    """A comment at the end of a document stays there if sections are reordered; one above the first `---` stays."""
    text = "# head\n---\ntags:\n- name: A\ndefaults: {}\n# the end\n---\ntags: []\n# its end\n"
    neat = "# head\ndefaults: {}\n\ntags:\n  - name: A\n# the end\n---\ntags: []\n# its end\n"
    assert lay(text) == neat


def test_files_are_written_once(tmp_path: Path) -> None:
    file = project(tmp_path)
    file.chmod(0o640)
    assert fmt(tmp_path)[:2] == (0, "Formatted manifests/m.yaml\n")
    assert (file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) == (NEAT, 0o640)
    assert fmt(tmp_path)[:2] == (0, "")
    assert [path.name for path in file.parent.iterdir()] == ["m.yaml"]


def test_check_and_diff_write_nothing(tmp_path: Path) -> None:
    file = project(tmp_path)
    assert fmt(tmp_path, "--check")[:2] == (1, "Would format manifests/m.yaml\n")
    code, out, _ = fmt(tmp_path, "--diff")
    assert (code, "+  - name: 0123  # behind the name" in out) == (0, True)
    code, out, _ = fmt(tmp_path, "--check", "--diff", "--format", "json", "manifests")
    assert (code, [each["file"] for each in json.loads(out)["files"]]) == (1, ["manifests/m.yaml"])
    assert file.read_text(encoding="utf-8") == MESSY
    file.write_text(NEAT, encoding="utf-8")
    assert fmt(tmp_path, "--check")[0] == 0


def test_files_that_cannot_be_formatted_are_reported_and_the_others_are_formatted(tmp_path: Path) -> None:
    """A file that cannot be written, here a link, and one with an error are told with their places."""
    others = [project(tmp_path, MESSY, name) for name in ("a.yaml", "c.yaml")]
    shared = project(tmp_path, MESSY, "d.yaml").rename(tmp_path / "shared.yaml")
    (tmp_path / "manifests" / "b.yaml").symlink_to("../shared.yaml")
    code, out, err = fmt(tmp_path)
    assert (code, out) == (1, "Formatted manifests/a.yaml\nFormatted manifests/c.yaml\n")
    assert "manifests/b.yaml: error[unwritable-file]" in err
    assert [file.read_text() for file in (*others, shared)] == [NEAT, NEAT, MESSY]
    broken = project(tmp_path, "tags:\n  - name: [a\n", "broken.yaml")
    code, out, err = fmt(tmp_path)
    assert (code, out, "manifests/broken.yaml:2:" in err) == (8, "", True)
    assert broken.read_text() == "tags:\n  - name: [a\n"


def test_a_diff_escapes_text_direction_marks(tmp_path: Path) -> None:
    project(tmp_path, "tags:\n- name: A # \u202e1000-B é\n")
    assert "+  - name: A  # \\u202e1000-B é\n" in fmt(tmp_path, "--diff")[1]


def test_a_file_with_another_ending_is_no_manifest_and_json_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("n\n")
    code, out, err = fmt(tmp_path, "m.csv")
    assert (code, out) == (8, "")
    assert "m.csv: error[not-a-manifest]: not a manifest: its name must end in .yaml, .yml or .json" in err
    project(tmp_path, '{"tags":[{"url":"x","name":"a"}]}', "m.json")
    assert fmt(tmp_path)[:2] == (0, "")


LEFT = {
    "a comment behind the last document": ("tags: []\n---\n# lost\n", "3:1", "a comment would be lost here"),
    "a comment between documents": ("tags: []\n...\n# lost\n---\ntags: []\n", "3:1", "a comment would be lost here"),
    "a comment between a key and its value": (
        "tags:\n  - name: a\n    url: # why\n      x\n\nremoved: []\n", "1:1", "between a key and its value",
    ),
    "a comment in a list": ("tags:\n- {name: a, keywords: [a, # why\n   b]}\n", "2:1", "a comment"),
    "a pair of escapes from JSON": (
        'tags:\n  - {name: "\\ud83d\\ude00"}\n', "2:1", "because of this line; write its text in another way",
    ),
    "kubernetes": ("kind: X\napiVersion: v1\nmetadata:\n    name: a\n", "1:1", "has no section"),
    "openapi": ("tags:\n- url: x\n  name: a\n\n\npaths: {}\n", "6:1", 'has no section "paths"'),
    "second document": ("tags: [{name: a}]\n---\nkind:   X\n", "3:1", "has no section"),
    "list": ("-   a\n", "1:1", "must be a mapping of sections"),
    "text": ("some   text\n", "1:1", "must be a mapping of sections"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place", "words"), LEFT.values(), ids=LEFT)
def test_what_cannot_be_formatted_is_told_with_its_place(tmp_path: Path, text: str, place: str, words: str) -> None:
    """A manifest that would lose a comment, or a file that is none, is left unchanged. The reason is in our words."""
    file = project(tmp_path, text)
    for options in ([], ["--check"]):
        code, out, err = fmt(tmp_path, *options)
        assert (code, out, file.read_text(encoding="utf-8")) == (0, "", text)
        assert f"manifests/m.yaml:{place}: warning[" in err
        assert words in err
