"""A source that fails, or has no rows where it had some, is never taken for "delete all" (docs/planning.md 2.7)."""

import os
from pathlib import Path

import pytest

from tests.cli.program import Ended, Project
from tests.cli.service import Service
from tests.manifest.loading import block, loop, problems, write

pytestmark = pytest.mark.slow

HAND = "tags:\n" + "".join(f"  - name: HAND-{n}\n" for n in range(100))


def templated(project: Project, text: str, **files: str) -> None:
    """A text template beside a hundred tags written by hand."""
    write(project.folder, {"manifests/m.yaml.j2": text, "manifests/hand.yaml": HAND, **files})


def empty_at(done: Ended) -> tuple[str, int]:
    """The place of the source whose emptiness is the only error."""
    assert (done.code, done.codes) == (8, ["source-empty"]), (done.out, done.err)
    (found,) = done.document["diagnostics"]
    return found["file"], found["line"]


def test_a_source_that_loses_rows_asks(project: Project) -> None:
    """Only removed rows count for the gate, beside however many new ones; the share is of the current rows. With
    `previously` in each row, renamed rows do not count as removed."""
    project.settings("policy: {tagRemoval: retire}")
    rows = [f"ROW-{n}" for n in range(10)]

    def apply(names: list[str], options: str = "") -> Ended:
        table = "n\n" + "".join(f"{name}\n" for name in names)
        files = {"manifests/m.yaml": block(f"csv: ../r.csv{options}"), "manifests/hand.yaml": HAND, "r.csv": table}
        write(project.folder, files)
        return project.run("apply", "-y")

    assert apply(rows).code == 0
    for left, options in (([], ", allowEmpty: true"), ([f"NEW-{n}" for n in range(10)], "")):
        done = apply(left, options)
        assert (done.code, "r.csv: 10 of 10" in done.out + done.err) == (4, True)
    for left, code in (([*rows[:8], "NEW-8", "NEW-9"], 0), (rows[:8], 0), (rows[:6], 0), (rows[:4], 4)):
        done = apply(left)
        assert done.code == code, (left, done.out, done.err)
    assert "r.csv: 2 of 6" in done.out + done.err
    renamed = "n,was\n" + "".join(f"OTHER-{n},ROW-{n}\n" for n in range(6))
    manifest = block("csv: ../r.csv", "name: '{{ row.n }}', previously: ['{{ row.was }}']")
    write(project.folder, {"r.csv": renamed, "manifests/m.yaml": manifest})
    done = project.run("apply", "-y")
    assert (done.code, "made from it are removed" in done.out) == (0, False), (done.out, done.err)


