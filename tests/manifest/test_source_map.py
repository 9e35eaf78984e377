"""The source map of a rendered template: the file, line and data row that wrote each character."""

from __future__ import annotations

import pytest

from syncengine.manifest.read_template import Marks, Places
from syncengine.resource import Row, Source

ROWS = [Row("data.csv", 2), Row("data.csv", 3)]
FIRST = Source("all.yaml.j2", 1)

MARKED = {
    "nothing": ("", "", [(0, FIRST)]),
    "no marks": ("tags:\n", "tags:\n", [(0, FIRST)]),
    "a mark at the beginning": ("<0:4>tags:", "tags:", [(0, Source("all.yaml.j2", 4))]),
    "a line": ("tags:\n<0:2>- name: A", "tags:\n- name: A", [(0, FIRST), (6, Source("all.yaml.j2", 2))]),
    "a row": ("a<r0><0:2>b", "ab", [(0, FIRST), (1, Source("all.yaml.j2", 2, ROWS[0]))]),
    "another row": (
        "<(><r0><0:2>a<r1><0:2>b<)>c", "abc",
        [(0, Source("all.yaml.j2", 2, ROWS[0])), (1, Source("all.yaml.j2", 2, ROWS[1])), (2, FIRST)],
    ),
    "a loop in a loop": (
        "<(><r0>a<(>b<r1>c<)>d<)>", "abcd",
        [(0, FIRST._replace(data=ROWS[0])), (2, FIRST._replace(data=ROWS[1])), (3, FIRST._replace(data=ROWS[0]))],
    ),
    "another file": ("a<1:1>b", "ab", [(0, FIRST), (1, Source("part.j2", 1))]),
    "a mark that writes nothing": ("a<0:2><0:3>b", "ab", [(0, FIRST), (1, Source("all.yaml.j2", 3))]),
    "a mark that says the same again": ("a<0:1>b<0:1>c", "abc", [(0, FIRST)]),
    "a mark at the end": ("a<0:9>", "a", [(0, FIRST)]),
}  # fmt: skip


@pytest.mark.parametrize(("marked", "text", "marks"), MARKED.values(), ids=MARKED)
def test_marks_are_removed_from_the_text_and_listed(marked: str, text: str, marks: list[tuple[int, Source]]) -> None:
    """A mark is listed where text of another line, file or row begins. One without text is dropped."""
    written = Marks("token")
    written.files += ["all.yaml.j2", "part.j2"]
    written.rows += ROWS
    left, places = written.places(marked.replace("<", "\x02token").replace(">", "\x03"))
    assert (left, [tuple(mark) for mark in places.marks]) == (text, marks)


TEXT = "tags:\n  - name: A\r\n\n  - name: B"
"""Its lines begin at 0, 6, 19 and 20."""
PLACES = Places(TEXT, [(offset, Source("t.j2", line)) for offset, line in ((0, 1), (6, 5), (22, 7), (28, 9))])


@pytest.mark.parametrize(
    ("line", "column", "writer"),
    [
        (1, 1, 1),
        (2, 1, 5),  # leading blanks are skipped
        (2, 3, 5),
        (3, 1, 5),  # an empty line counts by its end, which the line before wrote
        (4, 1, 7),
        (4, 8, 7),
        (4, 9, 9),
        (1, 99, 1),  # a column after the end of the line means its last character
        (4, 99, 9),
        (99, 1, 7),  # a line after the end means the last line
        (0, 1, 1),
    ],
)
def test_a_place_is_that_of_the_next_visible_character_of_its_line(line: int, column: int, writer: int) -> None:
    """The blanks before a resource's key may come from another line of the template."""
    assert PLACES.at(line, column).line == writer


def test_a_rendered_line_maps_to_the_template_line_of_its_beginning() -> None:
    """Several lines of a template may have written parts of it."""
    assert [PLACES.at(line, 1).line for line in (1, 2, 4)] == [1, 5, 7]
