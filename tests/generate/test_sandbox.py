"""Manifests of a pull request are untrusted code: what their templates cannot reach, and how soon they end."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.manifest.loading import problems

ESCAPES = {
    "class": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "class by subscript": "{{ ''['__class__'] }}",
    "attr filter": "{{ ''|attr('__class__') }}",
    "map attribute": "{{ ['']|map(attribute='__class__')|list }}",
    "format string": "{{ '{0.__class__}'.format('') }}",
    "format filter": "{{ '%s'|format(1) }}",
    "globals of range": "{{ range.__globals__ }}",
    "function globals": "{{ dict.fromkeys.__self__ }}",
    "cycler": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "self": "{{ self.__init__.__globals__ }}",
    "self of the template": "{{ self._TemplateReference__context }}",
    "lipsum": "{{ lipsum.__globals__['os'] }}",
    "loop": "{% for a in [1] %}{{ loop.__class__ }}{% endfor %}",
    "macro": "{% macro m() %}{% endmacro %}{{ m.__call__ }}{{ m._func }}",
    "environment of the loop": "{% for a in [1] %}{{ loop._undefined }}{% endfor %}",
    "namespace": "{{ namespace(a=1).__init__ }}",
    "generator": "{{ (['a']|map('upper')).gi_frame }}",
    "row": "{{ row.row }}",
    "dict update": "{{ var.update({'a': 1}) }}",
    "environment": "{{ env.SYNCENGINE_API_KEY }}",
    "percent": "{{ '%1000000000d' % 1 }}",
}
HUNGRY = {
    "range": "{{ range(1000000000)|list }}",
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "loops of lists": "{% set l = range(9999)|list %}{% for a in l %}{% for b in l %}{% for c in l %}{% endfor %}"
    "{% endfor %}{% endfor %}",
    "repeated text": "{{ 'x' * 10000000000 }}",
    "power": "{{ 10 ** (10 ** 10) }}",
    "product": "{% set n = namespace(x=10) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}{{ n.x }}",
    "doubled text": "{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "doubled by plus": "{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "doubled list": "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
    "{{ n.x }}",
    "doubled capture": "{% set n = namespace(x='xx') %}{% for i in range(99) %}{% set y %}{{ n.x }}{{ n.x }}"
    "{% endset %}{% set n.x = y %}{% endfor %}",
    "replace": "{{ ('x' * 9999)|replace('x', 'y' * 99999) }}",
    "join": "{{ (range(99999)|list)|join('x' * 99999) }}",
    "macro of itself": "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "centre": "{{ 'a'|center(10000000000) }}",
    "padding": "{{ 'a'.ljust(10000000000) }}",
    "indent": "{{ 'a'|indent(10000000000, true) }}",
    "json of doubled": "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
    "{{ n.x|tojson }}",
}
BLOCK = "generate:\n  - forEach: {csv: ../rows.csv}\n    tags:\n      - name: T\n        description: |\n          %s\n"


def refused_in_both(folder: Path, template: str) -> None:
    """As a value of a block, and as a file."""
    (found, *_) = problems(folder / "a", {"rows.csv": "a\n1\n", "manifests/m.yaml": BLOCK % template})
    assert found.code in ("bad-template", "unknown-name")
    assert (found.file, found.line is not None) == ("manifests/m.yaml", True)
    (found, *_) = problems(folder / "b", {"manifests/m.yaml.j2": f"tags:\n  - name: T\n    description: {template}\n"})
    assert found.code in ("bad-template", "unknown-name")
    assert (found.file, found.line) == ("manifests/m.yaml.j2", 3)


@pytest.mark.parametrize("template", ESCAPES.values(), ids=ESCAPES.keys())
def test_there_is_nothing_to_escape_to(tmp_path: Path, template: str) -> None:
    """Attributes, functions and filters are allowed one by one; the rest is undefined."""
    refused_in_both(tmp_path, template)


@pytest.mark.parametrize("template", HUNGRY.values(), ids=HUNGRY.keys())
def test_no_template_runs_for_ever_or_fills_the_memory(tmp_path: Path, template: str) -> None:
    """Steps, time, sizes of values and of the result are bounded."""
    began = time.monotonic()
    refused_in_both(tmp_path, template)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "path", ["../../outside.csv", "/etc/passwd", "../link.csv", "../.env", "../.git/config", "../key"]
)
def test_sources_stay_inside_the_project(tmp_path: Path, path: str) -> None:
    """Symlinks are resolved; hidden files and files of secrets are no sources."""
    (tmp_path / "outside.csv").write_text("a\n1\n")
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    for name in (".env", ".git/config", "key"):
        (folder / name).write_text("a\n1\n")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    settings = "version: 1\nservice: {apiKey: {file: key}}\n"
    block = f"generate:\n  - forEach: {{csv: {path}}}\n    tags: [{{name: '{{{{ row.a }}}}'}}]\n"
    (found,) = problems(folder, {"syncengine.yaml": settings, "manifests/m.yaml": block})
    assert (found.code, found.file, found.line, found.column) == ("bad-source", "manifests/m.yaml", 2, 20)
    template = f"{{% for r in data('{path}', kind='csv') %}}{{% endfor %}}\n"
    (found,) = problems(folder, {"manifests/m.yaml": "", "manifests/n.yaml.j2": template})
    assert (found.code, found.file, found.line) == ("bad-source", "manifests/n.yaml.j2", 1)


@pytest.mark.parametrize("name", ["../outside.j2", "/etc/passwd", "syncengine.yaml", ".hidden.j2"])
def test_includes_stay_inside_the_project(tmp_path: Path, name: str) -> None:
    """Only templates of the project are included."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "outside.j2").write_text("x")
    (folder / ".hidden.j2").write_text("x")
    (found,) = problems(
        folder, {"syncengine.yaml": "version: 1\n", "manifests/n.yaml.j2": f"# a\n{{% include '{name}' %}}\n"}
    )
    assert (found.code, found.file, found.line) == ("bad-template", "manifests/n.yaml.j2", 2)
