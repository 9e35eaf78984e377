"""A new project works at once, and nothing that is there is lost."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import jsonschema
import pytest
import yaml

from syncengine.document.diagnostics import Collector
from syncengine.tools.fmt.layout import laid_out
from tests.support import warm


def run(folder: Path, *arguments: str) -> warm.Ended:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = warm.run(arguments, folder=folder, environ=environ)
    assert "Traceback" not in done.err
    return done


def test_a_new_project_validates_plans_and_applies(tmp_path: Path) -> None:
    """Against the sandbox, without a flag, and after that there is nothing left to do."""
    assert run(tmp_path, "init").code == 0
    valid = run(tmp_path, "validate", "--format", "json")
    assert (valid.code, json.loads(valid.out)["diagnostics"]) == (0, [])
    planned = json.loads(run(tmp_path, "plan", "--format", "json").out)
    assert planned["summary"]["create"] == 5
    assert run(tmp_path, "apply", "-y").code == 0
    assert run(tmp_path, "plan", "--detailed-exitcode").code == 0


def test_a_new_project_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    """DIR is made; JSON tells what was written."""
    done = run(tmp_path, "init", "a/b", "--format", "json")
    written = json.loads(done.out)["written"]
    assert "syncengine.yaml" in written
    assert sorted(written) == sorted(p.relative_to(tmp_path / "a/b").as_posix() for p in _files(tmp_path / "a/b"))


@pytest.mark.parametrize("name", ["acme.yaml", "matters.yaml", "ACME.YAML"])
def test_manifests_that_are_there_get_no_examples_beside_them(tmp_path: Path, name: str) -> None:
    """They may declare the same, as the quick start does."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / name).write_text("tags:\n  - name: ACME-0042\n")
    assert run(tmp_path, "validate").code == 0
    assert run(tmp_path, "init").code == 0
    assert [file.name for file in (tmp_path / "manifests").iterdir()] == [name]
    assert run(tmp_path, "validate").code == 0


