"""Manifests of a pull request are untrusted code: their templates reach nothing else, and end in time."""

import gc
import resource
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Scalar
from syncengine.manifest.generate.scalars import Compiled
from syncengine.project.load import load_project
from syncengine.resource import Row
from syncengine.templating.bounds import MAX_SECONDS, Allowance, OutOfBounds
from syncengine.templating.sandbox import TemplateSandbox
from tests.manifest.loading import block, counted, errors, loaded, problems, write
from tests.templating.cases import Mark

pytestmark = pytest.mark.slow

ESCAPES = {
    "class": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "class by subscript": "{{ ''['__class__'] }}",
    "attr filter": "{{ ''|attr('__class__') }}",
    "map attribute": "{{ ['']|map(attribute='__class__')|list }}",
    "format string": "{{ '{0.__class__}'.format('') }}",
    "format filter": "{{ '%1000000000d'|format(1) }}",
    "globals of range": "{{ range.__globals__ }}",
    "function globals": "{{ dict.fromkeys.__self__ }}",
    "cycler": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "self": "{{ self.__init__.__globals__ }}",
    "self of the template": "{{ self._TemplateReference__context }}",
    "lipsum": "{{ lipsum.__globals__['os'] }}",
    "macro": "{% macro m() %}{% endmacro %}{{ m.__call__ }}{{ m._func }}",
    "environment of the loop": "{% for a in [1] %}{{ loop._undefined }}{% endfor %}",
    "namespace": "{{ namespace(a=1).__init__ }}",
    "generator": "{{ (['a']|map('upper')).gi_frame }}",
    "row": "{{ row.row }}",
    "dict update": "{{ var.update({'a': 1}) }}",
    "environment": "{{ env.SYNCENGINE_API_KEY }}",
    "percent": "{{ '%1000000000d' % 1 }}",
    "chance": "{{ ['a', 'b']|random }}",
}
NESTED = "{% set x = [[[[1]*1000]*1000]*1000]*1000 %}{% set y = [[[[1]*1000]*1000]*1000]*1000 %}"
DOUBLED = "{% set n = namespace(x=1) %}{% for i in range(99) %}{% set n.x = (n.x, n.x) %}{% endfor %}"
LARGE_TEXT = "{% set x = '😀' * 999999 %}"
HUNGRY = {
    "range": "{{ range(1000000000)|list }}",
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "repeated text": "{{ 'x' * 10000000000 }}",
    "power": "{{ 10 ** (10 ** 10) }}",
    "product": "{% set n = namespace(x=10) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}{{ n.x }}",
    "doubled text": "{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "doubled by plus": "{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "doubled list": "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
    "{{ n.x }}",
    "replace": "{{ ('x' * 9999)|replace('x', 'y' * 99999) }}",
    "join": "{{ (range(99999)|list)|join('x' * 99999) }}",
    "macro of itself": "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "centre": "{{ 'a'|center(10000000000) }}",
    "padding": "{{ 'a'.ljust(10000000000) }}",
    "indent": "{{ 'a'|indent(10000000000, true) }}",
    "maps of maps": "{{ range(99999)" + "|map('string')" * 40 + "|list|length }}",
    "sorted again and again": "{{ range(99999)|list" + "|sort|reverse|list" * 40 + "|length }}",
    "empty pieces": "{% set l = range(9999)|list %}{% for a in l %}{% for b in l %}{{ '' }}{% endfor %}{% endfor %}",
    "results of methods": LARGE_TEXT + "{{ [" + "x.upper(), " * 400 + "]|length }}",
    "slices": LARGE_TEXT + "{{ [" + "x[1:], " * 400 + "]|length }}",
    "lists of a text": LARGE_TEXT + "{{ [" + "x|list, " * 400 + "]|length }}",
    "small letters to sort by": "{{ (['X' * 999999] * 99999)|sort|length }}",
    "small letters of an attribute": "{{ ([{'a': 'X' * 999999}] * 99999)|unique(attribute='a')|list|length }}",
    "text of nested lists": NESTED + "{{ x|upper|length }}",
    "nested lists that are compared": NESTED + "{{ x == y }}",
    "a test of nested lists": NESTED + "{{ [x]|select('eq', y)|list|length }}",
    "nested lists that are counted": NESTED + "{{ [x].count(y) }}",
    "nested lists that are sorted": NESTED + "{{ [x, y]|sort|length }}",
    "nested lists that changed": NESTED + "{% for a in [x, y] %}{{ loop.changed(a) }}{% endfor %}",
    "a key of doubled tuples": DOUBLED + "{{ {n.x: 1}|length }}",
    "a place of doubled tuples": DOUBLED + "{{ {}[n.x] }}",
    "a very deep tuple": "{% set n = namespace(x=1) %}{% for i in range(99999) %}{% set n.x = (n.x,) %}{% endfor %}"
    "{{ {n.x: 1}|length }}",
    "digits of a whole number": "{{ 1|round(-9999999999) }}",
    "digits to round up to": "{{ 1.5|round(9999999999, 'ceil') }}",
    "a long number of a text": "{{ ('1' * 999999)|int(0, 16) % 7 }}",
    "what is looked for from behind": "{{ ('a' * 999999).rfind('b' ~ 'a' * 499999) }}",
    "negative products": "{% set q = 'x' * (-10**15) %}{% set n = namespace(a=[]) %}{% for i in range(2000) %}"
    "{% set n.a = [n.a, 'x' * 999999] %}{% endfor %}x",
    "bytes of a number": "{{ (1).to_bytes(10000000000, 'big')|length }}",
    "repeated bytes": "{{ ('b' * 99999).encode().join([''.encode()] * 99999)|length }}",
    "words joined by a long text": "{{ ('a ' * 300000)|slug('x' * 9999)|length }}",
    "what is trimmed": "{{ ('a' * 999999)|trim('b' * 999999 ~ 'a')|length }}",
}
BLOCK = "generate:\n  - forEach: {csv: ../rows.csv}\n    tags:\n      - name: T\n        description: |\n          %s\n"
WRONG = {
    "a part of none": ("(none.x) and true", "none has no `x`"),
    "a class": ("(true.__class__) and true", "has no `__class__`"),
    "a class of a class": ("((1).__class__.__base__) and true", "has no `__class__`"),
    "a sum of none": ("(none + 1) and true", "`+` does not take none"),
    "nested lists": ("[[[1]*1000]*1000]*1000", "a value would be larger than"),
    "nested ranges": ("[range(99999)|list]*99999", "a value would be larger than"),
    "nested lists in a mapping": ("{'a': [[['x']*1000]*1000]*1000}", "a value would be larger than"),
}


@pytest.mark.parametrize(("value", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_value_that_always_fails_is_an_error(tmp_path: Path, value: str, words: str) -> None:
    """Even without a row, at its place: as a condition, in a text template, and as a bare value. A value that is a list
    counts for the limit of memory with all its parts, repeated ones too."""
    when = f'generate:\n  - forEach: {{csv: ../r.csv}}\n    when: "{value}"\n    tags: [{{name: T}}]\n'
    bare = block("csv: ../r.csv", f'name: T, keywords: "{{{{ {value} }}}}"')
    text = f"#\n{{% if {value} %}}{{% endif %}}{{{{ {value} }}}}\n"
    for file, content, place in (("m.yaml", when, (3, 11)), ("m.yaml", bare, (3, 32)), ("m.yaml.j2", text, (2, None))):
        (found, *_) = problems(tmp_path / str(place), {"r.csv": "a\n1\n", f"manifests/{file}": content})
        assert (found.code, found.line, found.column if place[1] else None) == ("bad-template", *place)
        assert words in found.message


@pytest.mark.parametrize("way", ["include ['a.j2', 'b.j2']", "extends ['a.j2']"])
def test_the_first_existing_template_of_a_list_is_included(tmp_path: Path, way: str) -> None:
    """If none exists, the error has the line of the statement."""
    text = f"#\n{{% {way} %}}\n"
    (found,) = problems(tmp_path, {"manifests/m.yaml.j2": text})
    assert (found.code, found.file, found.line) == ("bad-template", "manifests/m.yaml.j2", 2)
    if "include" in way:
        (key,) = loaded(tmp_path, {"b.j2": "tags: [{name: B}]\n"}).resources
        assert key.name == "B"
        (key,) = loaded(tmp_path, {"a.j2": "tags: [{name: A}]\n"}).resources
        assert key.name == "A"


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Turn off the garbage collector, as the program does: in its callbacks the exception of a limit would be lost."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates of a run may take a seventh of a second instead of thirty seconds."""
    monkeypatch.setattr(Allowance.__init__, "__defaults__", (0.15,))


@pytest.mark.usefixtures("short_time")
@pytest.mark.parametrize("template", [*ESCAPES.values(), *HUNGRY.values()], ids=[*ESCAPES, *HUNGRY])
def test_templates_leave_no_sandbox_run_for_ever_or_fill_the_memory(tmp_path: Path, template: str) -> None:
    """Attributes, functions and filters are allowed one by one; all others are undefined, in a block and in a text."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (found, *_) = problems(tmp_path / "a", {"rows.csv": "a\n1\n", "manifests/m.yaml": BLOCK % template})
    assert found.code in ("bad-template", "unknown-name")
    assert (found.file, found.line is not None) == ("manifests/m.yaml", True)
    text = f"tags:\n  - name: T\n    description: {template}\n"
    (found, *_) = problems(tmp_path / "b", {"manifests/m.yaml.j2": text})
    assert found.code in ("bad-template", "unknown-name")
    assert (found.file, found.line) == ("manifests/m.yaml.j2", 3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 1_300_000


def test_computed_numbers_have_a_limit(tmp_path: Path) -> None:
    growing = "{% set n = namespace(x=row.n) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}{{ n.x }}"
    files = {"r.json": '[{"n": 1e300}]', "manifests/m.yaml": block("json: ../r.json", f"name: '{growing}'")}
    (found,) = problems(tmp_path, files)
    assert (found.code, found.line) == ("bad-template", 3)
    assert "a number would be too large" in found.message


def compiled(text: str, when: str = "true") -> tuple[Any, Any]:
    """A block's value and its condition, as functions of a row."""
    findings = Collector("m.yaml")
    made = Compiled(TemplateSandbox(), ("row", "var", "env"), findings)
    leaf = made.leaf(Scalar(text, Mark(0, 0), '"'))
    condition = made.condition(Scalar(when, Mark(0, 0), '"'))
    assert leaf is not None and condition is not None
    assert findings.found == []
    return lambda row: (leaf.value(row),), condition.value


def test_templates_are_compiled_once_for_all_rows() -> None:
    values, holds = compiled("{{ row.a }}", "row.a != 'x'")
    assert (values({"row": {"a": "x"}}), holds({"row": {"a": "x"}})) == (("x",), False)
    calls, found = counted(lambda: [(values({"row": {"a": n}}), holds({"row": {"a": n}})) for n in range(100)])
    assert found == [((n,), True) for n in range(100)]
    assert calls < 100 * 200  # to compile one takes thousands


@pytest.mark.parametrize(
    "value", ["row.a", "(['é' * 999999] * 9999) | map('slug') | list", "[" + "('é' * 999999) | slug, " * 2000 + "]"]
)
def test_all_rows_of_a_block_have_one_deadline(value: str) -> None:
    """The limit holds for all rows together, however small each value is, and between many slow filters."""
    values, holds = compiled(f"{{{{ {value} }}}}")
    for function in (values, holds) if value == "row.a" else (values,):
        with pytest.raises(OutOfBounds, match="too long"), Allowance(0.1).spend():
            while True:
                function({"row": {"a": "x"}})


def test_all_rows_of_a_block_have_one_bound_of_memory() -> None:
    """The limit holds for all rows together, and grows with their number."""
    values, _ = compiled("{{ row.a * 999999 }}")
    with pytest.raises(OutOfBounds, match="needs too much memory"), Allowance().spend(10):
        kept = [values({"row": {"a": "é"}}) for _ in range(1000)]
    with Allowance().spend(100_000):
        kept = [values({"row": {"a": "é"}}) for _ in range(700)]
    assert len(kept) == 700


def test_processor_time_of_the_main_thread_is_limited() -> None:
    """Waiting costs nothing, so that a busy machine accepts the same manifests; each row adds a millisecond."""

    def spend(allowance: Allowance, rows: int = 1) -> float:
        """Use 0.3 seconds of processor time within an allowance, and return what remains of it."""
        with allowance.spend(rows):
            end = time.thread_time() + 0.3
            while time.thread_time() < end:
                pass
        return allowance.remaining

    with pytest.raises(OutOfBounds):
        spend(Allowance(0.01))
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    with ThreadPoolExecutor() as pool:
        pool.submit(spend, Allowance(0.01)).result()
    assert spend(Allowance(0.01), 1000) == 0.01
    waiting = Allowance()
    with waiting.spend():
        time.sleep(0.5)
    assert MAX_SECONDS - waiting.remaining < 0.4


@pytest.mark.usefixtures("short_time")
def test_a_block_that_takes_too_much_stops_at_its_row(tmp_path: Path) -> None:
    """All remaining rows share one error, and nothing of the block is used."""
    rows = "n\n" + "".join(f"{n}\n" for n in range(1000))
    text = block("csv: ../r.csv", "name: 'T{{ row.n }}', keywords: \"{{ range(99999) | map('slug') | list }}\"")
    (error,) = errors(tmp_path, {"r.csv": rows, "manifests/m.yaml": text})
    assert (error.code, error.line, error.data is not None) == ("bad-template", 2, True)


SECRETS = """\
version: 1
service: {apiKey: {file: key}}
sources: {crm: {http: {url: https://crm.example.com, headers: {Authorization: {file: sub/../token}}}}}
environments: {prod: {service: {apiKey: {file: prod-key}}}}
postedTime:
  deliver: [{name: pms, http: {url: https://pms.example.com, headers: {Authorization: {file: pms-token}}}}]
"""
SECRET_FILES = ("key", "token", "prod-key", "pms-token")
"""Databases are tried in tests/settings/test_secrets.py."""


@pytest.mark.parametrize(
    "path",
    [
        *("../../outside.csv", "/etc/passwd", "../link.csv", "../.env", "../.git/config"),
        *(f"../{name}" for name in SECRET_FILES),
    ],
)
def test_sources_stay_inside_the_project(tmp_path: Path, path: str) -> None:
    """Links out of the project, hidden files, the state, and files with secrets of any environment are refused."""
    (tmp_path / "outside.csv").write_text("a\n1\n")
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    for name in (".env", ".git/config", *SECRET_FILES):
        (folder / name).write_text("a\n1\n")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    (found,) = problems(folder, {"syncengine.yaml": SECRETS, "manifests/m.yaml": block(f"csv: {path}")})
    assert (found.code, found.file, found.line, found.column) == ("bad-source", "manifests/m.yaml", 2, 20)
    template = f"{{% for r in data('{path}', kind='csv') %}}{{% endfor %}}\n"
    (found,) = problems(folder, {"manifests/m.yaml": "", "manifests/n.yaml.j2": template})
    assert (found.code, found.file, found.line) == ("bad-source", "manifests/n.yaml.j2", 1)


@pytest.mark.parametrize("written", ["../exports", "absolute"])
def test_the_project_file_may_list_folders_outside(tmp_path: Path, written: str) -> None:
    """`dataFolders` allows data of other folders; hidden files, links out and templates stay refused."""
    exports, folder = tmp_path / "exports", tmp_path / "project"
    listed = str(exports) if written == "absolute" else written
    (exports / ".git").mkdir(parents=True)
    for file in (exports / "a.csv", exports / ".git" / "a.csv", tmp_path / "a.csv", exports / "a.j2"):
        file.write_text("n\nOUT-1\n")
    (exports / "link.csv").symlink_to(tmp_path / "a.csv")
    settings = f"version: 1\ndataFolders: ['{listed}']\n"
    files = {"syncengine.yaml": settings, "manifests/m.yaml": block("csv: ../../exports/a.csv")}
    (made,) = loaded(folder, files).resources.values()
    assert (made.key.name, made.source.data) == ("OUT-1", Row(f"{listed}/a.csv", 2))
    for path in ("../../exports/.git/a.csv", "../../exports/link.csv", "../../a.csv"):
        (found,) = problems(folder, {"manifests/m.yaml": block(f"csv: {path}")})
        assert found.code == "bad-source"
    (found,) = problems(folder, {"manifests/m.yaml": "", "manifests/n.yaml.j2": "{% include '../exports/a.j2' %}"})
    assert found.code == "bad-template"


HELD = (
    "service: {apiKey: {env: HELD}}",
    "state: {env: HELD}",
    "sources: {pms: {sql: {env: HELD}}}",
    "sources: {crm: {http: {url: https://crm.example.com, headers: {X: {env: HELD}}}}}",
    "environments: {prod: {service: {apiKey: {env: HELD}}}}",
    "postedTime: {webhook: {callerKey: {env: HELD}}}",
)
OWN = ("SYNCENGINE_API_KEY", "SYNCENGINE_STATE")


@pytest.mark.parametrize(
    ("settings", "column"),
    [
        *((f"allowEnv: [TEAM, HELD]\n{secret}", 18) for secret in HELD),
        *((f"environments: {{prod: {{allowEnv: [{name}]}}}}", 34) for name in OWN),
        *((f"allowEnv: [{{name: {name}, notSecret: true}}]\n{HELD[0]}", 19) for name in ("HELD", *OWN)),
    ],
)
def test_a_variable_that_holds_a_secret_cannot_be_allowed(tmp_path: Path, settings: str, column: int) -> None:
    """That of any environment, and our own, which override the project file; nor can it be declared not secret."""
    (found,) = problems(tmp_path, {"syncengine.yaml": f"version: 1\n{settings}\n"})
    assert (found.code, found.line, found.column) == ("secret-allowed", 2, column)
    assert found.message.endswith("which holds a secret: templates must not read it")


@pytest.mark.parametrize(
    "name",
    [
        *("CRM_TOKEN", "MY_SECRETS", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "apikey", "PGPASSWORD"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "DATABASE_URL", "SSH_PASSPHRASE", "SESSION_COOKIE", "MY_PWD", "GH_PAT"),
    ],
)
def test_a_name_like_a_secrets_must_be_declared_not_secret(tmp_path: Path, name: str) -> None:
    """Metadata named `env` is no reference to a secret."""
    text = f"version: 1\nallowEnv: [TEAM, {name}, TEAM]\ndefaults: {{tags: {{metadata: {{env: TEAM}}}}}}\n"
    (found,) = problems(tmp_path, {"syncengine.yaml": text})
    assert (found.code, found.line, found.column) == ("secret-allowed", 2, 18)
    cure = f"{{name: {name}, notSecret: true}}"
    assert found.message.endswith(f"if it is not a secret, write {cure}")
    write(tmp_path, {"syncengine.yaml": text.replace(name, cure)})
    assert load_project(folder=tmp_path, environ={}).allow_env == ("TEAM", name)


@pytest.mark.parametrize("name", ["../outside.j2", "/etc/passwd", "syncengine.yaml", ".hidden.j2", "link.j2"])
def test_includes_stay_inside_the_project(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "outside.j2").write_text("x")
    (folder / ".hidden.j2").write_text("x")
    (folder / "link.j2").symlink_to(tmp_path / "outside.j2")
    (found,) = problems(
        folder, {"syncengine.yaml": "version: 1\n", "manifests/n.yaml.j2": f"# a\n{{% include '{name}' %}}\n"}
    )
    assert (found.code, found.file, found.line) == ("bad-template", "manifests/n.yaml.j2", 2)


RUNAWAY = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}x"
FORTY = {
    "files": {f"manifests/m{n:02}.yaml.j2": f"tags:\n  - name: T{n}{RUNAWAY}\n" for n in range(40)},
    "blocks": {f"manifests/m{n:02}.yaml": block("csv: ../r.csv", f"name: 'T{n}{RUNAWAY}'") for n in range(40)},
    "paths": {f"manifests/m{n:02}.yaml": block(f"csv: '{RUNAWAY}'") for n in range(40)},
}


@pytest.mark.usefixtures("short_time")
@pytest.mark.parametrize("kind", FORTY)
def test_forty_templates_without_end_take_the_time_of_one(tmp_path: Path, kind: str) -> None:
    """One template is stopped, and the other 39 are not started."""
    before = time.process_time()
    messages = [d.message for d in problems(tmp_path, {"r.csv": "n\nA\n", **FORTY[kind]})]
    assert sum("the template takes too long" in message for message in messages) == 1
    assert sum("other templates have used up the 30 s" in message for message in messages) == 39
    assert time.process_time() - before < 5
