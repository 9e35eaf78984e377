"""Keys, passwords and hidden files: nothing of them is printed or written, in whatever form they are given.

Each process that a test runs is also checked for the API key when it ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.manifest.loading import write
from tests.posted_time.receiver import Receiver, receiving
from tests.support.quiet import unused_port

from .program import Project, tag
from .service import AT_ONCE, KEY, Service

pytestmark = pytest.mark.slow

PART = "Zq7pw"
"""The part of the password that stays the same when it is split or decoded; no output may contain it."""
CODED, PLAIN = f"{PART}%21never%40seen", f"{PART}!never@seen"

BLOCK = "generate: [{forEach: {FORM}, as: row, tags: [{name: '{{ row.name }}'}]}]\n"
SQL = BLOCK.replace("FORM", "sql: {source: far, query: 'SELECT 1 AS name'}")
HTTP = BLOCK.replace("FORM", "http: {source: far, path: /x, items: items, paging: {next: next}}")
SQL_SINK = "{name: far, sql: {url: URL, statement: 'INSERT INTO t VALUES (:id)', params: {id: '{{ group.groupId }}'}}}"
HTTP_SINK = "{name: far, http: {url: URL, json: {id: '{{ group.groupId }}'}}}"


@dataclass(frozen=True)
class Way:
    """A setting with a password: lines of the project file, a manifest, variables and files.

    HOST stands for a server that answers, DEAD for one that does not.
    """

    settings: str = ""
    manifest: str = ""
    environ: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def sql(url: str, setting: str = "{env: FAR}", **files: str) -> Way:
    return Way(f"sources: {{far: {{sql: {setting}}}}}", SQL, {"FAR": url}, files)


def http(url: str, setting: str = "{url: {env: FAR}}", **environ: str) -> Way:
    return Way(f"sources: {{far: {{http: {setting}}}}}", HTTP, {"FAR": url, **environ})


def sink(text: str, url: str, setting: str = "{env: FAR}") -> Way:
    return Way(f"postedTime: {{deliver: [{text.replace('URL', setting)}]}}", "", {"FAR": url})


WAYS = {
    "a database in a variable": sql(f"postgresql+psycopg://app:{CODED}@DEAD/x"),
    "a database in a file": sql("", "{file: far.url}", **{"far.url": f"postgresql+psycopg://app:{CODED}@DEAD/x"}),
    "another database": sql(f"mysql+pymysql://app:{CODED}@DEAD/x"),
    "a password that is not encoded": sql(f"postgresql+psycopg://app:{PLAIN}@DEAD/x"),
    "a password as a parameter": sql(f"postgresql+psycopg://app@DEAD/x?password={CODED}"),
    "a misspelt parameter": sql(f"postgresql+psycopg://app@DEAD/x?pasword={CODED}"),
    "a database's port that is none": sql(f"postgresql+psycopg://app:{CODED}@127.0.0.1:port/x"),
    "a driver that is not there": sql(f"oracle+none://app:{CODED}@DEAD/x"),
    "a connection string": sql(f"Server=DEAD;User Id=app;Password={PLAIN};"),
    "a database in the project file": sql("", f"'postgresql+psycopg://app:{CODED}@DEAD/x'"),
    "a service in a variable": http(f"http://app:{CODED}@HOST/refuses"),
    "a service in the project file": http("", f"{{url: 'http://app:{CODED}@HOST/refuses'}}"),
    "a service that redirects": http(f"http://app:{CODED}@HOST/redirects"),
    "a service whose next page is elsewhere": http(f"http://app:{CODED}@HOST/pages"),
    "a service's port that is none": http(f"http://app:{CODED}@127.0.0.1:port/x"),
    "a header that cannot be sent": http(
        "", "{url: 'http://HOST/x', headers: {Authorization: {env: H}}}", H=f"{PLAIN}\nx"
    ),
    "a proxy with a port that is none": Way(environ={"ALL_PROXY": f"http://app:{CODED}@127.0.0.1:port"}),
    "a proxy of an unknown kind": Way(environ={"ALL_PROXY": f"htp://app:{CODED}@DEAD"}),
    **{
        f"a state's password with {mark}": Way(
            environ={"SYNCENGINE_STATE": f"postgresql://app:{PART}{mark}{PART}@DEAD/x"}
        )
        for mark in "@/#:%!"
    },
    **{
        f"a state's {name}": Way(environ={"SYNCENGINE_STATE": f"postgresql://app@DEAD/x?{name}={PART}@{PART}"})
        for name in ("password", "Password")
    },
    "the service itself": Way(environ={"SYNCENGINE_BASE_URL": f"http://app:{CODED}@DEAD/connect/api"}),
    "a ledger": sink(SQL_SINK, f"postgresql+psycopg://app:{CODED}@DEAD/x"),
    "a ledger's port that is none": sink(SQL_SINK, f"postgresql+psycopg://app:{CODED}@127.0.0.1:port/x"),
    "a sink that refuses": sink(HTTP_SINK, f"http://app:{CODED}@HOST/refuses"),
    "a sink that redirects": sink(HTTP_SINK, f"http://app:{CODED}@HOST/redirects"),
    "a sink that is not there": sink(HTTP_SINK, f"http://app:{CODED}@DEAD/x"),
}


@pytest.fixture
def far() -> Iterator[Receiver]:
    """A server that repeats the password in its answers."""
    with receiving() as receiver:
        receiver.headers["Location"] = f"http://app:{CODED}@elsewhere.example/?password={CODED}"
        page = {"items": [{"name": "A"}], "next": f"http://app:{CODED}@elsewhere.example/"}
        answers = {"redirects": (302, {}), "pages": (200, page)}
        receiver.answer = lambda got: answers.get(got.path.split("/")[1], (401, {"message": f"bad password {PLAIN}"}))
        yield receiver


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_password_is_never_shown(project: Project, service: Service, far: Receiver, way: Way) -> None:
    """It is in no output, report, state or inbox, even with `--debug`."""
    places = {"HOST": far.url.removeprefix("http://"), "DEAD": f"127.0.0.1:{unused_port()}"}

    def placed(text: str) -> str:
        for word, place in places.items():
            text = text.replace(word, place)
        return text

    project.settings(*filter(None, [placed(way.settings)]))
    project.wants(tags=[tag("Alpha one")])
    for name, content in way.files.items():
        (project.folder / name).write_text(placed(content))
    if way.manifest:
        (project.folder / "manifests/far.yaml").write_text(way.manifest)
    environ = {name: placed(value) for name, value in way.environ.items()}
    commands = [
        ("plan", "--report", "json=p.json", "--report", "html=p.html"),
        ("apply", "-y", "--report", "json=r.json"),
    ]
    if way.settings.startswith("postedTime"):
        service.post(groupId="g1", tag="Alpha one")
        commands = [("time", "pull"), ("time", "inbox", "--format", "json"), ("time", "show", "g1")]
    given = {project.folder / name for name in ("syncengine.yaml", *way.files)}
    for command in commands:
        done = project.run("--debug", *command, environ=environ)
        assert PART not in done.out + done.err
    assert bool(far.got) == ("@HOST" in way.environ.get("FAR", "")), "only a URL that names HOST is contacted"
    kept = {path for path in project.folder.rglob("*") if path.is_file() and PART.encode() in path.read_bytes()}
    assert kept <= given


@pytest.mark.parametrize("status", [400, 401, 503])
def test_a_key_repeated_by_the_service_is_masked(project: Project, service: Service, status: int) -> None:
    """It is masked in messages, reports, history and state, even with `-v` (docs/planning.md 4.11)."""
    service.fault("upsertTags", status=status, headers=AT_ONCE, times=None, body={"message": f"bad key {KEY}"})
    project.wants(tags=[tag("NEW-1")])
    assert project.run("plan", "-v", "--out", "saved.plan", "--report", "html=plan.html").code == 0
    reports = ("--report", "json=report.json", "--report", "markdown=REPORT.md")
    done = project.run("-v", "--log-format", "json", "apply", "saved.plan", *reports)
    assert done.code == (7 if status == 401 else 3)
    assert "bad key ***" in done.out + done.err
    assert [name for name, content in project.files().items() if KEY.encode() in content] == []


def test_an_unescaped_at_sign_in_a_password_is_reported_with_the_cure(project: Project) -> None:
    """The message shows neither the password nor the host, which may be a part of it."""
    done = project.run("plan", environ={"SYNCENGINE_STATE": "postgresql://app:Winter@2026!@db.example.com/x"})
    assert (done.code, "postgresql://app:***@…" in done.err, "%40" in done.err) == (1, True, True), done.err


# --- among the manifests


SECRET = "s3cr3t-V4lue: 0n3"  # a mapping, because errors name its unknown sections
LINKS = {
    "link.yaml": ("keys/key.yaml", "secret-file"),
    "folder": ("keys", "secret-file"),  # the file of the key is recognised by its real path
    "hidden.yaml": (".env", "hidden-file"),
    "hidden.json": (".env", "hidden-file"),
    "hidden.yaml.j2": (".env", "hidden-file"),
    "vault.yaml": (".vault/v.yaml", "hidden-file"),
    "deep.yaml": ("open/.deep/v.yaml", "hidden-file"),
    "key.yaml": ("", "secret-file"),  # no link, but the key itself
}
COMMANDS = ("validate", "validate manifests", "plan", "fmt --diff", "fmt --diff manifests")


@pytest.mark.parametrize("name", LINKS)
def test_what_is_hidden_or_secret_is_no_manifest(project: Project, name: str) -> None:
    """Each command that reads manifests refuses it, also if it is named, and shows no part of it."""
    target, code = LINKS[name]
    key = "keys/key.yaml" if target else f"manifests/{name}"
    files = (key, ".env", ".vault/v.yaml", "open/.deep/v.yaml")
    settings = (project.folder / "syncengine.yaml").read_text().replace("{env: SYNCENGINE_API_KEY}", f"{{file: {key}}}")
    write(project.folder, dict.fromkeys(files, f"{SECRET}\ntags:   []\n"))
    write(project.folder, {"manifests/m.yaml": "tags:\n  - name: A-1\n", "syncengine.yaml": settings})
    if target:
        (project.folder / "manifests" / name).symlink_to(project.folder / target)
    is_formatted = not name.endswith((".json", ".j2"))
    for command in (*COMMANDS[: 5 if is_formatted else 3], *([] if target else [f"fmt --diff manifests/{name}"])):
        done = project.run(*command.split())
        said = done.out + done.err
        assert (done.code, f"[{code}]" in said) == (8, True), said
        assert (f"manifests/{name}" in said, "s3cr3t" in said, "0n3" in said) == (True, False, False), said


def test_a_volume_of_kubernetes_is_read(project: Project) -> None:
    """The files of a mounted volume are links through `..data`; manifests and data are read through them."""
    block = "generate:\n  - forEach: {csv: ../data/r.csv}\n    tags: [{name: '{{ row.n }}'}]\n"
    for name, text in {"manifests/m.yaml": block, "data/r.csv": "n\nA-1\n"}.items():
        place = project.folder / name
        write(place.parent, {f"..2026_01_01/{place.name}": text})
        (place.parent / "..data").symlink_to("..2026_01_01")
        place.symlink_to(f"..data/{place.name}")
    for command in (("validate",), ("plan",), ("fmt", "--diff")):
        done = project.run(*command)
        assert done.code == 0, (done.out, done.err)
    (planned,) = project.run("plan", "--format", "json").document["changes"]
    assert (planned["address"], planned["source"]["data"]) == ("tag/A-1", {"file": "data/r.csv", "row": 2})