def test_linked_manifests_get_no_examples_beside_them(tmp_path: Path) -> None:
    """They are found as every command finds them."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other/acme.yaml").write_text("tags:\n  - name: ACME-0042\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/more").symlink_to("../other")
    assert run(tmp_path, "init").code == 0
    assert run(tmp_path, "validate").code == 0


@pytest.mark.parametrize("name", [".gitkeep", "data.csv", ".DS_Store", ".hidden.yaml"])
def test_files_that_are_no_manifests_get_examples_beside_them(tmp_path: Path, name: str) -> None:
    """Git keeps no empty folder, and systems leave files of their own."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / name).touch()
    assert run(tmp_path, "init").code == 0
    assert (tmp_path / "manifests/matters.yaml").exists()


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    """Other files stay, .gitignore gets what it lacks, and a project is not begun twice."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/matters.yaml").write_text("tags: []\n")
    (tmp_path / ".gitignore").write_text("mine")
    assert "was kept" in run(tmp_path, "init").err
    assert (tmp_path / "manifests/matters.yaml").read_text() == "tags: []\n"
    assert (tmp_path / ".gitignore").read_text() == "mine\n.syncengine/\nplan.json\nplan.html\nreport.json\nreviewed/\n"
    again = run(tmp_path, "init", "--format", "json")
    assert (again.code, json.loads(again.out)["diagnostics"][0]["code"]) == (1, "project-exists")


def test_what_is_written_is_as_we_ask_for(tmp_path: Path) -> None:
    """Manifests in their layout, valid by the schemas that their first lines name; CI files are YAML."""
    run(tmp_path, "init")
    for path in [*(tmp_path / "manifests").iterdir(), tmp_path / "syncengine.yaml"]:
        text = path.read_text(encoding="utf-8")
        schema = (path.parent / text.partition("\n")[0].partition("$schema=")[2]).resolve()
        jsonschema.Draft202012Validator(json.loads(schema.read_text())).validate(yaml.safe_load(text))
        assert path.name == "syncengine.yaml" or laid_out(text.encode(), Collector(path.name)) == text
    for path in (tmp_path / "ci").iterdir():
        assert yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """In words, not in a traceback."""
    (tmp_path / "shut").mkdir(mode=0o500)
    done = run(tmp_path, "init", "shut")
    assert (done.code, "cannot be written" in done.err) == (1, True)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


HOSTILE = "Matter No.;Title;Client;Class's \"x\"\n0123;no;Smith, Jones & Co;a: b # c\n0124;{{ 7 }};  ;'\n"


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("outside", [True, False])
def test_a_project_begins_with_the_users_own_data(tmp_path: Path, encoding: str, outside: bool) -> None:
    """The header makes a block that plans; data from elsewhere is copied into the project, byte for byte in meaning."""
    folder = tmp_path / "project"
    file = tmp_path / "matters.csv" if outside else folder / "data" / "matters.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(HOSTILE.replace("Smith", "Müller").encode(encoding))
    done = run(tmp_path, "init", "project", "--from-csv", str(file))
    assert done.code == 0, done.err
    planned = run(folder, "plan", "--format", "json")
    assert planned.code == 0, planned.out
    tags = {c["address"]: c for c in json.loads(planned.out)["changes"] if c["kind"] == "tag"}
    assert list(tags) == ["tag/0123", "tag/0124"]
    first, second = tags.values()
    assert first["metadata"]["set"] == {"Client": "Müller, Jones & Co", 'Class\'s "x"': "a: b # c"}
    assert [f["after"] for f in second["fields"] if f["name"] == "description"] == ["{{ 7 }}"]
    assert first["source"]["data"] == {"file": "data/matters.csv", "row": 2}
    assert run(folder, "apply", "-y").code == 0
    text = (folder / "manifests/matters.yaml").read_text(encoding="utf-8")
    assert laid_out(text.encode(), Collector("m")) == text


STRANGE = {
    "blanks around": " Nummer , title ,x\nA-0001,b,c\n",
    "emoji and umlauts": "Nummer,🎉,Müller\nA-0001,b,c\n",
    "a template": 'Nummer,"x{{ env.HOME }}","{% raw %}"\nA-0001,b,c\n',
    "quotes and backslashes": 'Nummer,"a""b\\n",z\nA-0001,b,c\n',
    "methods": "Nummer,items,get\nA-0001,b,c\n",
    "keywords": "Nummer,keywords,x\nA-0001,b,c\n",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE.keys())
def test_any_header_makes_a_project_that_applies(tmp_path: Path, text: str, encoding: str) -> None:
    """Names of columns arrive as they are written, and none of them is code."""
    (tmp_path / "m.csv").write_bytes(text.encode(encoding))
    assert run(tmp_path, "init", "--from-csv", "m.csv").code == 0
    done = run(tmp_path, "render", "--format", "json")
    assert done.code == 0, done.err
    (made,) = json.loads(done.out)["tags"]
    names = [name.strip() for name in next(csv.reader([text.partition("\n")[0]]))]
    assert made["name"] == "A-0001"
    metadata = made.get("metadata", {})
    assert {made.get("description"), *made.get("keywords", []), *metadata.values()} - {None} == {"b", "c"}
    assert set(metadata) <= set(names)


@pytest.mark.parametrize("header", ['Nummer;"a, b, c, d";z', 'Nummer;"a,\n b, c ""d"", e";z'])
def test_what_stands_in_quotes_separates_nothing(tmp_path: Path, header: str) -> None:
    """Nor does a line that ends in them."""
    (tmp_path / "m.csv").write_text(f"{header}\nA-0001;b;c\n")
    assert run(tmp_path, "init", "--from-csv", "m.csv").code == 0
    assert "delimiter: ';'" in (tmp_path / "manifests/matters.yaml").read_text().replace('"', "'")
    (made,) = json.loads(run(tmp_path, "render", "--format", "json").out)["tags"]
    assert made["name"] == "A-0001"


NO_TABLES = {
    "nothing": (b"", "1:1", "the file has no header"),
    "a name twice": (b'a,"x,y",b,b\n1,2,3,4\n', "1:11", 'columns 3 and 4 are both named "b"'),
    "a column without a name": (b"a,,b\n1,2,3\n", "1:3", "column 2 has no name"),
    "a table of a spreadsheet": (b"a;b;;;\n1;2;;;\n", "1:5", "columns 3 to 5 have no name"),
    "a note for a spreadsheet": (b"sep=;\na;b\n1;2\n", "1:1", "the line is a note for Excel (`sep=`)"),
    "a blank header": (b";;\na;b;c\n1;2;3\n", "1:1", "the line is blank; the header must be the first line"),
    "a byte that is 0": (b"a,b\n1,\0\n", "2:1", "the file contains a NUL byte, so it is not text"),
    "no known encoding": (b"a,b\n1,\x81\xff\n", "1:1", "neither utf-8 nor cp1252: save it as UTF-8"),
    "half a letter": (b"\xff\xfea\0,", "1:1", "is not valid UTF-16"),
    "a short row": (b"a,b,c\n1,2,3\n4,5\n", "3:1", "the row has 2 values, but there are 3 columns"),
    "a long row": (b"\na,b\n1,2\n4,5,6\n", "4:1", "the row has 3 values, but there are 2 columns"),
    "an open quote": (b'a,b\n1,2\n3,"4\n5,6\n', "3:1", "a quotation mark is never closed"),
}


@pytest.mark.parametrize(("content", "place", "words"), NO_TABLES.values(), ids=NO_TABLES.keys())
def test_a_table_that_no_plan_would_take_is_refused(tmp_path: Path, content: bytes, place: str, words: str) -> None:
    """With its place, under the name that it was given, and nothing is written."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/m.csv").write_bytes(content)
    done = run(tmp_path, "init", "new", "--from-csv", "in/m.csv")
    assert done.code == 8
    assert done.err.startswith(f"in/m.csv:{place}: error[bad-source]: ")
    assert words in done.err
    assert not (tmp_path / "new").exists()


