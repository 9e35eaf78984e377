"""Links and keys among the manifests: what is secret or hidden is refused, and its content is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.manifest.loading import write

from .program import Project

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
