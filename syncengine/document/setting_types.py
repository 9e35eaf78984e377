"""Read settings: references to secrets, URLs, durations and paths, with the types for models. Pure.

The models of the project file share these types. No message quotes a value that might be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

from syncengine.document.diagnostics import Collector, Invalid
from syncengine.document.field_types import Reads
from syncengine.document.model import JsonSchema
from syncengine.document.nodes import Mapping, Node, Scalar
from syncengine.document.scalar_readers import Reader, called, choice, is_text, refused, words
from syncengine.document.text import either_case


@dataclass(frozen=True, slots=True)
class Reference:
    """The place of a secret, an environment variable or a file. It never contains the secret itself."""

    env: str | None = None
    file: str | None = None


URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
REFERENCE_KEYS = frozenset({"env", "file"})
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_PARAMETER = re.compile(r"[?&;](?:password|passwd|pwd|token|api_?key)=", re.IGNORECASE)
_SECRET_PAIR = re.compile(r"(?:^|[?&;\s])(?:password|passwd|pwd)\s*=", re.IGNORECASE)
"""A password in a connection string of another program, such as `Server=…;Password=…`."""
_SECRET_NAMES = "|".join(map(either_case, ("password", "passwd", "pwd", "token", "api_?key")))
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
"""Characters that `urlsplit` drops or ignores, and that no request can contain."""
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
USE_REFERENCE = "write {env: NAME} or {file: PATH} instead"


def split_url(text: str) -> SplitResult | None:
    """Return the parts of a URL, or `None` when it is malformed."""
    try:
        parts = urlsplit(text)
        _ = parts.port, parts.hostname
    except ValueError:
        return None
    return parts


_PORTS = {"http": 80, "https": 443}


def canonical_url(text: str) -> str:
    """Return the form that all spellings of a service's URL share, whatever their case, default port or final slash."""
    parts = split_url(text)
    if parts is None or not parts.hostname:
        return text
    port = f":{parts.port}" if parts.port not in (None, _PORTS.get(parts.scheme)) else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"


def has_password(text: str) -> bool:
    """Return whether a URL contains credentials, before its host or among its parameters, or a connection string."""
    if not URL.match(text := text.removeprefix("git+ref://")):
        return _SECRET_PAIR.search(text) is not None
    userinfo = text.split("://", 1)[1].rpartition("@")[0]
    is_port = re.match(r"[^:/]*:[0-9]*/", userinfo)
    return (":" in userinfo and not is_port) or _SECRET_PARAMETER.search(text) is not None


def base_url_trouble(text: str) -> str | None:
    """Return the problem of a base URL without quoting it, or `None` when the URL is valid."""
    if _BLANK.search(text):
        return "must not contain blanks, line breaks or control characters"
    parts = split_url(text)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be a URL that starts with https://, or `sandbox`"
    if "@" in parts.netloc:
        return "must not contain credentials; the key belongs in `apiKey`"
    if parts.query or parts.fragment:
        return "must not have a query or a fragment"
    return None


def web_url_trouble(text: str) -> str | None:
    """Return the problem of an HTTP service's URL without quoting it, or `None` when the URL is valid."""
    if _BLANK.search(text):
        return "must not contain blanks, line breaks or control characters"
    parts = split_url(text)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be a URL that starts with http:// or https://"
    if "@" in parts.netloc:
        return "must not contain credentials; they belong in a header, as {env: NAME} or {file: PATH}"
    return "must not have a fragment" if parts.fragment else None


def reference(name: str, node: Node, findings: Collector) -> Reference | Invalid:
    """Read a reference to a secret: `{env: NAME}` or `{file: PATH}`."""
    if not isinstance(node, Mapping):
        return refused(node, findings, name, "{env: NAME} or {file: PATH}", empty="")
    unknown = [key for key in node.keys if key.text not in REFERENCE_KEYS]
    if unknown or len(node.keys) != 1:
        at = unknown[0] if unknown else node
        return findings.error("bad-value", at, f"{called(name)} must be either {{env: NAME}} or {{file: PATH}}")
    (key,), (value,) = node.keys, node.values
    if not isinstance(value, Scalar) or not is_text(value) or not value.text.strip():
        return findings.error("bad-value", value, f"{called(name)} needs a value after `{key.text}:`")
    if key.text == "file":
        return Reference(file=value.text)
    if not _ENV_NAME.fullmatch(value.text):
        return findings.error("bad-value", value, f"{called(name)}: `env:` must name an environment variable")
    return Reference(env=value.text)


def secret(name: str) -> Reader:
    def read(node: Node, findings: Collector) -> Any:
        if is_text(node):
            return findings.error(
                "secret-in-file", node, f"{called(name)} must not be in the project file; {USE_REFERENCE}"
            )
        return reference(name, node, findings)

    return read


def _address(name: str, of_text: Callable[[Scalar, Collector], Any]) -> Reader:
    """Return a reader of text without a password, or of a reference to text that may have a password."""

    def read(node: Node, findings: Collector) -> Any:
        if not isinstance(node, Scalar) or not is_text(node):
            return reference(name, node, findings)
        if has_password(node.text):
            return findings.error("secret-in-file", node, f"the URL of `{name}` contains a password; {USE_REFERENCE}")
        return of_text(node, findings)

    return read


def place(name: str) -> Reader:
    """Return a reader of a database's place: a path, a URL without a password, or a reference."""

    def path_or_url(node: Scalar, findings: Collector) -> Any:
        if not node.text.strip():
            return findings.error("empty-value", node, f"{called(name)} must not be empty")
        return node.text

    return _address(name, path_or_url)


