"""Templates see a group by the names of the API, keep types, and treat missing values as none."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.range import Range

from syncengine.posted_time.route import Narrative
from syncengine.posted_time.templates import SCOPE, Compiler, RenderTrouble
from syncengine.project.types import Written
from syncengine.templating.names import Shape
from tests.posted_time.projects import bare_route
from tests.posted_time.samples import group, row

ROUTE = bare_route()
FULL = ROUTE.variables(group(tzOffsetMins=120, activityType={"code": "A101", "label": "Plan"}, totalDurationSecs=10000))
EMPTY = ROUTE.variables(group(tags=[], user=None, timeRows=[], totalDurationSecs=None))


def compiler(root: Path = Path()) -> Compiler:
    return Compiler(root, "syncengine.yaml")


def value(text: str, variables: dict[str, Any] = FULL) -> Any:
    compiling = compiler()
    compiled = compiling.text(Written(text, 3, 5))
    assert compiled is not None, compiling.found
    return compiled.value(variables)


VALUES: dict[str, Any] = {
    "{{ group.groupId }}": "g1",
    "{{ tag.name }}-{{ duration.seconds }}": "ACME-0042-10000",
    "[{{ tag.externalId }}]": "[]",
    "no marks": "no marks",
    "0042": "0042",
    "{{ rows | map(attribute='activity') }}": ["Word"],
    "in {{ rows | map(attribute='activity') }}": "in ['Word']",
    "{{ group['localDate'] }}": None,
    "{{ start | local('UTC') | time }}": "07:05",
    "{{ connectorConfiguration.ADD_SUMMARY_TO_NARRATIVE }}": None,
    "{{ [duration.hours, 0.5] | sum }}": "3.2778",
    "{{ duration.hours * 250.5 }}": "695.83890",
    "{{ 250.5 * duration.hours }}": "695.83890",
}


@pytest.mark.parametrize(("text", "expected"), VALUES.items())
def test_the_value_of_a_template(text: str, expected: object) -> None:
    """A single expression keeps its type. Kinds of numbers can be mixed, and text filters take numbers."""
    found = value(text)
    assert (str(found) if isinstance(expected, str) else found) == expected


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_the_time_zone_of_the_host_changes_no_local_time(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert str(value("{{ '2024-05-02' | local('America/New_York') }}")) == "2024-05-02 00:00:00-04:00"
        assert str(value("{{ '2024-05-02T07:05' | local('Europe/Vienna') }}")) == "2024-05-02 09:05:00+02:00"
    finally:
        monkeypatch.undo()
        time.tzset()


def paths(names: Mapping[str, Shape | None], before: str = "") -> Iterator[str]:
    """Every path that templates may use, from variables down to the last field."""
    for name, shape in names.items():
        yield before + name
        if shape is not None and shape.fields is not None:
            yield from paths(shape.fields, f"{before}{name}.")


@pytest.mark.parametrize("path", list(paths(SCOPE)))
def test_every_field_can_be_used_whatever_a_group_lacks(path: str) -> None:
    for variables in (FULL, EMPTY):
        value(f"{{{{ {path} }}}}", variables)


FAILING = {
    "an endless loop": "{% for a in range(99999) %}{{ 'x' * 100000 }}{% endfor %}",
    "an endless macro": "{% macro f(n) %}{{ f(n - 1) if n }}{{ f(n - 1) if n }}{% endmacro %}{{ f(200) }}",
    "internals by an attribute": "{{ ['x'] | map(attribute='__cla' ~ 'ss__') | join }}",
    "internals of itself": "{{ self['_TemplateReference' ~ '__context'] | list }}",
    "a block that it lacks": "{{ self.nothing() }}",
    "a function as a value": "{{ ''.upper }}",
    "a function in a text": "as {{ tag.name.lower }}",
    "an infinite number": "{{ 1e308 * 10 }}",
    "a text that is no number": "{{ 'nan' | round(2) }}",
}


@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING)
def test_what_only_rendering_shows_fails_with_the_place(text: str) -> None:
    """Nothing runs for ever or fills the memory, reaches Python's internals, or puts an address into the ledger."""
    with pytest.raises(RenderTrouble, match=r"^the template at syncengine.yaml:3 failed: ") as told:
        value(text)
    assert not re.search(r"Error|Operation|operand|NoneType", str(told.value))


