"""Options of `plan` and `apply` → the engine's request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from syncengine.cli.options import Globals, relative_paths
from syncengine.cli.output import Output
from syncengine.project.model import Project
from syncengine.project.schema import APPROVAL

if TYPE_CHECKING:
    from syncengine.plan.request import PlanRequest

SELECTING = ("targets", "excludes", "reassert", "sweep", "no_delete")


def request_of(
    command: str, project: Project, options: Globals, paths: Sequence[str], chosen: Mapping[str, Any], **more: Any
) -> PlanRequest:
    """Return the request for these options. Raise a usage error when options contradict each other."""
    from syncengine.plan.request import PlanRequest  # with all of a plan, which is imported while manifests are read
    from syncengine.plan.scope import Scope

    selected = relative_paths(paths, options.folder, project.root)
    _refuse_no_manifest(command, project, zip(paths, selected, strict=True))
    scope = Scope(
        paths=selected,
        targets=tuple(chosen["targets"]),
        excludes=tuple(chosen["excludes"]),
        no_delete=chosen["no_delete"],
    )
    if chosen["sweep"] and not scope.whole:
        raise click.UsageError(
            "--sweep deletes every activity type that is not uploaded, so it cannot be combined with a selection"
        )
    return PlanRequest(
        command=command,
        scope=scope,
        sweep=chosen["sweep"],
        reassert=chosen["reassert"],
        approvals=_approvals(chosen["approvals"]),
        redo=chosen["redo"],
        **more,
    )


def refuse_undo_with(paths: Sequence[str], options: Mapping[str, object], chosen: Mapping[str, Any]) -> None:
    """Raise a usage error for options that have no meaning with `--undo`, which plans from the history."""
    if chosen["undo"] is None:
        if chosen["force"]:
            raise click.UsageError("--force needs --undo RUN")
        return
    flags = {f"--{name.replace('_', '-')}": chosen[name] for name in ("reassert", "sweep", "no_delete", "redo")}
    wrong = [name for name, value in {**options, **flags}.items() if value]
    if paths or wrong:
        what = ", ".join(wrong) or "paths"
        raise click.UsageError(
            f"--undo cannot be combined with {what}: it plans from the history; select with --target"
        )


def _refuse_no_manifest(command: str, project: Project, paths: Iterable[tuple[str, str]]) -> None:
    """Raise a usage error for a path without manifests, whose plan would wrongly look like one without changes."""
    paths = list(paths)
    if not paths:
        return
    from syncengine.manifest.files import find

    names = [PurePosixPath(file.name) for file in find(project.manifests, project.files).files]
    for path, selected in paths:
        if selected != "." and not any(name.is_relative_to(selected) for name in names):
            if (file := project.root / selected).is_file() and not file.stat().st_size:
                raise click.UsageError(f"{path} is empty: the command that writes it may have been stopped early")
            expected = "neither a saved plan nor a manifest" if command == "apply" else "no manifest"
            raise click.UsageError(f"{path} is {expected} of this project")


def _approvals(options: Sequence[str]) -> tuple[str, ...]:
    for approval in options:
        if not APPROVAL.fullmatch(approval):
            raise click.UsageError(f"{approval!r} is not an approval: copy the whole COUNT@HASH that the plan prints")
    return tuple(options)


def announce(project: Project, output: Output) -> None:
    """Print a note when the project uses the embedded sandbox (docs/project-file.md)."""
    if project.is_sandbox:
        folder = os.path.relpath(project.sandbox_data.parent)
        output.say(f"Using the embedded sandbox; its data and its state are in {folder}.")
