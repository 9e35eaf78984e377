"""The source map of a rendered template: the line that wrote the text at a place."""

from __future__ import annotations

import pytest

from syncengine.manifest.read_template import Places
from syncengine.resource import Source

TEXT = "tags:\n  - name: A\r\n\n  - name: B"
"""Its lines begin at 0, 6, 19 and 20."""
PLACES = Places(TEXT, [(offset, Source("t.j2", line)) for offset, line in ((0, 1), (6, 5), (22, 7), (28, 9))])


@pytest.mark.parametrize(
    ("line", "column", "writer"),
    [
        *((1, 1, 1), (2, 1, 5), (2, 3, 5), (4, 1, 7), (4, 8, 7), (4, 9, 9)),  # leading blanks are skipped
        (3, 1, 5),  # an empty line counts by its end, which the line before wrote
        *((1, 99, 1), (4, 99, 9)),  # a column after the end of the line means its last character
        *((99, 1, 7), (0, 1, 1)),  # a line after the end means the last line
    ],
)
def test_a_place_is_that_of_the_next_visible_character_of_its_line(line: int, column: int, writer: int) -> None:
    """The blanks before a resource's key may come from another line of the template."""
    assert PLACES.at(line, column).line == writer