UNSAFE = [
    "{{ group.__class__ }}",
    "{{ rows | map(attribute='activity.__class__') | list }}",
    "{{ rows | groupby('__class__') }}",
    "{{ lookup.matter.id.__class__ }}",
    "{{ duration.seconds | round_up('6x') }}",
    "{{ duration.seconds | hours('x') }}",
    "{{ 1e999 }}",
]


@pytest.mark.parametrize("text", UNSAFE)
def test_pythons_internals_and_impossible_arguments_are_errors_at_compile_time(text: str, tmp_path: Path) -> None:
    """With their line, in a setting, a condition and a narrative."""
    compiling = compiler(tmp_path)
    (tmp_path / "n.j2").write_text("one\n" + text)
    more = {"lookup": Shape("lookup", {"matter": None})}
    assert compiling.text(Written(text, 3, 5), more) is None
    assert compiling.condition(Written(text, 4, 5), more) is None
    assert compiling.file("n.j2", more) is None
    assert {(d.file, d.line) for d in compiling.found} == {("syncengine.yaml", 3), ("syncengine.yaml", 4), ("n.j2", 2)}


OF_A_DRIVER = {
    "key": b"abc",
    "period": Range(1, 5),
    "address": ip_address("::1"),
    "network": ip_network("192.0.2.0/24"),
}
PARTS = {
    "key[0]": 97,
    "key[1:]": b"bc",
    "key[:2].hex()": "6162",
    "period.lower": 1,
    "address.version": 6,
    "network.prefixlen": 24,
}


@pytest.mark.parametrize("part", PARTS)
def test_bytes_ranges_and_addresses_of_a_lookup_can_be_used(part: str) -> None:
    compiled = compiler().text(Written(f"{{{{ lookup.matter.{part} }}}}", 3, 5), {"lookup": None})
    assert compiled is not None
    assert compiled.value({"lookup": {"matter": OF_A_DRIVER}}) == PARTS[part]


WRONG = {
    "{{ tag.nmae }}": (3, "`tag` has no field `nmae`; did you mean `name`?"),
    "{{ tga.name }}": (3, "there is no variable `tga`; did you mean `tag`?"),
    "{% for r in rows %}\n{{ r.activty }}{% endfor %}": (4, "`a row` has no field `activty`; did you mean `activity`?"),
    "{% for r in group.timeRows | sort(attribute='start') %}{{ r.x }}{% endfor %}": (3, "has no field `x`"),
    "{{ tag['nmae'] }}": (3, "`tag` has no field `nmae`"),
    "{{ narrative }}": (3, "there is no variable `narrative`"),
    "{{ tag.name": (3, "`}}` is missing at the end"),
    "a\nb {% if %}": (4, "the template is not valid"),
    "{{ duration.secs }}": (3, "`duration` has no field `secs`; did you mean `seconds`?"),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.items())
def test_an_unknown_name_or_invalid_syntax_is_an_error_at_compile_time(text: str, expected: tuple[int, str]) -> None:
    """With line and column, and a suggestion for a misspelled name."""
    compiling = compiler()
    assert compiling.text(Written(text, 3, 5)) is None
    found = [(d.file, d.line, d.column, expected[1] in d.message) for d in compiling.found]
    assert found == [("syncengine.yaml", expected[0], 5, True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("tag", True), ("not tag", False), ("{{ tag.name == 'ACME-0042' }}", True), ("duration.seconds > 99999", False),
     ("tag.name in ['x']  # why", None)],
)  # fmt: skip
def test_a_condition_is_an_expression_with_or_without_braces(text: str, expected: bool | None) -> None:
    condition = compiler().condition(Written(text, 1, 1))
    assert (condition and condition.holds(FULL)) is expected


@pytest.mark.parametrize("text", ["'no'", "{{ 'no' }}", "{{ tag }} x", "{% if tag %}x{% endif %}", "tag }} {{ user"])
def test_a_condition_that_is_text_is_an_error(text: str) -> None:
    """It would always be true."""
    compiling = compiler()
    assert compiling.condition(Written(text, 2, 7)) is None
    assert [(d.code, d.line, d.column) for d in compiling.found] == [("bad-template", 2, 7)]


