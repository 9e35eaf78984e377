"""Rows with plain values are read without nodes, and mean what the full reader says of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syncengine.errors import Problems
from tests.manifest.loading import loaded
from tests.support.profiles import tried

VALUES: list[Any] = [
    *(
        "",
        " ",
        "A",
        "a b",
        " a",
        "a ",
        "\u00a0",
        "\u00a0x",
        "\x07",
        "x\ny",
        "x\r\ny",
        "x\r",
        "\u2028",
        "e\u0301",
        "\u200b",
    ),
    *("true", "True", "PRIVATE", "private", "2024-05-01T09:00:00Z", "2024-05-01", "null", "~", "no", "0123", "12"),
    *("https://example.com/a", "javascript:x", "a,b", "client", "{{ 7 }}", "\ud83d\ude00", "# x", "- x"),
    *(0, 5, -1, 10**14, 10**16, 1.5, True, False, None),
    *([], [""], ["a", ""], ["a", "a"], [None, "a"], [["x"]], [1, True], {}, {"a": "b"}, {"a": None}, {"": "x"}),
]
texts = st.sampled_from(
    [
        *(
            "{{ row.a }}",
            "{{ row.b }}",
            "x{{ row.a }}y",
            "{{ row.a }} ",
            "{{ row.a if row.b }}",
            "{{ [row.a, row.b] }}",
        ),
        *("{{ row.a | string }}", "{{ {'k': row.a} }}", "{{ row.a }}{{ row.b }}"),
    ]
)
constants = st.sampled_from(
    ["", " ", "x", "two words", "\u00a0", "\x07", "a\nb", "PRIVATE", "true", "https://example.com", "12"]
)
scalars = st.one_of(texts, texts, constants).map(json.dumps) | st.sampled_from(
    ["x", "no", "12", "true", "null", "~", ""]
)
lists = st.lists(scalars, max_size=3).map(lambda items: f"[{', '.join(item or json.dumps('') for item in items)}]")
maps = st.lists(st.tuples(st.one_of(texts, constants).map(json.dumps), scalars), max_size=3).map(
    lambda pairs: f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"
)
FIELDS = (
    *("description", "category", "tagCategoryId", "keywords", "excludeTagNameKeyword", "metadata", "externalId", "url"),
    *("visibility", "assigneeExternalIds", "closedTimestamp", "protect"),
)


def _value(field: str) -> st.SearchStrategy[str]:
    likely = {"keywords": lists, "assigneeExternalIds": lists, "metadata": maps}.get(field, scalars)
    return st.integers(0, 19).flatmap(lambda n: likely if n else st.one_of(scalars, lists, maps))


@st.composite
def blocks(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=2, unique=True))
    fields = "".join(f"        {name}: {draw(_value(name))}\n" for name in names)
    name = draw(st.sampled_from(["Tag {{ row.n }}"] * 6 + ["{{ row.a }}", "Tag {{ row.a }}"]))
    block = f"generate:\n  - forEach: {{jsonl: ../r.jsonl}}\n    tags:\n      - name: {json.dumps(name)}\n{fields}"
    return draw(st.sampled_from(["", "defaults: {tags: {visibility: PUBLIC, metadata: {k: v}}}\n"])) + block


usual = st.sampled_from(["", "word", "two words", 5, None, ["a", "b"], "2024-05-01T09:00:00Z", "true"])
cells = st.one_of(usual, usual, st.sampled_from(VALUES))
rows = st.lists(st.tuples(cells, cells), min_size=1, max_size=3)


def read(folder: Path, block: str, lines: str) -> Any:
    """What a project's resources are, or what is wrong with them."""
    try:
        desired = loaded(folder, {"manifests/m.yaml": block, "r.jsonl": lines})
    except Problems as problems:
        return [(found.code, found.message, found.line, found.column) for found in problems.found]
    warnings = [(found.code, found.message, found.line, found.column) for found in desired.diagnostics]
    return list(desired.resources.values()), warnings


@settings(max_examples=tried(300), suppress_health_check=list(HealthCheck), deadline=None)
@given(blocks(), rows)
def test_rows_are_read_as_the_full_reader_reads_them(block: str, values: list[tuple[Any, Any]]) -> None:
    """An empty list of former names, which only the full reader reads, changes nothing: no value and no error."""
    lines = "".join(json.dumps({"n": n, "a": a, "b": b}) + "\n" for n, (a, b) in enumerate(values))
    with tempfile.TemporaryDirectory() as folder:
        quick = read(Path(folder, "quick"), block, lines)
        full = read(Path(folder, "full"), f"{block}        previously: ['{{{{ \"\" }}}}']\n", lines)
    assert quick == full
