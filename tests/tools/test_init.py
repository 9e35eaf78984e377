"""`init` creates a project that works at once and keeps existing files."""

import csv
import json
import os
import shlex
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from syncengine.document.diagnostics import Collector
from syncengine.tools.fmt import laid_out
from tests.support import warm

pytestmark = pytest.mark.slow


def run(folder: Path, *arguments: str) -> warm.Ended:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = warm.run(arguments, folder=folder, environ=environ)
    assert "Traceback" not in done.err
    return done


def begun(folder: Path, table: str | bytes, *options: str, code: int = 0) -> str:
    """What `init --from-csv` says of a table, with this exit code."""
    (folder / "m.csv").write_bytes(table.encode() if isinstance(table, str) else table)
    done = run(folder, "init", *options, "--from-csv", "m.csv")
    assert done.code == code, done.err
    return done.err


def tags(folder: Path) -> list[dict[str, Any]]:
    """The tags of a project."""
    done = run(folder, "render", "--format", "json")
    assert done.code == 0, done.err
    made: list[dict[str, Any]] = json.loads(done.out)["tags"]
    return made


def assert_formatted(text: str) -> None:
    assert laid_out(text.encode(), Collector("m")) == text


PRIVACY = "# PRIVATE: only authorised members of the team see a tag. PUBLIC: all do"


def test_a_new_project_validates_plans_and_applies(tmp_path: Path) -> None:
    """Its files are valid by the schemas that they name; its folder is made; its tags are private."""
    done = run(tmp_path, "init", "a/b", "--format", "json")
    folder = tmp_path / "a/b"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sorted(json.loads(done.out)["written"]) == sorted(str(path.relative_to(folder)) for path in files)
    for path in [*(folder / "manifests").iterdir(), folder / "syncengine.yaml"]:
        text = path.read_text(encoding="utf-8")
        schema = (path.parent / text.partition("\n")[0].partition("$schema=")[2]).resolve()
        jsonschema.Draft202012Validator(json.loads(schema.read_text())).validate(yaml.safe_load(text))
        assert path.name == "syncengine.yaml" or laid_out(text.encode(), Collector(path.name)) == text
    for path in (folder / "ci").iterdir():
        assert yaml.safe_load(path.read_text(encoding="utf-8"))
    valid = run(folder, "validate", "--format", "json")
    assert (valid.code, json.loads(valid.out)["diagnostics"]) == (0, [])
    assert json.loads(run(folder, "plan", "--format", "json").out)["summary"]["create"] == 5
    assert {tag["visibility"] for tag in tags(folder)} == {"PRIVATE"}
    assert PRIVACY in (folder / "manifests/matters.yaml").read_text()
    assert run(folder, "apply", "-y").code == 0
    assert run(folder, "plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(
    ("name", "is_manifest"),
    [("acme.yaml", True), ("ACME.YAML", True), ("more/acme.yaml", True), (".gitkeep", False), (".hidden.yaml", False)],
)
def test_manifests_that_are_there_get_no_examples_beside_them(tmp_path: Path, name: str, is_manifest: bool) -> None:
    """Both could declare the same tags. This holds behind a link, but not for files that are no manifests."""
    (tmp_path / "other").mkdir()
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/more").symlink_to("../other")
    (tmp_path / "manifests" / name).write_text("tags:\n  - name: ACME-0042\n")
    assert run(tmp_path, "init").code == 0
    assert (tmp_path / "manifests/matters.yaml").exists() is not is_manifest
    assert run(tmp_path, "validate").code == 0