def test_a_narrative_file_is_checked_with_the_files_it_includes(tmp_path: Path) -> None:
    """The error names the included file and its line, or the file that is missing."""
    (tmp_path / "n.j2").write_text("{% include 'part.j2' %}\n{{ tag.name }}\n")
    found = []
    for part in (None, "one\n{{ tag.nope }}\n"):
        if part:
            (tmp_path / "part.j2").write_text(part)
        compiling = compiler(tmp_path)
        compiling.file("n.j2")
        found += [(d.file, d.line, d.code) for d in compiling.found]
    assert found == [("part.j2", None, "unreadable-file"), ("part.j2", 2, "unknown-name")]
    (tmp_path / "part.j2").write_text("one\n")
    template = compiler(tmp_path).file("n.j2")
    assert template is not None
    assert Narrative(template, newline="<br>").render(FULL) == "one<br>ACME-0042"
    assert Narrative(template, max_length=5).render(FULL) == "on..."


@pytest.mark.parametrize("name", ["/etc/passwd", "../outside.j2", "nowhere.j2"])
@pytest.mark.parametrize("tag", ["{{% include '{}' %}}", "{{% import '{}' as y %}}{{{{ y }}}}"])
def test_a_setting_can_only_include_files_of_the_project(tag: str, name: str, tmp_path: Path) -> None:
    """The error comes at start, and no file outside of the project is read."""
    (tmp_path / "project").mkdir()
    (tmp_path / "outside.j2").write_text("x")
    compiling = compiler(tmp_path / "project")
    compiling.text(Written("a " + tag.format(name), 3, 5))
    assert [(d.file, d.code) for d in compiling.found] == [(name, "unreadable-file")]


def test_the_builtin_narrative_lists_description_and_rows() -> None:
    """Each row has its local time; without any it is empty. With NARRATIVE_ONLY templates see no texts of rows."""
    rows = [row(), row(activity="@_Call_@", description=None, activityHour=2024050209)]
    whole = ROUTE.variables(group(description="Reply to the examiner", totalDurationSecs=9000, timeRows=rows))
    assert ROUTE.narrative.render(whole) == "Reply to the examiner\n\n09:05 Word: Reply.docx (1h)\n11:05 Call (1h)"
    assert ROUTE.narrative.render(EMPTY) == ""
    assert replace(ROUTE.narrative, summary=True).render(EMPTY) == "Worked: 0s"
    only = ROUTE.variables(group(description="Reply", narrativeType="NARRATIVE_ONLY"))
    assert ROUTE.narrative.render(only) == "Reply"
    parts = "{{ rows[0].activity }}{{ group.timeRows[0].description }} {{ rows[0].durationSecs }}"
    assert value(parts, only) == " 3600"


SUMMARIES: list[tuple[dict[str, Any], bool | None, bool]] = [
    ({}, None, False),
    ({"OTHER": True}, None, False),
    ({"ADD_SUMMARY_TO_NARRATIVE": True}, None, True),
    ({"ADD_SUMMARY_TO_NARRATIVE": " True "}, None, True),
    ({"ADD_SUMMARY_TO_NARRATIVE": "false"}, None, False),
    ({"ADD_SUMMARY_TO_NARRATIVE": False}, None, False),
    ({"ADD_SUMMARY_TO_NARRATIVE": False}, True, True),
    ({"ADD_SUMMARY_TO_NARRATIVE": True}, False, False),
]


@pytest.mark.parametrize(("configuration", "setting", "expected"), SUMMARIES)
def test_the_builtin_narrative_ends_in_a_summary_if_configured(
    configuration: dict[str, Any], setting: bool | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project's setting overrides that of the service. The summary has the duration, and several tags."""
    route = bare_route()
    monkeypatch.setattr(route, "configuration", configuration)
    tags = [{"name": "ACME-0042"}, {"name": "ACME-0043"}]
    variables = route.variables(group(description="Reply", totalDurationSecs=7200, tags=tags))
    end = "\n\nTags: ACME-0042, ACME-0043\nWorked: 1h\nPosted: 2h" if expected else ""
    narrative = replace(route.narrative, summary=setting)
    assert narrative.render(variables) == "Reply\n\n09:05 Word: Reply.docx (1h)" + end
