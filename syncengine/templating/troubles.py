"""The exceptions of templates → sentences of ours, by one table; words of Python or Jinja2 are never shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache

from jinja2 import Environment, TemplateError, TemplateNotFound, TemplateSyntaxError, UndefinedError

from syncengine.document.diagnostics import suggestion
from syncengine.templating.bounds import TooMuch, WrongKind
from syncengine.templating.filters import FILTERS, TESTS, FilterTrouble

SURPRISES = (
    *(TemplateError, TooMuch, ArithmeticError, TypeError, ValueError, LookupError, AttributeError),
    *(RecursionError, MemoryError, AssertionError, re.error),
)
"""The exceptions of a running template. A template that is compiled while it runs can also raise `SyntaxError`."""


class NoElement(UndefinedError):
    """Raised when a value lacks an element that a template uses, such as the second part of a name without a dash."""


def is_of_data(error: BaseException) -> bool:
    """Return whether a template failed with its data, and not by itself or because of a limit."""
    of_values = isinstance(error, ArithmeticError | TypeError | ValueError | LookupError | AttributeError)
    return isinstance(error, NoElement) or (of_values and not isinstance(error, TemplateError | FilterTrouble))


_OWN = (TooMuch, FilterTrouble, WrongKind)
"""The exceptions whose text is a sentence of ours. So is that of a `TemplateError` that is not in the table."""
_BY_TYPE: tuple[tuple[type[BaseException], str], ...] = (
    (RecursionError, "it is nested too deeply or calls itself endlessly"),
    (MemoryError, "it needs too much memory"),
    (ZeroDivisionError, "it divides by zero"),
    (OverflowError, "a number would be too large"),
    (ArithmeticError, "a number cannot be calculated with"),
    (UnicodeError, "a text has characters that its encoding does not have"),
    (re.error, "a pattern is not valid"),
    (LookupError, "a value has no such element"),
    (AttributeError, "a value is not of a kind that can be used here"),
    (TypeError, "a value is not of a kind that can be used here"),
    (ValueError, "a value cannot be used here"),
    (Exception, "an expression or a statement cannot be used here"),
)
"""The sentences of exceptions whose words no row of the table knows, such as those of a later version of Python."""
_KINDS = {
    **dict.fromkeys(("str", "Markup"), "text"),
    **dict.fromkeys(("int", "float", "Decimal", "complex"), "a number"),
    **dict.fromkeys(("list", "tuple", "range", "set"), "a list"),
    **dict.fromkeys(("dict", "Named", "_Object", "Namespace"), "a mapping"),
    **dict.fromkeys(("NoneType", "None"), "none"),
    **dict.fromkeys(("generator", "map", "dict_items", "dict_keys", "dict_values"), "a sequence without `| list`"),
    **dict.fromkeys(("function", "method", "builtin_function_or_method", "type", "Macro"), "a function"),
    "Record": "a row",
    "bool": "true or false",
    "bytes": "bytes",
    "LoopContext": "`loop`",
    "datetime": "a time",
    "date": "a date",
    "time": "a time of day",
    "timedelta": "a span of time",
}
"""The types of values in words. A type that is none of these is `a value`."""
_TOKENS = {
    "begin of print statement": "`{{`",
    "end of print statement": "`}}`",
    "name": "a name",
    "string": "a text",
    "begin of statement block": "`{%`",
    "end of statement block": "`%}`",
    "integer": "a number",
    "float": "a number",
    "begin of comment": "`{#`",
    "end of comment": "`#}`",
    "end of template": "the end",
    "template data / text": "text",
}
"""The parts of a template in words. Any other is shown as it is written."""
_FUNCTIONS = {
    getattr(function, "__name__", ""): name for table in (TESTS, FILTERS) for name, function in table.items()
} | {"bounded_range": "range", "Joiner.__init__": "joiner", "Namespace.__init__": "namespace"}
"""The names of functions in templates, by those that they have in Python."""

_A_NUMBER = "write `| int` or `| float` for a text that is a number"
_JOIN = f"join texts by `~`, or {_A_NUMBER}"
_N = r"int|float|decimal\.Decimal"
_F, _ARGUMENTS = r"(?:(?P<function>[\w.<>]+)\(\) )?", r"arguments?"
_TABLE: tuple[tuple[str, str], ...] = (
    # Values
    (r"can only concatenate str .not \"(?P<kind>[\w.]+)\". to str", f"`+` does not take text and {{kind}}: {_JOIN}"),
    (r"can only concatenate (?P<left>\w+) .not \"(?P<kind>[\w.]+)\". to .+", "`+` does not take {left} and {kind}"),
    (rf"unsupported operand type.s. for (?P<sign>\S+)(?: or .+)?: '(?P<left>str)' and '(?P<kind>{_N})'"
     rf"|unsupported operand type.s. for (?P<sign2>\S+)(?: or .+)?: '(?P<left2>{_N})' and '(?P<kind2>str)'",
     f"`{{sign}}` does not take {{left}} and {{kind}}: {_A_NUMBER}"),
    (r"unsupported operand type.s. for (?P<sign>\S+)(?: or .+)?: '(?P<left>[\w.]+)' and '(?P<kind>[\w.]+)'",
     "`{sign}` does not take {left} and {kind}"),
    (r"can't multiply sequence by non-int of type .+", f"`*` takes two numbers: {_A_NUMBER}"),
    (r"bad operand type for (?:unary )?(?P<sign>\S+?)(?:\(\))?: '(?P<kind>[\w.]+)'", "`{sign}` does not take {kind}"),
    (rf"'.+' not supported between instances of '(?P<left>str)' and '(?P<kind>{_N})'"
     rf"|'.+' not supported between instances of '(?P<left2>{_N})' and '(?P<kind2>str)'",
     f"{{left}} cannot be compared with {{kind}}: {_A_NUMBER}"),
    (r"'.+' not supported between instances of '(?P<left>[\w.]+)' and '(?P<kind>[\w.]+)'"
     r"|can't compare (?P<left2>[\w.]+) to (?P<kind2>[\w.]+)", "{left} cannot be compared with {kind}"),
    (r"can't \w+ offset-naive and offset-aware \w+", "one time has a zone and the other none: use `| utc`"),
    (r"argument of type '(?P<kind>[\w.]+)' is not (?:iterable|a container or iterable)",
     "`in` looks into a text, a list or a mapping, not into {kind}"),
    (r"'in <string>' requires string as .+, not (?P<kind>[\w.]+)", "`in` looks for text in a text, not for {kind}"),
    (r"'(?P<kind>[\w.]+)' object is not (?:iterable|reversible)|cannot unpack non-iterable (?P<kind2>[\w.]+) object"
     r"|Value after \* must be an iterable, not (?P<kind3>[\w.]+)", "a list is needed, not {kind}"),
    (r"argument must be iterable", "a list is needed"),
    (r"object of type '(?P<kind>[\w.]+)' has no len\(\)|'(?P<kind2>[\w.]+)' object is not subscriptable",
     "a text or a list is needed, not {kind}"),
    (r"Can only get item pairs from a mapping|.+ argument after \*\* must be a mapping, not .+", "a mapping is needed"),
    (r"'(?P<kind>[\w.]+)' object has no attribute 'items'", "a mapping is needed, not {kind}"),
    (r"(?:cannot convert )?dictionary update sequence .+", "`dict` needs pairs of a name and a value"),
    (r"'(?P<kind>[\w.]+)' object is not callable", "{kind} is not a function: remove the parentheses behind it"),
    (r"'(?P<kind>[\w.]+)' object cannot be interpreted as an integer"
     r"|slice indices must be integers or .+|\w+ indices must be integers.*", "a whole number is needed"),
    (r"(?:cannot use '.+' as a \w+ \w+ \()?unhashable type: '(?P<kind>[\w.]+)'\)?", "{kind} cannot be a key"),
    (r"'(?P<kind>[\w.]+)(?: object)?' has no attribute ['\"](?P<name>.*)['\"]", "{kind} has no `{name}`"),
    (r"(?P<kind>[\w.]+)(?: object)? has no element (?P<name>-?\d+)", "{kind} has no element {name}"),
    (r"(?P<kind>[\w.]+)(?: object)? has no element .+", "{kind} has no such element"),
    (r"access to attribute '(?P<name>.*)' of .+ is unsafe", "templates cannot use `{name}`"),
    (r"['\"](?P<name>.*)['\"] is undefined", "`{name}` is undefined"),
    (r"not enough values to unpack .expected (?:at least )?(?P<count>\d+), got (?P<name>\d+).",
     "{count} values are needed, but there are {name}"),
    (r"too many values to unpack .expected (?P<count>\d+).*", "there are more than {count} values"),
    (r"No \w+ item, sequence was empty", "the list is empty"),
    (r"the inline if-expression on line (?P<count>\d+) .+", "the `if` in line {count} is false and has no `else`"),
    (r"cannot assign attribute on non-namespace object", "only the fields of a `namespace` can be set"),
    # Calls
    (rf"{_F}(?:takes .+ but \d+ (?:was|were) given|takes (?:exactly|at most) .+ {_ARGUMENTS} \(\d+ given\))"
     r"|(?P<function2>\w+) expected at most .+, got \d+|too many positional arguments"
     r"|macro '(?P<function3>\w+)' takes not more than .+", "{function} has too many arguments"),
    (rf"{_F}takes no (?:keyword )?arguments(?: \(\d+ given\))?", "{function} takes no such arguments"),
    (rf"{_F}missing (?:a|\d+) required (?:positional |keyword-only )?{_ARGUMENTS}:? (?P<names>'.+')",
     "{function} lacks {names}"),
    (r"(?P<function>\w+) expected (?:at least )?.+, got \d+", "{function} has too few arguments"),
    (rf"{_F}(?:got an unexpected|takes no) keyword argument '(?P<name>.*)'|'(?P<name2>.*)' is an invalid keyword .+"
     r"|(?:macro '(?P<function2>\w+)' takes no|Unexpected) keyword argument '(?P<name3>.*)'",
     "{function} has no argument `{name}`"),
    (rf"{_F}(?:got )?multiple values for argument '(?P<name>.*)'|keyword argument repeated: (?P<name2>.*)",
     "the argument `{name}` is given twice"),
    (rf"{_F}argument (?:\S+ )?must be .+, not (?P<kind>[\w.]+)", "{function} does not take {kind}"),
    (r"parameter '(?P<name>.*)' was not provided", "the argument `{name}` is missing"),
    (r"range\(\) arg 3 must not be zero", "the step of `range` is 0"),
    (r"slice step cannot be zero", "the step of a slice is 0"),
    (r"invalid width .+", "the width must be more than 0"),
    (r"empty separator", "the separator is empty"),
    (r"substring not found|.+ is not in \w+|\S+index\(x\): x not in \w+", "what is looked for is not there"),
    (r"The fill character must be exactly one character long", "the text to fill with must be one character"),
    (r"int\(\) base must be .+", "the base of `int` must be 2 to 36"),
    (r"invalid literal for .+|could not convert string to .+", "a text is not a number"),
    (r"unknown encoding: (?P<name>.*)", "there is no encoding `{name}`"),
    (r"method must be common, ceil or floor", "the method of `round` must be `common`, `ceil` or `floor`"),
    (r"You can only sort by either .+", "`dictsort` sorts by `key` or by `value`"),
    (r"'(?P<name>.*)' is not a valid URI scheme prefix", "`{name}` is no beginning of a URL, such as `https:`"),
    (r"map requires a filter argument", "`map` needs the name of a filter, or `attribute=`"),
    (r"Missing parameter for attribute name", "the name of the attribute is missing"),
    (r"can't handle positional and keyword arguments .+", "`format` takes its values by place or by name, not both"),
    (r"tuple index out of range|Replacement index .+|not enough arguments for format string",
     "the format has more places than there are values"),
    (r"not all arguments converted during string formatting",
     "the format has fewer places than there are values; for a text that is divided, write `| int`"),
    (r"format requires a mapping", "the format names its values, so it needs them by name"),
    (r"%\w format: .+, not (?P<kind>[\w.]+)|Unknown format code .+ for object of type '(?P<kind2>[\w.]+)'",
     "the format does not fit {kind}"),
    (r"(?:Single '.' encountered in|incomplete|unsupported|Invalid|Unknown) format.*|expected '}' before end of string"
     r"|format specifier missing .+|cannot switch from .+", "the format is not valid"),
    (r"The loop must have the 'recursive' marker .+", "a loop that is called needs `recursive` after its list"),
    (r"no items for cycling given", "`cycle` needs values"),
    # Names of templates and of parts of them
    (r"no loader for this environment specified", "other templates can be used only in files that end in .j2"),
    (r"there is no parent block called '(?P<name>.*)'", "there is no block `{name}` to continue"),
    (r"the template .+ does not export the requested name '(?P<name>.*)'", "the template has no `{name}`"),
    (r"block '(?P<name>.*)' defined twice", "there are two blocks `{name}`"),
    (r"Required block '(?P<name>.*)' not found", "the block `{name}` is missing"),
    (r"none of the templates given were found: (?P<names>.*)", "there is no template {names}"),
    (r"Tried to select from an empty list of templates", "the list of templates is empty"),
    (r"extended multiple times", "a template can extend one other only"),
    # Syntax
    (r"unexpected end of template, expected '(?P<token>.*)'", "{token} is missing at the end"),
    (r"expected token '(?P<token>.*)', got '(?P<got>.*)'", "{token} is needed before {got}"),
    (r"unexpected '(?P<got>.*)', expected '(?P<token>.*)'", "{token} is needed before {got}"),
    (r"Expected an expression, got '(?P<got>.*)'|unexpected '(?P<got2>(?:end of|begin of).*|\W)'",
     "a value or a bracket is missing before {got}"),
    (r"unexpected '(?P<got>.*)'", "{got} cannot stand here"),
    (r"unexpected char (?P<quote>['\"])(?P<name>['\"])(?P=quote) at \d+", "the quote {name} is never closed"),
    (r"unexpected char '(?P<name>.*)' at \d+|Invalid character in identifier", "`{name}` cannot stand here"),
    (r"Unexpected end of template\. .* closed is '(?P<name>\w+)'|Missing end of (?P<name2>\w+) (?:directive|tag)",
     "`{name}` is never closed"),
    (r"Encountered unknown tag '(?P<name>end\w+|el\w+)'.* closed is '(?P<count>\w+)'",
     "`{name}` cannot stand here, where `{count}` is not closed"),
    (r"Encountered unknown tag '(?P<name>end\w+|el\w+)'.*", "`{name}` cannot stand here"),
    (r"Encountered unknown tag '(?P<name>\w+)'.*", "there is no statement `{name}`"),
    (r"tag name expected", "the name of a statement is missing after `{{%`"),
    (r"expected name or number", "a name is missing after the dot"),
    (r"expected subscript expression", "an index is missing in the brackets"),
    (r"can't assign to '.+'|Can't assign to special .+|cannot assign to .+", "only a name, but not `loop`, can be set"),
    (r"non-default argument follows default argument", "arguments with a default must be last"),
    (r"invalid syntax for function call expression", "the arguments of the call are not valid"),
    (r"You cannot chain multiple tests with is", "a second `is` needs parentheses around the first"),
    (r"Block names in Jinja .+", "the name of a block cannot contain a hyphen"),
    (r"Required blocks can only .+", "a block that is required must be empty"),
    (r"names starting with an underline .+", "a name that begins with `_` cannot be imported"),
    (r"cannot use extend from a non top-level scope", "`extends` must not stand in another statement"),
    (r"When defining macros or call blocks .+", "the argument `caller` needs a default"),
    (r"expected call", "`call` needs a call of a macro"),
    (r"\(unicode error\) .+|truncated .+ escape|malformed .+|.*illegal Unicode character.*|.*unknown Unicode .*",
     "an escape in a text is not valid"),
)  # fmt: skip
"""The words of Python (3.11 and later) and Jinja2, and a sentence of ours for them. The first that fits is used."""
_ROWS = tuple((re.compile(words, re.DOTALL), sentence) for words, sentence in _TABLE)
_NO_SUCH = re.compile(r"No (filter|test) named '?(.*?)'?(?: found)?\.?", re.DOTALL)
_NAMED: dict[str, Callable[[str], str]] = {
    "kind": lambda text: _KINDS.get(text.rpartition(".")[2], "a value"),
    "left": lambda text: _KINDS.get(text.rpartition(".")[2], "a value"),
    "token": lambda text: _TOKENS.get(text, f"`{text}`"),
    "got": lambda text: _TOKENS.get(text, f"`{text}`"),
    "function": lambda text: f"`{_FUNCTIONS.get(text, text.rpartition('.')[2])}`",
    "names": lambda text: re.sub(r"'(\w*)'", r"`\1`", text),
}
"""The groups of the table whose text is not shown as it is."""


@lru_cache(maxsize=1000)  # the rows of a source fail alike
def _sentence(words: str) -> str | None:
    """Return the sentence for words of a library, or `None` if no row of the table knows them."""
    for pattern, sentence in _ROWS:
        if match := pattern.fullmatch(words):
            found = {name.rstrip("23"): text for name, text in match.groupdict().items() if text is not None}
            shown = {name: _NAMED.get(name, str)(text) for name, text in found.items()}
            return sentence.format_map({"function": "the function", "kind": "a value", "name": "", **shown})
    return None


def trouble(error: BaseException, filters: Collection[str] = FILTERS, tests: Collection[str] = TESTS) -> str:
    """Return a sentence of ours for an exception that a template raised, at most 300 characters long."""
    words = error.message if isinstance(error, TemplateSyntaxError) else getattr(error, "msg", error)
    text = " ".join(str(words).split())
    if isinstance(error, TemplateNotFound) and text == error.name:
        text = f"there is no template `{text}`"
    if not isinstance(error, _OWN):
        match = _NO_SUCH.fullmatch(text)
        if match is not None:
            names = [name for name in (filters if match[1] == "filter" else tests) if name.isidentifier()]
            return f"there is no {match[1]} `{match[2][:100]}`{suggestion(match[2], names)}"
        by_type = next((sentence for kind, sentence in _BY_TYPE if isinstance(error, kind)), text)
        text = _sentence(text.rstrip(".")) or (text if isinstance(error, TemplateError) else by_type)
    return text[:300] or type(error).__name__


_DOTTED = re.compile(r"\b(\w+)\.(\w[^\"'{}|()\[\]=<>!,+*~%:]*)")
"""A name behind a dot, up to a sign that cannot be part of a column's name."""
_WORDS_AROUND = re.compile(r"\s(?:if|else|and|or|in|is|not)\s.*", re.DOTALL)


def column_hint(text: str) -> str:
    """Return how to write a column whose name has blanks or signs, if the text has one behind a dot, or nothing."""
    for match in _DOTTED.finditer(text):
        name = _WORDS_AROUND.sub("", match[2]).strip()
        if not re.fullmatch(r"\w+(\.[^\W\d]\w*)*", name) and f"{match[1]}." not in name:
            return f'; write a column whose name has blanks or signs as `{match[1]}["{name}"]`'
    return ""


def syntax_trouble(error: TemplateSyntaxError, environment: Environment, text: str = "") -> str:
    """Return the message of a syntax error in `text`, with a suggestion for an unknown filter, test or column."""
    why = trouble(error, environment.filters, environment.tests)
    return f"the template is not valid: {why}{column_hint(text)}"
