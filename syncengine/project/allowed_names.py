"""Read `allowEnv`: the environment variables that templates may use, secrets and secret-looking names excluded. Pure.

The output of templates reaches plans, and plans reach pull requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field, PlainValidator, TypeAdapter, WithJsonSchema

from syncengine.document.diagnostics import Collector
from syncengine.document.nodes import Mapping, Node, Scalar, Sequence
from syncengine.document.text import either_case
from syncengine.document.types import DISTINCT, NAMED, Identity, OnlyTrue
from syncengine.document.validation import Model, display

LIKE_SECRETS = (
    *("*TOKEN*", "*SECRET*", "*PASSW*", "*PASSPHRASE*", "*KEY*", "*CREDENTIAL*", "*CREDS*", "*COOKIE*"),
    *("*_PWD", "*_DSN", "*_AUTH", "*_PAT", "DATABASE_URL", "*DB_URL"),
)
"""Patterns of variable names that usually hold a secret; upper and lower case match alike."""


class NotSecret(Model):
    """A variable whose name looks like a secret although its value is not."""

    title = "an item of allowEnv"

    name: Annotated[Identity, Field(description="Name of the environment variable.")]
    not_secret: Annotated[OnlyTrue, Field(description="Must be true: the variable holds no secret, despite its name.")]


_PATTERN = "|".join(either_case(like).replace("*", ".*") for like in LIKE_SECRETS)
_NAME: TypeAdapter[str] = TypeAdapter(Identity)
_NameLike = Annotated[str, WithJsonSchema({**NAMED, "not": {"type": "string", "pattern": f"^({_PATTERN})$"}})]


def _allowed(value: Any) -> str:
    """Return the name of a variable; a mapping declares that the variable is not secret."""
    return NotSecret.model_validate(value).name if isinstance(value, dict) else _NAME.validate_python(value)


AllowedNames = Annotated[
    tuple[Annotated[NotSecret | str, PlainValidator(_allowed, json_schema_input_type=_NameLike | NotSecret)], ...],
    DISTINCT,
]


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