LOOP = "tags:\n  - name: ALONE\n{%% for %s %%}\n  - name: {{ %s }}\n{%% endfor %%}\n"
GUARDED = {
    "rows": (LOOP % ("row in data('../r.csv')", "row.n"), "r.csv: 4 of 10", 3),
    "groups": (LOOP % ("n, rows in data('../r.csv') | groupby('n')", "n"), "r.csv: 4 of 10", 3),
    "at once": ("tags: {{ data('../names.csv') | tojson }}", "manifests/m.yaml.j2: 4 of 10", 1),
    "by number": (
        "{% set rows = data('../r.csv') %}\ntags:\n"
        "{% for i in range(rows | length) %}\n  - {name: {{ rows[i].n }}}\n{% else %}\n  []\n{% endfor %}",
        "manifests/m.yaml.j2: 4 of 10", 1,
    ),
    "as text": (
        "tags: [{% set q = data('../r.csv') | map(attribute='n') | join('},{name: ') %}"
        "{% if q %}{name: {{ q }}}{% endif %}]", "manifests/m.yaml.j2: 4 of 10", 1,
    ),
    "keywords": (
        "tags:\n  - {name: A, keywords: {{ data('../r.csv') | map(attribute='n') | list | tojson }}}\n",
        "r.csv shrank: 4 of 10 ", 2,
    ),
    "metadata": (
        "tags:\n  - {name: A, metadata: { {% for r in data('../r.csv') %}{{ r.n }}: x, {% endfor %} }}\n",
        "r.csv shrank: 4 of 10 ", 2,
    ),
    "a filter": (
        "{% set known = data('../r.csv') | map(attribute='n') | list %}"
        "tags:\n  - name: ALONE\n{% for n in range(10) if 'ROW-' ~ n in known %}\n  - name: T-{{ n }}\n{% endfor %}\n",
        "r.csv shrank: 4 of 10 ", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words", "line"), GUARDED.values(), ids=GUARDED.keys())
def test_a_source_is_guarded_however_a_template_uses_it(project: Project, text: str, words: str, line: int) -> None:
    """A source that shrinks trips the gate, and an empty one is an error at its line. Where rows are unknown, the
    template itself counts as the source; a source that only fills or selects other data counts by its number of
    rows."""
    templated(project, text)

    def apply(rows: int, *arguments: str) -> Ended:
        names = "".join(f"ROW-{n}\n" for n in range(rows))
        write(project.folder, {"r.csv": f"n\n{names}", "names.csv": f"name\n{names}"})
        return project.run("apply", "-y", *arguments)

    assert apply(10).code == 0
    shrunk = apply(6)
    assert (shrunk.code, words in shrunk.out + shrunk.err) == (4, True)
    assert empty_at(apply(0, "--format", "json")) == ("manifests/m.yaml.j2", line)


def test_each_source_of_one_line_is_guarded_and_so_is_a_lookup(project: Project) -> None:
    """An empty source is an error even when it removes nothing, since it would change descriptions."""
    loops = "".join(
        f"{{% for row in data('../{name}.csv') %}}{{name: '{{{{ row.n }}}}'}}, {{% endfor %}}" for name in "rs"
    )
    lookup = "{% for t in data('../names.csv') if t.n == 'B' %} {{ t.t }}{% endfor %}"
    files = {"r.csv": "n\nROW-1\nROW-2\n", "s.csv": "n\nOTHER-1\n", "names.csv": "n,t\nA,first\nB,second\n"}
    looked_up = f"tags: [{{name: B, description: 'the {lookup}'}}]\n"
    templated(project, f"tags: [{loops}]\n", **{"manifests/n.yaml.j2": looked_up, **files})
    assert project.run("apply", "-y").code == 0
    write(project.folder, {"s.csv": "n\n", "names.csv": "n,t\n"})
    done = project.run("plan", "--format", "json")
    assert (done.code, done.codes) == (8, ["source-empty"] * 2)
    assert "s.csv has no rows, but 1 resource was" in done.err + done.out
    assert "names.csv has no rows, but had 2 rows at the last apply" in done.err + done.out


def test_rows_are_remembered_after_an_incomplete_apply(project: Project, service: Service) -> None:
    templated(project, GUARDED["keywords"][0], **{"r.csv": "n\nROW-1\nROW-2\n"})
    service.fault("upsertTags", itemErrors=[{"index": 1, "errorDescription": "no such thing"}])
    assert project.run("apply", "-y").code == 3
    write(project.folder, {"r.csv": "n\n"})
    assert empty_at(project.run("plan", "--format", "json")) == ("manifests/m.yaml.j2", 2)


def test_a_block_made_by_a_text_template_depends_on_its_data(project: Project) -> None:
    """A `generate` block in a template's result depends on its data; one whose key is assembled is refused."""
    generated = '  - {forEach: {csv: ../r.csv}, tags: [{name: "{% raw %}{{ row.n }}{% endraw %}"}]}\n'
    templated(project, f"generate:\n{generated}", **{"r.csv": "n\nROW-A\nROW-B\nROW-C\n"})
    assert project.run("apply", "-y").code == 0
    assert "No changes" in project.run("plan").out
    write(project.folder, {"r.csv": "n\nROW-A\nROW-B\nROW-C\nROW-D\n"})
    assert "1 to create" in project.run("plan").out
    write(project.folder, {"r.csv": "n\n"})
    assert project.run("plan", "--format", "json").codes == ["source-empty"]
    (project.folder / "r.csv").unlink()
    assert "bad-source" in project.run("validate", "--format", "json").codes
    templated(project, "{{ 'gene' ~ 'rate' }}:\n" + generated, **{"r.csv": "n\nROW-A\n"})
    assert "bad-template" in project.run("validate", "--format", "json").codes


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("t: [1]\n", "wrong-type", "1:4"),
        ("a: x\nt:\n  b: c\n", "wrong-type", "3:3"),
        ("t:\n", "null-value", "1:3"),
        ("- t\n", "wrong-type", "1:1"),
    ],
)
def test_a_file_of_variables_has_texts_as_the_project_file(project: Project, text: str, code: str, place: str) -> None:
    """A variable must be text, and the error has its place in the file."""
    write(project.folder, {"manifests/all.yaml": "", "vars.yaml": text})
    done = project.run("render", "--var-file", "vars.yaml")
    assert done.code == 8
    assert f"vars.yaml:{place}: error[{code}]" in done.err


def test_a_plan_depends_on_variables(project: Project, tmp_path: Path) -> None:
    """`--var`, `--var-file` and allowed environment variables change the plan; `--var` wins."""
    project.settings("variables: {a: file}", "allowEnv: [TEAM]")
    manifest = "tags:\n  - name: T\n    managedBy: {{ var.a }}\n    externalId: {{ env.TEAM }}\n"
    write(project.folder, {"manifests/m.yaml.j2": manifest, "vars.yaml": "a: from-file\n"})

    def made(*options: str, team: str = "x") -> tuple[str, str]:
        done = project.run("render", "--format", "json", *options, environ={"TEAM": team})
        (tag,) = done.document["tags"]
        return tag["managedBy"], tag["externalId"]

    assert made() == ("file", "x")
    assert made("--var-file", "vars.yaml") == ("from-file", "x")
    assert made("--var-file", "vars.yaml", "--var", "a=option", team="y") == ("option", "y")
    assert project.run("apply", "-y", environ={"TEAM": "x"}).code == 0
    for options, team, code in (((), "x", 0), ((), "y", 2), (("--var", "a=b"), "x", 2)):
        assert project.run("plan", "--detailed-exitcode", *options, environ={"TEAM": team}).code == code


def test_a_file_that_is_none_is_told_as_what_it_is(tmp_path: Path) -> None:
    """A circle of links and a pipe are told in our own words, also where a template is included. A section that came to
    nothing names its source."""
    (found,) = problems(tmp_path, {"r.csv": "n\n", "manifests/m.yaml.j2": loop()})
    assert (found.code, found.message.endswith("(no rows in r.csv)")) == ("null-value", True)
    for name in ("r.csv", "manifests/m.yaml.j2"):
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "r.csv")
    (found,) = problems(tmp_path, {"manifests/m.yaml": block("csv: ../r.csv")})
    assert found.message == "../r.csv: this is not a regular file"
    (tmp_path / "r.csv").unlink()
    for name in ("r.csv", "r.j2"):
        (tmp_path / name).symlink_to(name)
    found, other = problems(tmp_path, {"manifests/n.yaml.j2": "{% include 'r.j2' %}"})
    for each in (found, other):
        assert str(tmp_path) not in each.message
        assert "circle" in each.message or "not a regular file" in each.message
