"""Read `allowEnv`: the environment variables that templates may use, secrets and secret-looking names excluded. Pure.

The output of templates reaches plans, and plans reach pull requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.field_types import NAMED, Identity, Reads
from syncengine.document.model import JsonSchema, Model
from syncengine.document.model_reader import display, model_reader
from syncengine.document.nodes import Mapping, Node, Scalar, Sequence
from syncengine.document.scalar_readers import Reader, flag, identity, list_reader, tested
from syncengine.document.text import either_case

LIKE_SECRETS = (
    *("*TOKEN*", "*SECRET*", "*PASSW*", "*PASSPHRASE*", "*KEY*", "*CREDENTIAL*", "*CREDS*", "*COOKIE*"),
    *("*_PWD", "*_DSN", "*_AUTH", "*_PAT", "DATABASE_URL", "*DB_URL"),
)
"""Patterns of variable names that usually hold a secret; upper and lower case match alike."""


_only_true = tested(flag, bool, "bad-value", "must be true or omitted")


class NoSecret(Model, frozen=True):
    """A variable whose name looks like a secret although its value is not."""

    name: Identity
    not_secret: Annotated[bool, Reads(_only_true)]


def allowed_names(name: str) -> Reader:
    """Return a reader of a list of variable names; an item may be a mapping that declares its variable not secret."""
    plain, exception = identity(f"an item of {name}"), model_reader(NoSecret, f"an item of {name}")

    def one(node: Node, findings: Collector) -> Any:
        if isinstance(node, Mapping):
            value = exception(node, findings)
            return value if value is INVALID else value.name
        return plain(node, findings)

    names = list_reader(name, one, "a list of names")

    def read(node: Node, findings: Collector) -> Any:
        found = names(node, findings)
        return found if found is INVALID else tuple(dict.fromkeys(found))

    return read


def check_allowed(parts: Iterable[Node], secrets: Iterable[str], findings: Collector) -> None:
    """Report variables that hold the project's secrets, and secret-looking names that are not declared `notSecret`."""
    secrets = frozenset(secrets)
    for item, text, is_excepted in _items(parts):
        if text in secrets:
            message = f"`allowEnv` names {display(text)}, which holds a secret: templates must not read it"
            findings.error("secret-allowed", item, message)
        elif not is_excepted and any(fnmatchcase(text.upper(), like) for like in LIKE_SECRETS):
            message = (
                f"`allowEnv` names {display(text)}, whose name looks like a secret: plans show what templates read"
            )
            cure = f"remove it or, if it is not a secret, write {{name: {display(text)}, notSecret: true}}"
            findings.error("secret-allowed", item, f"{message}; {cure}")


def _items(parts: Iterable[Node]) -> Iterator[tuple[Node, str, bool]]:
    for part in parts:
        listed = part.get("allowEnv") if isinstance(part, Mapping) else None
        for item in listed.items if isinstance(listed, Sequence) else ():
            named = item.get("name") if isinstance(item, Mapping) else item
            if isinstance(named, Scalar):
                yield named, named.text, named is not item


_NO_SECRET: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {**NAMED, "description": "Name of the environment variable."},
        "notSecret": {"const": True, "description": "Must be true: the variable holds no secret, despite its name."},
    },
    "required": ["name", "notSecret"],
    "additionalProperties": False,
}
_PATTERN = "|".join(either_case(like).replace("*", ".*") for like in LIKE_SECRETS)
_ITEM = {"anyOf": [{**NAMED, "not": {"type": "string", "pattern": f"^({_PATTERN})$"}}, _NO_SECRET]}
AllowedNames = Annotated[tuple[str, ...], Reads(allowed_names), JsonSchema({"type": "array", "items": _ITEM})]
