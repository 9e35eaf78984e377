"""Symbolic links among the manifests: a link to a secret or hidden file is refused, and its content is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.manifest.loading import write

from .program import Project

SECRET = "s3cr3t-V4lue: 0n3"  # a mapping, because errors name its unknown sections
PLACES = {
    "keys/key.txt": "secret-file",
    ".env": "hidden-file",
    ".vault/v.yaml": "hidden-file",
    "open/.deep/v.yaml": "hidden-file",
}
COMMANDS = (("validate",), ("validate", "manifests"), ("plan",), ("fmt", "--diff"), ("fmt", "--diff", "manifests"))


@pytest.fixture
def guarded(project: Project) -> Project:
    """A project with a manifest, hidden files and a file with the API key."""
    text = (project.folder / "syncengine.yaml").read_text()
    write(project.folder, dict.fromkeys(PLACES, f"{SECRET}\ntags:   []\n"))
    write(
        project.folder,
        {
            "manifests/m.yaml": "tags:\n  - name: A-1\n",
            "syncengine.yaml": text.replace("{env: SYNCENGINE_API_KEY}", "{file: keys/key.txt}"),
        },
    )
    return project


def refusal(project: Project, *arguments: str, code: str) -> str:
    """The output of a command that fails with `code` and shows no part of the secret."""
    done = project.run(*arguments)
    said = done.out + done.err
    assert (done.code, f"[{code}]" in said) == (8, True), said
    assert "s3cr3t" not in said
    assert "0n3" not in said
    return said


LINKS = [
    *((target, ("validate",), ".yaml") for target in PLACES),
    *((target, command, ".yaml") for target in ("keys/key.txt", ".env") for command in COMMANDS[1:]),
    *((".env", ("validate",), suffix) for suffix in (".json", ".yaml.j2")),
]


@pytest.mark.parametrize(("target", "command", "suffix"), LINKS)
def test_a_link_to_what_is_hidden_or_secret_is_refused(
    guarded: Project, target: str, command: tuple[str, ...], suffix: str
) -> None:
    """Each command that reads manifests refuses the link, whatever suffix it has."""
    (guarded.folder / f"manifests/link{suffix}").symlink_to(guarded.folder / target)
    said = refusal(guarded, *command, code=PLACES[target])
    assert f"manifests/link{suffix}" in said


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_link_to_a_folder_of_keys_is_refused(guarded: Project, command: tuple[str, ...]) -> None:
    """The file of the API key is recognised by its real path."""
    (guarded.folder / "keys/key.txt").rename(guarded.folder / "keys/key.yaml")
    file = guarded.folder / "syncengine.yaml"
    file.write_text(file.read_text().replace("key.txt", "key.yaml"))
    (guarded.folder / "manifests/link").symlink_to(guarded.folder / "keys")
    refusal(guarded, *command, code="secret-file")


@pytest.mark.parametrize("command", [*COMMANDS, ("fmt", "--diff", "manifests/key.yaml")], ids=" ".join)
def test_a_key_among_the_manifests_is_no_manifest(guarded: Project, command: tuple[str, ...]) -> None:
    """A key file in the folder of manifests is refused, even if it is named on the command line."""
    (guarded.folder / "keys/key.txt").rename(guarded.folder / "manifests/key.yaml")
    file = guarded.folder / "syncengine.yaml"
    file.write_text(file.read_text().replace("keys/key.txt", "manifests/key.yaml"))
    refusal(guarded, *command, code="secret-file")


def test_a_volume_of_kubernetes_is_read(project: Project) -> None:
    """The files of a mounted volume are links through `..data`; manifests and data are read through them."""
    block = "generate:\n  - forEach: {csv: ../data/r.csv}\n    tags: [{name: '{{ row.n }}'}]\n"
    _volume(project.folder / "manifests", "m.yaml", block)
    _volume(project.folder / "data", "r.csv", "n\nA-1\n")
    for command in (("validate",), ("plan",), ("fmt", "--diff")):
        done = project.run(*command)
        assert done.code == 0, (done.out, done.err)
    (planned,) = project.run("plan", "--format", "json").document["changes"]
    assert (planned["address"], planned["source"]["data"]) == ("tag/A-1", {"file": "data/r.csv", "row": 2})


def _volume(folder: Path, name: str, text: str) -> None:
    write(folder, {f"..2026_01_01/{name}": text})
    (folder / "..data").symlink_to("..2026_01_01")
    (folder / name).symlink_to(f"..data/{name}")
