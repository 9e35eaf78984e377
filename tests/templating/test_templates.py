"""What templates of manifests and of posted time share: results, limits, and sentences about what is wrong.

`SYNCENGINE_GOLDEN=write pytest tests/templating` writes the results anew; read the difference.
"""

import json
import os
from datetime import date, datetime
from pathlib import Path

import pytest

from syncengine.posted_time.templates import Compiler, RenderTrouble
from syncengine.project.types import Written
from syncengine.templating.sandbox import TemplateSandbox
from syncengine.templating.troubles import SURPRISES, trouble
from tests.templating.cases import RESULTS, Case, Stored, of_manifests, of_posted_time, results_of


def test_templates_keep_their_results() -> None:
    """An upgrade of the program changes no tag and no narrative."""
    stored: Stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    results = results_of(stored)
    if os.environ.get("SYNCENGINE_GOLDEN") == "write":
        RESULTS.write_text(_lines(results), encoding="utf-8")
        return
    for kind, of in results.items():
        assert {text: result for text, result in of.items() if result != stored[kind][text]} == {}


def _lines(results: Stored) -> str:
    """JSON with a line for each template."""
    kinds = []
    for kind, of in results.items():
        rows = (f"{json.dumps(text)}: {json.dumps(result, ensure_ascii=False)}" for text, result in of.items())
        kinds.append(f"{json.dumps(kind)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


DOUBLED = "{% set n = namespace(x='xx') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
NESTED = "{% set x = [[[[1]*1000]*1000]*1000]*1000 %}{% set y = [[[[1]*1000]*1000]*1000]*1000 %}{{ x == y }}"
REPEATED = "{% set x = ['x' * 1000000] * 100 %}{{ x == x }}"
CAPTURED = "{% set n = namespace(x='xx') %}{% for i in range(60) %}{% set y %}{{ n.x }}{{ n.x }}{% endset %}"


@pytest.mark.parametrize("text", [DOUBLED, NESTED, REPEATED, CAPTURED + "{% set n.x = y %}{% endfor %}"])
def test_posted_time_has_the_limits_of_manifests(text: str) -> None:
    """Concatenated texts, comparisons and captures fail before they fill the memory."""
    compiled = Compiler(Path(), "syncengine.yaml").text(Written(text, 3, 5))
    assert compiled is not None
    with pytest.raises(RenderTrouble, match=r"a value would be larger|too many large values|writes more than"):
        compiled.value({})


@pytest.mark.parametrize("kind", [datetime, date])
def test_no_value_reads_a_clock(kind: type) -> None:
    """What is rendered depends on the row alone, so that the same row makes the same tag, today and from the cache."""
    assert TemplateSandbox.attributes[kind] & {"isoformat", "now", "today", "utcnow"} == {"isoformat"}


@pytest.mark.parametrize("results", [of_manifests, of_posted_time])
def test_texts_that_come_one_by_one_are_joined(results: object) -> None:
    """The method `join` accepts an iterator, as the filter does."""
    assert callable(results)
    assert results(Case("{{ '-'.join(x | map('upper')) }}", ("texts",))) == {"'B-A-A-B'": "texts"}


NUMBER = "write `| int` or `| float` for a text that is a number"
FAILS = {
    "{{ x + 1 }}": f"`+` does not take text and a number: join texts by `~`, or {NUMBER}",
    "{{ 1 - x }}": f"`-` does not take a number and text: {NUMBER}",
    "{{ none / x }}": "`/` does not take none and text",
    "{{ [1] + x }}": "`+` does not take a list and text",
    "{{ x * x }}": f"`*` takes two numbers: {NUMBER}",
    "{{ [none, x] | sort }}": "text cannot be compared with none",
    "{{ 1 // 0 }}": "it divides by zero",
    "{{ 5 in x }}": "`in` looks for text in a text, not for a number",
    "{{ 5 | list }}": "a list is needed, not a number",
    "{% for a, b in [1] %}{% endfor %}": "a list is needed, not a number",
    "{% for a, b in [[1]] %}{% endfor %}": "2 values are needed, but there are 1",
    "{% set a, b = [1, 2, 3] %}{{ a }}": "there are more than 2 values",
    "{{ none | length }}": "a text or a list is needed, not none",
    "{{ x | dictsort }}": "a mapping is needed, not a list",
    "{{ x() }}": "text is not a function: remove the parentheses behind it",
    "{{ x.foo.bar }}": "text has no `foo`",
    "{{ [1][5] }}": "a list has no element 5",
    "{{ [1][none] }}": "a list has no such element",
    "{{ none[5] }}": "none has no element 5",
    "{{ range(x) }}": "a whole number is needed",
    "{{ {[1]: 2} }}": "a list cannot be a key",
    "{{ [] | first }}": "the list is empty",
    "{{ x | upper(1) }}": "`upper` has too many arguments",
    "{{ x.upper(1) }}": "`upper` takes no such arguments",
    "{{ x | replace }}": "`replace` lacks `old` and `new`",
    "{{ x.center() }}": "`center` has too few arguments",
    "{{ x | int(base=2, q=1) }}": "`int` has no argument `q`",
    "{{ x is divisibleby }}": "`divisibleby` lacks `num`",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}": "`m` has too many arguments",
    "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}": "`m` has no argument `b`",
    "{{ [x] | select('%s') | list }}": "there is no test `%s`",
    "{{ [x] | map('y' * 200) | list }}": f"there is no filter `{'y' * 100}`",
    "{{ x | urlize(extra_schemes=['s']) }}": "`s` is no beginning of a URL, such as `https:`",
    "{{ '%s %s' | format(x) }}": "the format has more places than there are values",
    "{{ '%d' | format(x) }}": "the format does not fit text",
    "{{ '%z' | format(x) }}": "the format is not valid",
    "{{ x.encode('none') }}": "there is no encoding `none`",
    "{{ 'é'.encode('ascii') }}": "a text has characters that its encoding does not have",
    "{{ x | split('') }}": "the separator is empty",
    "{{ x.maketrans('a') }}": "a value is not of a kind that can be used here",
    "{% include 'x.j2' %}": "other templates can be used only in files that end in .j2",
}
"""Templates that fail with a text `x`, and why."""
INVALID = {
    "{{ x }": "a value or a bracket is missing before `}`",
    "{{ [x }}": "`]` is needed before `}`",
    "{{ x = 1 }}": "`}}` is needed before `=`",
    "{{ 'x }}": "the quote ' is never closed",
    "{{ x. }}": "a name is missing after the dot",
    "{{ x | uper }}": "there is no filter `uper`; did you mean `upper`?",
    "{{ x is odds }}": "there is no test `odds`; did you mean `odd`?",
    "{% if x %}": "`if` is never closed",
    "{% for a in x %}{% endif %}": "`endif` cannot stand here, where `for` is not closed",
    "{% set 1 = x %}": "only a name, but not `loop`, can be set",
    "{# x": "`comment` is never closed",
    "{{ m(a=1, a=2) }}{% macro m(a) %}{% endmacro %}": "the argument `a` is given twice",
}


@pytest.mark.parametrize(("text", "words"), FAILS.items())
def test_a_template_that_fails(text: str, words: str) -> None:
    """The sentence says what is wrong, and the cure where there is one."""
    with pytest.raises(SURPRISES) as failed:
        TemplateSandbox().from_string(text).render(x="12.345")
    assert trouble(failed.value) == words


@pytest.mark.parametrize(("text", "words"), INVALID.items())
def test_a_template_that_is_not_valid(text: str, words: str) -> None:
    """The sentence names the sign in question as it is written."""
    assert of_manifests(Case(text, ("digits",))) == {f"? the template is not valid: {words}": ""}
