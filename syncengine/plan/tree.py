"""Compare the Git tree of a plan with the one that is checked out. Reads Git and files (docs/reviews.md).

Trees are equal after a merge, a squash or a rebase that brought nothing else into the project.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from syncengine.document.digest import sha256_of_file
from syncengine.errors import Diagnostic, Severity
from syncengine.manifest.desired import ManifestSet
from syncengine.plan.model import Plan, Tree
from syncengine.project import git
from syncengine.project.model import FILE_NAME, POLICIES, Project

UNCOMMITTED = "uncommitted-inputs"
"""The code of the warning that a plan was made from uncommitted files."""
SHOWN = 5


def with_inputs(plan: Plan, project: Project, manifests: ManifestSet, merged: str = "") -> Plan:
    """Return the plan with digests of the inputs that its Git tree does not cover. Warn of uncommitted inputs.

    `merged` is the tree that was planned if it is the merge of two sides instead of the tree that is checked out.
    """
    tree = plan.basis.tree
    if not isinstance(tree, Tree):
        return plan
    root = project.root.resolve()
    # Another checkout has no files beside it: an existing file comes last, and counts.
    files = sorted({*manifests.inputs(), *_config(project)}, key=lambda path: path.exists())
    paths = {_name(path, project): path for path in map(_settled, files)}
    outside = sorted(name for name in paths if name.startswith(os.pardir + os.sep))
    inside = sorted(paths.keys() - set(outside))
    searched = (*project.manifests, *project.policy_paths, project.files / POLICIES, project.files / FILE_NAME)
    differing = git.uncommitted(root, inside, [_name(_settled(path), project) for path in searched])
    names = [*(inside if differing is None else differing), *outside]
    inputs = {name: digest_of_file(paths.get(name, project.files / name)) for name in names}
    basis = replace(plan.basis, tree=Tree(merged or tree.id, inputs))
    warning = _warning([name for name in names if _is_in_no_commit(name, root, merged)])
    return replace(plan, basis=basis, diagnostics=(*warning, *plan.diagnostics))


def _name(path: Path, project: Project) -> str:
    """Return the path relative to the project's folder, or to the folder of the revision that is planned instead."""
    names = (os.path.relpath(path, folder.resolve()) for folder in (project.files, project.root))
    return min(names, key=lambda name: Path(name).parts.count(os.pardir))


def _is_in_no_commit(name: str, root: Path, merged: str) -> bool:
    if name.startswith(os.pardir + os.sep):
        return not git.is_committed(root, name)
    return not merged or (root / name).exists()  # the other side of a merge has files that are not here


def _config(project: Project) -> Iterator[Path]:
    if project.config is not None:
        yield project.config


def _settled(path: Path) -> Path:
    """Return the path with its folder resolved. Git tracks a link itself, and its target is another input."""
    return path.parent.resolve() / path.name


def _warning(inputs: Sequence[str]) -> Iterator[Diagnostic]:
    if inputs:
        message = f"made from uncommitted files: {some(inputs)}"
        cure = "commit them and plan again, or keep the same files in place for the `apply` of this plan"
        yield Diagnostic(severity=Severity.WARNING, code=UNCOMMITTED, message=f"{message}; {cure}")


def digests_of(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 digests of files by their names relative to the root, empty for a missing file."""
    return {name: digest_of_file(root / name) for name in names}


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 digest of a file, empty when it is missing or cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            return sha256_of_file(file)
    except (OSError, ValueError):  # a plan from outside may name anything
        return ""


def not_merged(plan: Plan, root: Path) -> str | None:
    """Return how a saved plan's files differ from those checked out, or `None` if they do not or Git cannot tell."""
    tree = plan.basis.tree
    if tree is UNSET or tree is None:
        return None
    if (now := git.tree_of(root)) is None:
        why = git.refusal(root)
        return why and f"a Git tree, but Git cannot read this checkout ({why}; {git.CURE})"
    inputs = tree.uncommitted or {}
    if other := [name for name, digest in digests_of(root, inputs).items() if digest != inputs[name]]:
        return f"files that are missing or different here: {some(other)}"
    if tree.id == now:
        return None
    differing = git.differing_files(root, tree.id, now)
    if differing is not None and differing <= inputs.keys():
        return None  # the uncommitted files are committed now
    verb = "differs" if differing is not None and len(differing) == 1 else "differ"
    which = f" ({some(sorted(differing))} {verb})" if differing else ""
    return f"other files than are checked out{which}"


def commit_of(plan: Plan, checked_out: git.Commit | None, root: Path) -> str | None:
    """Return the commit that a plan applies: the one checked out if its files are those of the saved plan.

    The plan's own commit may be of a branch that was merged or squashed since, without the commits that came before.
    """
    commit = plan.basis.commit
    if commit is None or checked_out is None or checked_out.id == commit or not isinstance(plan.basis.tree, Tree):
        return commit
    return checked_out.id if not_merged(plan, root) is None else commit


def some(names: Iterable[str]) -> str:
    """Return the first few names, and the number of the others."""
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