def web_url(name: str) -> Reader:
    """Return a reader of an HTTP service's URL without credentials, or of a reference to a URL."""

    def url(node: Scalar, findings: Collector) -> Any:
        trouble = web_url_trouble(node.text)
        return findings.error("bad-value", node, f"{called(name)} {trouble}") if trouble else node.text.rstrip("/")

    return _address(name, url)


def base_url(name: str) -> Reader:
    def read(node: Node, findings: Collector) -> Any:
        if not isinstance(node, Scalar) or not is_text(node):
            return refused(node, findings, name, "a URL", empty="")
        trouble = None if node.text == "sandbox" else base_url_trouble(node.text)
        code = "secret-in-file" if trouble and "credentials" in trouble else "bad-value"
        return findings.error(code, node, f"{called(name)} {trouble}") if trouble else node.text.rstrip("/")

    return read


def parse_reader(parse: Callable[[str], Any], expected: str) -> Callable[[str], Reader]:
    """Return a factory of readers that convert text by `parse`, which returns `None` for text in another form."""

    def make(name: str) -> Reader:
        def read(node: Node, findings: Collector) -> Any:
            if not isinstance(node, Scalar) or not is_text(node):
                return refused(node, findings, name, expected, empty="")
            value = parse(node.text)
            return findings.error("bad-value", node, f"{called(name)} must be {expected}") if value is None else value

        return read

    return make


def duration(text: str) -> float | None:
    """Return the seconds of a duration such as `5m`, or `None` for zero and for text that is no duration."""
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] or None if match else None


def span(text: str) -> float | None:
    """Return the seconds of a duration such as `5m` or `0s`, or `None` for text that is no duration."""
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] if match else None


def or_off(values: type[StrEnum]) -> Callable[[str], Reader]:
    """Return a factory of readers of an enum with `off`. They accept `false` as well, which `off` means in YAML 1.1."""
    one_of = choice(values)

    def make(name: str) -> Reader:
        read_one = one_of(name)

        def read(node: Node, findings: Collector) -> Any:
            is_false = isinstance(node, Scalar) and node.text == "false"
            return values("off") if is_false else read_one(node, findings)

        return read

    return make


def path(text: str) -> str | None:
    return text if text.startswith("/") and not re.search(r"[\s?#]", text) else None


def filled_path(text: str) -> str | None:
    return text if text.strip() and "\0" not in text else None


_WEB = r"[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#@:]+(:[0-9]{0,5})?|[Hh][Tt][Tt][Pp][Ss]?://\[[0-9a-fA-F:.]+\](:[0-9]{0,5})?"
_AFTER_SCHEME = r"^(?:git\+ref://)?(?!git\+ref:)[A-Za-z][A-Za-z0-9+.-]*://"
_SECRET_IN_URL = rf"{_AFTER_SCHEME}(?:(?![^:/]*:[0-9]*/).*:.*@|.*[?&;](?:{_SECRET_NAMES})=)"
NO_PASSWORD: dict[str, Any] = {"not": {"type": "string", "pattern": _SECRET_IN_URL}}
"""The JSON Schema of text that is not a URL with a password."""
BASE_URL_SCHEMA = {"type": "string", "pattern": f"^(sandbox|({_WEB})(/[^?#]*)?)$"}
WEB_URL_SCHEMA: dict[str, Any] = {"type": "string", "pattern": f"^({_WEB})([/?][^#]*)?$", **NO_PASSWORD}
BaseUrl = Annotated[str, Reads(base_url), JsonSchema(BASE_URL_SCHEMA)]
UrlPath = Annotated[
    str,
    Reads(parse_reader(path, "a path that starts with /")),
    JsonSchema({"type": "string", "pattern": r"^/[^\s?#]*$"}),
]
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
Method = Annotated[Literal["GET", "POST", "PUT", "PATCH", "DELETE"], Reads(choice(_METHODS))]
Paths = Annotated[
    tuple[str, ...],
    Reads(words(parse_reader(filled_path, "a path"))),
    JsonSchema({"type": "array", "items": {"type": "string", "pattern": r"\S"}}),
]
DURATION_SCHEMA: dict[str, Any] = {"type": "string", "pattern": f"^(?=[0.]*[1-9]){_DURATION.pattern}$"}
Duration = Annotated[
    float,
    Reads(parse_reader(duration, "a duration like 30s, 5m, 1h, 60d or 250ms")),
    JsonSchema(DURATION_SCHEMA),
]
Span = Annotated[
    float,
    Reads(parse_reader(span, "a duration like 6m or 0s")),
    JsonSchema({"type": "string", "pattern": f"^{_DURATION.pattern}$"}),
]
"""A duration that may be zero."""
REFERENCE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "env": {"type": "string", "pattern": f"^{_ENV_NAME.pattern}$"},
        "file": {"type": "string", "pattern": r"\S"},
    },
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
SecretReference = Annotated[Reference, Reads(secret), JsonSchema(REFERENCE_SCHEMA)]
Place = Annotated[
    Reference | str,
    Reads(place),
    JsonSchema({"anyOf": [{"type": "string", "pattern": r"\S", **NO_PASSWORD}, REFERENCE_SCHEMA]}),
]
WebUrl = Annotated[
    Reference | str,
    Reads(web_url),
    JsonSchema({"anyOf": [WEB_URL_SCHEMA, REFERENCE_SCHEMA]}),
]
