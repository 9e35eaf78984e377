"""Places are passed as data beside messages, and never parsed from a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncengine.manifest.sources.records import SourceTrouble
from tests.manifest.loading import problems

TWICE = """\
{# A comment that #}
{# writes no line of the result. #}
{% for n in range(3) -%}
{% endfor -%}
tags:
  - name: Alpha
    description: one
    description: two
"""
MISLEADING = """\
{# A comment of
two lines. #}
generate:
  - forEach: {csv: "../line 3", distinct: number}
    tags: [{name: "{{ '{{ row.title }}' }}"}]
"""


def test_a_message_about_two_lines_names_both_of_the_template(tmp_path: Path) -> None:
    """Both lines are the template's, since nobody sees the lines of the rendered result."""
    (found,) = problems(tmp_path, {"manifests/m.yaml.j2": TWICE})
    assert (found.code, found.line, found.message) == ("duplicate-key", 8, 'the key "description" is already on line 7')


def test_a_file_name_that_looks_like_a_place_is_no_place(tmp_path: Path) -> None:
    """A data file named `line 3` does not change the place of an error."""
    files = {"manifests/m.yaml.j2": MISLEADING, "line 3": "title,note\nAlpha,a\n"}
    (found,) = problems(tmp_path, files)
    message = "line 3:2: `distinct`: there is no `number` in line 3"
    assert (found.line, found.message) == (4, message)


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (SourceTrouble("it is gone"), "it is gone"),
        (SourceTrouble("it is gone", "a.csv"), "a.csv: it is gone"),
        (SourceTrouble("it is gone", "a.csv", 3), "a.csv:3: it is gone"),
        (SourceTrouble("it is gone", "a.csv", 3, 4), "a.csv:3:4: it is gone"),
        (SourceTrouble(*SourceTrouble("it is gone", "a.csv", 3).args), "a.csv:3: it is gone"),
    ],
)
def test_a_trouble_is_a_sentence_and_a_place(trouble: SourceTrouble, sentence: str) -> None:
    """The text of a SourceTrouble has its place, and its `message` has not."""
    assert (str(trouble), trouble.message) == (sentence, "it is gone")