def test_existing_files_are_kept(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/matters.yaml").write_text("tags: []\n")
    (tmp_path / ".gitignore").write_text("mine")
    assert "was kept" in run(tmp_path, "init").err
    assert (tmp_path / "manifests/matters.yaml").read_text() == "tags: []\n"
    assert (tmp_path / ".gitignore").read_text() == "mine\n.syncengine/\nplan.json\nplan.html\nreport.json\nreviewed/\n"
    again = run(tmp_path, "init", "--format", "json")
    assert (again.code, json.loads(again.out)["diagnostics"][0]["code"]) == (1, "project-exists")


HOSTILE = "Matter No.;Title;Client;Class's \"x\"\n0123;no;Smith, Jones & Co;a: b # c\n0124;{{ 7 }};  ;'\n"


@pytest.mark.parametrize(("encoding", "outside"), [("utf-8", True), ("cp1252", False)])
def test_a_project_begins_with_the_users_own_data(tmp_path: Path, encoding: str, outside: bool) -> None:
    """`init --from-csv` makes a project that plans and applies the file's rows, which is copied if it is elsewhere."""
    folder = tmp_path / "project"
    file = tmp_path / "matters.csv" if outside else folder / "data" / "matters.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(HOSTILE.replace("Smith", "Müller").encode(encoding))
    done = run(tmp_path, "init", "project", "--from-csv", str(file))
    assert done.code == 0, done.err
    first, second = tags(folder)
    assert (first["name"], second["name"], second["description"]) == ("0123", "0124", "{{ 7 }}")
    assert first["metadata"] == {"Client": "Müller, Jones & Co", 'Class\'s "x"': "a: b # c"}
    assert [path.name for path in (folder / "data").iterdir()] == ["matters.csv"]
    assert run(folder, "apply", "-y").code == 0
    assert_formatted((folder / "manifests/matters.yaml").read_text(encoding="utf-8"))


STRANGE = {
    "blanks around": " Nummer , title ,x\nA-0001,b,c\n",
    "emoji and umlauts": "Nummer,🎉,Müller\nA-0001,b,c\n",
    "a template": 'Nummer,"x{{ env.HOME }}","{% raw %}"\nA-0001,b,c\n',
    "quotes and backslashes": 'Nummer,"a""b\\n",z\nA-0001,b,c\n',
    "methods": "Nummer,items,get\nA-0001,b,c\n",
    "keywords": "Nummer,keywords,x\nA-0001,b,c\n",
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_any_header_makes_a_project_that_renders_the_rows(tmp_path: Path, text: str) -> None:
    begun(tmp_path, text.encode("utf-8-sig" if "Müller" in text else "utf-8"))
    (made,) = tags(tmp_path)
    names = [name.strip() for name in next(csv.reader([text.partition("\n")[0]]))]
    assert made["name"] == "A-0001"
    metadata = made.get("metadata", {})
    assert {made.get("description"), *made.get("keywords", []), *metadata.values()} - {None} == {"b", "c"}
    assert set(metadata) <= set(names)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le"])
def test_data_is_copied_as_it_is(tmp_path: Path, encoding: str) -> None:
    """The CSV file is copied in its own encoding, which the manifest names. German column names are recognised."""
    content = "Mandant;Bezeichnung;Aktenzeichen;Schlagwörter\r\nM;Müller;A-1;x, y\r\n".encode(encoding)
    assert "`visibility: PRIVATE`" in begun(tmp_path, content, "new")
    assert (tmp_path / "new/data/m.csv").read_bytes() == content
    manifest = (tmp_path / "new/manifests/matters.yaml").read_text()
    assert (f"encoding: {encoding}" in manifest, PRIVACY in manifest) == (True, True)
    (made,) = tags(tmp_path / "new")
    assert (made["name"], made["description"], made["keywords"]) == ("A-1", "Müller", ["x", "y"])
    assert (made["metadata"], made["visibility"]) == ({"Mandant": "M"}, "PRIVATE")


def test_the_next_commands_can_be_pasted(tmp_path: Path) -> None:
    err = run(tmp_path, "init", "my proj").err
    commands = ["plan", "apply", "connector check", "adopt tags.csv", "init --ci github"]
    places = [err.index(f"`syncengine -C 'my proj' {command}`") for command in commands]
    assert places == sorted(places)
    assert err.splitlines()[0] == "Next:"
    assert "sandbox" in err.splitlines()[1]
    for word in ("baseUrl", "SYNCENGINE_API_KEY", "team"):
        assert places[1] < err.index(word) < places[2]


NAMED = {
    "a status before a number": "Status,Number\nOpen,A-1\nOpen,A-2\n",
    "matter no.": "Title,Matter No.\na,A-1\nb,A-2\n",
    "case": "Title,Case\na,A-1\nb,A-2\n",
    "a key beside the project's": "Project key,Issue key,Issue id,Summary\nA,A-1,9,x\nA,A-2,8,y\n",
    "aktenzeichen": "Mandant;Aktenzeichen;Unser Zeichen 2\na;A-1;\nb;A-2;\n",
    "dossier": "Client,N° de dossier\na,A-1\nb,A-2\n",
    "a number before a name": "name,number\nx,A-1\ny,A-2\n",
    "a name alone": "name,status\nA-1,Open\nA-2,Open\n",
    "cr line ends": "number,title\rA-1,x\rA-2,y\r",
    "a sign": "Matter,Matter #\nx,A-1\nx,A-2\n",
    "a project beside its id": "Project ID,Project Name,Project Number\n1,x,A-1\n2,y,A-2\n",
}


@pytest.mark.parametrize("content", NAMED.values(), ids=NAMED)
def test_tags_are_named_by_the_column_that_is_the_identity(tmp_path: Path, content: str) -> None:
    """Its header suggests an identity, and its values are complete and unique."""
    begun(tmp_path, content)
    assert tags(tmp_path)[0]["name"] == "A-1"


NO_TABLES = {
    "nothing": (b"", "1:1", "the file is empty: its first line must name the columns"),
    "only a header": (b"a,b\n", "1:1", "the file has no rows below a header"),
    "a table of a spreadsheet": (b"a;b;;;\n1;2;;;\n", "1:5", "columns 3 to 5 have no name"),
    "no known encoding": (b"a,b\n1,\x81\xff\n", "1:1", "neither utf-8 nor cp1252: save it as UTF-8"),
    "half a letter": (b"\xff\xfea\0,", "1:1", "is not valid UTF-16"),
}
UNNAMED = {
    "no header that says so": ("status,foo,bar\nOpen,1,x\nOpen,2,y\n", 'name one with --key: "foo", "bar"'),
    "none that could be it": (
        "status,user\nOpen,ab\nOpen,ab\n", "no column has a value in every row and no value twice",
    ),
    "addresses": ("status,x\nOpen,a@example.com\nOpen,b@example.com\n", "no column has a value in every row"),
    "persons": ("status,Responsible attorney\nOpen,ab\nOpen,cd\n", "no column has a value in every row"),
    "two": ("number,code\n1,x\n2,y\n", 'say that they name the tags; name one with --key: "number", "code", such as'),
    "a blank": ("number,x\nA,1\n ,2\n", 'column "number" cannot name the tags: it has no value in line 3; name one'),
    "a value twice": ("number,x\nA,1\nB,2\nA,3\n", 'it has "A" in lines 2, 4; name one with --key: "x"'),
    "a difference in case": (
        "number,x\na-1,1\nA-1,2\n", 'it has "a-1" and "A-1" in lines 2, 3; name one with --key: "x"',
    ),
    "many": (
        "number,x\n" + "".join(f"A{n // 2},1\n" for n in range(5000)),
        'it has "A0" in lines 2, 3, "A1" in lines 4, 5, ',
    ),
}  # fmt: skip
REFUSED: dict[str, tuple[str | bytes, str, str]] = {
    **{name: (table, f"{place}: error[bad-source]: ", words) for name, (table, place, words) in NO_TABLES.items()},
    **{name: (table, "1:1: error[no-identity]: ", words) for name, (table, words) in UNNAMED.items()},
}


@pytest.mark.parametrize(("content", "start", "words"), REFUSED.values(), ids=REFUSED)
def test_an_unusable_or_unclear_table_is_refused(tmp_path: Path, content: str | bytes, start: str, words: str) -> None:
    """The error has its place, or lists the possible columns for --key. Nothing is written, and no identity guessed."""
    said = begun(tmp_path, content, "new", code=8)
    assert said.startswith(f"m.csv:{start}")
    assert words in said
    assert len(said) < 700
    assert not (tmp_path / "new").exists()


def test_the_command_that_names_the_identity_can_be_pasted(tmp_path: Path) -> None:
    (tmp_path / "my matters.csv").write_text("Matter No.,Our ref,Client\n1,x'y,A\n2,z,A\n")
    options = ["my proj", "--from-csv", "my matters.csv", "--ci", "gitlab", "--install", "x==1"]
    done = run(tmp_path, "init", *options)
    assert done.code == 8
    command = done.err.partition("such as `")[2].partition("`")[0]
    assert shlex.split(command) == ["syncengine", "init", *options[:3], "--key", "Matter No.", *options[3:]]
    done = run(tmp_path, *shlex.split(command)[1:])
    assert done.code == 0, done.err
    assert tags(tmp_path / "my proj")[0]["name"] == "1"
    steps = ["Check the fields", "sandbox", "baseUrl", "GITLAB_TOKEN"]
    assert sorted(steps, key=done.err.index) == steps


def test_blank_rows_and_blanks_around_cells_are_ignored(tmp_path: Path) -> None:
    """Rows of delimiters and spaces make no tag, and empty cells no metadata; a row with any value needs a name."""
    begun(tmp_path, "Matter No.;Title;Client;Close Day\r\n;;;\r\nM-1; x ;ACME ;\r\n ; ; ; ;\r\nM-2;y;;z\r\n;;;;\r\n")
    first, second = tags(tmp_path)
    assert (first["name"], first["description"], first["metadata"]) == ("M-1", "x", {"Client": "ACME"})
    assert (second["name"], second["metadata"]) == ("M-2", {"Close Day": "z"})
    assert "it has no value in line 2" in begun(
        tmp_path, "Matter No.;Title;Client\n;Two;A\nM-1;One;A\n", "other", code=8
    )


def test_an_identity_can_be_named(tmp_path: Path) -> None:
    """--key names the identity column, in any case; a missing column or one with repeated values is refused."""
    table = "number,Matter ID,e-mail,x\nA,7b,a@example.com,1\nA,7B,b@example.com,1\n"
    for key, name in (("matter id", "7b"), ("e-mail", "a@example.com")):
        begun(tmp_path, table, key, "--key", key)
        assert tags(tmp_path / key)[0]["name"] == name
    refused = {"x": '"1" in lines 2, 3', "numbr": "did you mean `number`?", "zzz": "there is no column"}
    for key, words in refused.items():
        assert words in begun(tmp_path, table, "--key", key, code=8)
    assert run(tmp_path, "init", "--key", "number").code == 64


STATUSES = {
    "an id": ("number,Status,Id\nA,Open,7\nB,Closed,8\nC,Open,9\n", ["A", "C"], "may say"),
    "a status": ("number,Status\nA,Open\nB,Closed\nC,Pending\n", ["A"], '1 × "Open", 1 × "Closed", 1 × "Pending"'),
    "its own words": ("number,Status\nA,A1\nB,Closed\nC,A2\n", ["A", "C"], '1 × "A1"'),
    "blanks around": ("number,State of: it #\nA, open \nB,closed\nC,open\n", ["A", "C"], '2 × "open"'),
    "a quotation mark": ("number,Status\nA,it's\nB,Closed\nC,it's\n", ["A", "C"], "may say"),
    "open or not": ("number,Is Open\nA,Yes\nB,No\nC,Yes\n", ["A", "C"], '2 × "Yes", 1 × "No"'),
    "closed or not": ("number,Closed?\nA,n\nB,y\nC,\n", ["A", "C"], '1 × "y", 1 × empty'),
    "the day of closing": ("number,Date closed\nA,\nB,2024-05-01\nC,\n", ["A", "C"], '2 × empty, 1 × "a date"'),
}


@pytest.mark.parametrize(("content", "live", "words"), STATUSES.values(), ids=STATUSES)
def test_closed_matters_can_be_left_out(tmp_path: Path, content: str, live: list[str], words: str) -> None:
    """A status column is reported with its counts, and the manifest has a commented-out condition for open matters."""
    said = begun(tmp_path, content)
    for each in (words, "is forgotten: its tag goes on tagging time", "once you take its `#` away, keeps "):
        assert each in said
    assert [tag["name"] for tag in tags(tmp_path)] == [*"ABC"]
    manifest = tmp_path / "manifests/matters.yaml"
    text = manifest.read_text()
    assert_formatted(text)
    assert_formatted(text.replace("# when:", "when:"))
    manifest.write_text(text.replace("# when:", "when:"))
    assert [tag["name"] for tag in tags(tmp_path)] == live


@pytest.mark.parametrize("column", ["State,NY,CA,NY", "Open,5,7,9", "Closing words,a,b,c", "Type,Case,File,Case"])
def test_other_columns_are_no_status(tmp_path: Path, column: str) -> None:
    """Columns that only resemble a status, such as a US state or a number of open tasks, get no condition."""
    header, *values = column.split(",")
    rows = "".join(f"{name},{value}\n" for name, value in zip("ABC", values, strict=True))
    assert "may say which matters are closed" not in begun(tmp_path, f"number,{header}\n{rows}")
    assert "when:" not in (tmp_path / "manifests/matters.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "inside"), [("a.ods", "application/vnd.oasis.opendocument.spreadsheet"), ("a.xlsx", "x")]
)
def test_a_spreadsheet_is_recognised_whatever_its_bytes(tmp_path: Path, name: str, inside: str) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as file:
        file.writestr("mimetype", inside)
        file.writestr("xl/workbook.xml" if name == "a.xlsx" else "content.xml", b"\x81\x8d\xff")
    done = run(tmp_path, "init", "new", "--from-csv", name)
    assert (done.code, f"({Path(name).suffix}): save the sheet as CSV" in done.err) == (8, True), done.err


def test_a_folder_and_a_misspelt_file_are_mistakes_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "matters.csv").mkdir()
    for name, words in (
        ("matters.csv", "matters.csv: is a folder, but a file is expected"),
        ("maters.csv", "maters.csv: no such file or folder; did you mean `matters.csv`?"),
    ):
        done = run(tmp_path, "init", "new", "--from-csv", name)
        assert (done.code, words in done.err) == (64, True), done.err


PRIVATE = ("E-Mail", "createdBy", "Responsible attorney", "Kürzel", "Téléphone", "Geb.-Datum", "Opposing party")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        *((header, "Jo Doe") for header in PRIVATE),
        ("Notes", "ask a.b@example.com first"),
        ("Notes", "+43 1 234 56 78"),
        ("Notes", "(030) 123 456"),
        ("Location", "12 Main Street Springfield"),
        ("Sitz", "Hauptstr. 7 10115 Berlin"),
        ("Title", "a.b@example.com"),
    ],
)
def test_columns_with_persons_and_addresses_are_commented_out(tmp_path: Path, header: str, value: str) -> None:
    table = f"number,{header},status,opened\nA,{value},Open,01/05/2024\nB,,Open,2024-05-01\n"
    assert f'may hold persons or addresses are left out: "{header}"' in begun(tmp_path, table)
    done = run(tmp_path, "init", "b", "--from-csv", "m.csv", "--format", "json")
    assert json.loads(done.out)["leftOut"] == [header]
    made = tags(tmp_path)
    assert (made[0]["metadata"], value in str(made)) == ({"status": "Open", "opened": "01/05/2024"}, False)
    manifest = tmp_path / "manifests/matters.yaml"
    text = manifest.read_text()
    assert_formatted(text)
    manifest.write_text(text.replace("\n#         ", "\n          "))
    assert value in str(tags(tmp_path))
