"""A bare repository, its clones, and the program run in them."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import warm
from tests.support.git import AUTHOR, bare, commit_all, git

Json = dict[str, Any]
PLACES = {"settings": "syncengine.yaml", "rules": "policies/all.yaml"}
PROJECT = "version: 1\nservice: {baseUrl: sandbox}\npolicy:\n  tagRemoval: retire\n"


@dataclass
class Clone:
    """A clone with a project in its subfolder `below`."""

    folder: Path
    below: str = ""
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.folder / self.below

    def git(self, *arguments: str) -> str:
        return git(self.folder, *arguments)

    def write(self, name: str, text: str | None) -> None:
        """Write a file of the project, or delete it if the text is None."""
        path = self.project / name
        if text is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self, **files: str | None) -> str:
        """Write `manifests/NAME.yaml`, or the file of the `settings` or `rules`, and commit everything."""
        for name, text in files.items():
            self.write(PLACES.get(name, f"manifests/{name}.yaml"), text)
        return commit_all(self.folder)

    def merge_unapplied(self, **files: str | None) -> None:
        """Commit these files to main and push it, without an apply; the branch `pr` begins there anew."""
        self.git("checkout", "-q", "main")
        self.commit(**files)
        self.push()
        self.git("checkout", "-q", "-B", "pr")

    def push(self, branch: str = "main") -> None:
        self.git("push", "-q", "origin", f"HEAD:{branch}")

    def run(self, *arguments: str) -> warm.Ended:
        usual = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(warm.REPOSITORY)}
        return warm.run(arguments, folder=self.project, environ={**usual, **AUTHOR, **self.environ})

    def prints(self, *arguments: str, code: int = 0) -> str:
        """Run the program, which ends with this exit code, and return what it prints."""
        done = self.run(*arguments)
        assert done.code == code, done
        return done.out

    def apply(self, *arguments: str) -> str:
        return self.prints("apply", "-y", *arguments)

    def plan(self, *arguments: str, base: str = "origin/main") -> Json:
        """Return the JSON of a plan against a base."""
        done = self.run("plan", "--base", base, "--format", "json", *arguments)
        assert done.code in (0, 2, 4), done
        document: Json = json.loads(done.out)
        return document

    def code(self, *arguments: str, base: str = "origin/main") -> int:
        return self.run("plan", "--base", base, "--detailed-exitcode", *arguments).code


@dataclass
class Forge:
    """A bare repository, which is made if it is not there, and the folder of its clones."""

    folder: Path

    def __post_init__(self) -> None:
        if not self.bare.exists():
            bare(self.bare)

    @property
    def bare(self) -> Path:
        return self.folder / "origin.git"

    def clone(self, name: str, *options: str, below: str = "") -> Clone:
        git(self.folder, "clone", "-q", *options, f"file://{self.bare}", str(self.folder / name))
        return Clone(self.folder / name, below)

    def merge_elsewhere(self, clone: Clone, **files: str) -> None:
        """Commit these files to main in another clone, and fetch main into this one."""
        other = self.clone("other")
        other.commit(**files)
        other.push()
        clone.git("fetch", "-q")


def tags(**descriptions: str) -> str:
    """Return a manifest with a tag for each name, with its description."""
    lines = (
        f"  - {{name: {name}, description: {text}, keywords: [{name} matter]}}" for name, text in descriptions.items()
    )
    return "\n".join(("tags:", *lines, ""))


def origins(plan: Json) -> dict[str, str]:
    """Return the origin of each change by its address."""
    return {change["address"]: change["origin"] for change in plan["changes"]}


def codes(plan: Json) -> list[str]:
    return [diagnostic["code"] for diagnostic in plan["diagnostics"]]
