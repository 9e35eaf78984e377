"""`content` compares two mappings: which names are new, gone or different, and in which parts."""

from hypothesis import given
from hypothesis import strategies as st

from syncengine.content import ValueChange, compare, value_changes

SCALARS = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.booleans())
VALUES = st.dictionaries(st.sampled_from("abc"), SCALARS | st.dictionaries(st.sampled_from("xyz"), SCALARS), max_size=3)


def test_each_name_is_new_or_gone_or_different() -> None:
    compared = compare({"a": 1, "b": {"x": 1, "y": 2}, "c": 3}, {"b": {"x": 1, "y": 3}, "c": 3, "d": 4})
    assert (compared.new, compared.gone) == (("d",), ("a",))
    assert compared.different == {"b": (ValueChange(("y",), 2, 3),)}
    parts = value_changes({"words": frozenset("ab"), "gone": 1}, {"words": frozenset("bc")})
    assert [(*change.path, change.before, change.after) for change in parts] == [
        ("gone", 1, None),
        ("words", "a", None),
        ("words", None, "c"),
    ]


@given(VALUES, VALUES)
def test_there_are_changes_where_values_differ(before: dict[str, object], after: dict[str, object]) -> None:
    """And each path leads to two different values."""
    changes = value_changes(before, after)
    assert bool(changes) == (before != after)
    for change in changes:
        assert _at(before, change.path) == change.before
        assert _at(after, change.path) == change.after


def _at(value: object, path: tuple[str | int, ...]) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
