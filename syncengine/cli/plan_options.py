"""The options of `plan` and `apply` that decide what is planned, as one value, and the request that they make."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.completion import addresses
from syncengine.cli.options import Globals, relative_paths
from syncengine.cli.output import Output
from syncengine.project.model import APPROVAL, Project

if TYPE_CHECKING:
    from syncengine.plan.request import PlanRequest, Review

of_addresses = partial(click.option, metavar="ADDR", multiple=True, shell_complete=addresses)

SELECTION = (
    of_addresses("--target", "targets", help="Select only these addresses (globs)."),
    of_addresses("--exclude", "excludes", help="Select all but these addresses (globs)."),
    click.option("--reassert", is_flag=True, help="Send all declared resources again."),
    click.option("--sweep", is_flag=True, help="Complete a sync session even if it removes no activity type."),
    click.option("--no-delete", is_flag=True, help="Leave out removals and cleared values."),
    click.option("--redo", is_flag=True, help="Include changes of undone runs again."),
    click.option(
        "--approve-deletes",
        "approvals",
        metavar="COUNT@HASH",
        multiple=True,
        help="Approve exactly these removals and tags made public.",
    ),
)
"""The options of both commands that select or approve changes."""


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options in `SELECTION` to a command."""
    for option in reversed(SELECTION):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What a command line of `plan` or `apply` asks for, under the names of its options."""

    paths: tuple[str, ...]
    targets: tuple[str, ...]
    excludes: tuple[str, ...]
    reassert: bool
    sweep: bool
    no_delete: bool
    redo: bool
    approvals: tuple[str, ...]
    new_state: bool
    # Of `plan` alone.
    base: str | None = None
    no_state: bool = False
    undo: str | None = None
    force: bool = False
    out: str | None = None
    since: str | None = None
    # Of `apply` alone.
    reviewed: tuple[str, ...] = ()
    allow_unmerged: bool = False
    allow_older: bool = False
    max_errors: int | None = None
    lock_timeout: float | None = None

    def words(self, *, is_saved: bool) -> str:
        """Return the arguments of `apply` that belong to a plan, as words of a command line with a blank before each.

        A saved plan is applied whole, so that only the flags are left that allow an apply at all.
        """
        flags = {"--allow-unmerged": self.allow_unmerged, "--allow-older": self.allow_older}
        flags |= {"--new-state": self.new_state}
        words: list[str] = []
        if not is_saved:
            lists = {"--target": self.targets, "--exclude": self.excludes, "--reviewed": self.reviewed}
            words += self.paths
            words += [word for flag, values in lists.items() for text in values for word in (flag, text)]
            flags = {**self._selecting_flags, **flags}
        words += [flag for flag, is_given in flags.items() if is_given]
        return "".join(f" {shlex.quote(word)}" for word in words)

    @property
    def _selecting_flags(self) -> Mapping[str, bool]:
        return {
            "--reassert": self.reassert,
            "--sweep": self.sweep,
            "--no-delete": self.no_delete,
            "--redo": self.redo,
        }

    @property
    def selects(self) -> bool:
        """Whether they select or add changes, which a saved plan does not allow."""
        return bool(self.targets or self.excludes or self.reassert or self.sweep or self.no_delete)

    def refuse_contradictions(self) -> None:
        """Raise a usage error for options of `plan` that need or exclude each other."""
        if self.no_state and (self.base is None or self.out is not None):
            needs = "needs --base REV" if self.base is None else "cannot be combined with --out"
            raise click.UsageError(f"--no-state {needs}: it compares Git with Git, and such a plan cannot be applied")
        if self.undo is None:
            if self.force:
                raise click.UsageError("--force needs --undo RUN")
            return
        others = {"--base": self.base, "--no-state": self.no_state, **self._selecting_flags}
        wrong = [name for name, value in others.items() if value]
        if self.paths or wrong:
            what = ", ".join(wrong) or "paths"
            raise click.UsageError(
                f"--undo cannot be combined with {what}: it plans from the history; select with --target"
            )

    def request(
        self, command: str, project: Project, options: Globals, *, is_saved: bool = False, review: Review | None = None
    ) -> PlanRequest:
        """Return the request of `command`. Raise a usage error for a path or an approval that means nothing.

        With `is_saved`, `apply` has a saved plan, whose file the paths are.
        """
        from syncengine.plan.request import (
            PlanRequest,  # with all of a plan, which is imported while manifests are read
            Scope,
        )

        paths = () if is_saved else self.paths
        chosen = relative_paths(paths, options.folder, project.root)
        _refuse_no_manifest(command, project, dict(zip(paths, chosen, strict=True)))
        scope = Scope(paths=chosen, targets=self.targets, excludes=self.excludes, no_delete=self.no_delete)
        if self.sweep and not scope.whole:
            raise click.UsageError(
                "--sweep deletes every activity type that is not uploaded, so it cannot be combined with a selection"
            )
        for approval in self.approvals:
            if not APPROVAL.fullmatch(approval):
                raise click.UsageError(
                    f"{approval!r} is not an approval: copy the whole COUNT@HASH that the plan prints"
                )
        return PlanRequest(
            command=command,
            scope=scope,
            sweep=self.sweep,
            reassert=self.reassert,
            approvals=self.approvals,
            saves=self.out is not None,
            review=review,
            allow_older=self.allow_older,
            allow_unmerged=self.allow_unmerged,
            new_state=self.new_state,
            redo=self.redo,
            max_errors=self.max_errors,
            lock_timeout=self.lock_timeout,
        )


def _refuse_no_manifest(command: str, project: Project, paths: Mapping[str, str]) -> None:
    """Raise a usage error for a path without manifests, whose plan would wrongly look like one without changes."""
    if not paths:
        return
    from syncengine.manifest.files import find

    names = [PurePosixPath(file.name) for file in find(project.manifests, project.files).files]
    for path, chosen in paths.items():
        if chosen != "." and not any(name.is_relative_to(chosen) for name in names):
            if (file := project.root / chosen).is_file() and not file.stat().st_size:
                raise click.UsageError(f"{path} is empty: the command that writes it may have been stopped early")
            expected = "neither a saved plan nor a manifest" if command == "apply" else "no manifest"
            raise click.UsageError(f"{path} is {expected} of this project")


def announce(project: Project, output: Output) -> None:
    """Print a note when the project uses the embedded sandbox (docs/project-file.md)."""
    if project.is_sandbox:
        folder = os.path.relpath(project.sandbox_data.parent)
        output.say(f"Using the embedded sandbox; its data and its state are in {folder}.")