def test_all_that_is_wrong_with_a_header_is_said_at_once(tmp_path: Path) -> None:
    """Each at its column."""
    (tmp_path / "m.csv").write_text("a,a,,c\n")
    done = run(tmp_path, "init", "--from-csv", "m.csv", "--format", "json")
    assert [d["column"] for d in json.loads(done.out)["diagnostics"]] == [3, 5]


@pytest.mark.parametrize(
    ("encoding", "written"), [("cp1252", "cp1252"), ("utf-16", "utf-16"), ("utf-16-le", "utf-16-le")]
)
def test_data_is_copied_as_it_is(tmp_path: Path, encoding: str, written: str) -> None:
    """In its own encoding, which the block names: so that the next export can be laid over the copy."""
    content = "Aktenzeichen;Bezeichnung\r\nA-1;Müller\r\n".encode(encoding)
    (tmp_path / "m.csv").write_bytes(content)
    assert run(tmp_path, "init", "new", "--from-csv", "m.csv").code == 0
    assert (tmp_path / "new/data/m.csv").read_bytes() == content
    assert f"encoding: {written}" in (tmp_path / "new/manifests/matters.yaml").read_text()
    (made,) = json.loads(run(tmp_path / "new", "render", "--format", "json").out)["tags"]
    assert (made["name"], made["description"]) == ("A-1", "Müller")


def test_german_columns_are_known(tmp_path: Path) -> None:
    """As software for law firms exports them."""
    (tmp_path / "m.csv").write_text("Mandant;Bezeichnung;Aktenzeichen;Schlagwörter\nM;B;A-1;x, y\n")
    assert run(tmp_path, "init", "--from-csv", "m.csv").code == 0
    (made,) = json.loads(run(tmp_path, "render", "--format", "json").out)["tags"]
    assert (made["name"], made["description"], made["keywords"]) == ("A-1", "B", ["x", "y"])
    assert made["metadata"] == {"Mandant": "M"}


def test_what_comes_next_can_be_pasted(tmp_path: Path) -> None:
    """In quotes where the shell needs them, and on a line of its own."""
    done = run(tmp_path, "init", "my proj")
    assert done.err.splitlines()[-2:] == [
        "Next: `syncengine -C 'my proj' plan`, `syncengine -C 'my proj' apply`.",
        "my proj/syncengine.yaml describes the next steps.",
    ]


def test_rows_that_are_left_out_are_named(tmp_path: Path) -> None:
    """Of rows with one number the first counts; nothing of a person's data goes unsaid."""
    rows = "Number,Title\nEP-1,one\n\nEP-2,two\nEP-1,three\n" + "".join(f"N{n},x\nN{n},y\n" for n in range(11))
    (tmp_path / "m.csv").write_text(rows)
    done = run(tmp_path, "init", "--from-csv", "m.csv")
    assert done.code == 0
    assert 'm.csv: column "Number" has "EP-1" in lines 2, 5; only the first is used (`distinct`)' in done.err
    assert 'column "Number" has "N8"' in done.err
    assert "m.csv: 2 more values are in several lines" in done.err
    (tmp_path / "n.csv").write_text("Number,Title\nEP-1,one\nEP-2,two\n")
    assert "in lines" not in run(tmp_path, "init", "other", "--from-csv", "n.csv").err
