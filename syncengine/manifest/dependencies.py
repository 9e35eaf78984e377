"""A manifest that generates → a digest of everything it depends on: data, variables, templates. Reads them all.

Databases and services are queried; files are hashed without being parsed (docs/planning.md 2.8).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from jinja2 import TemplateError, nodes

from syncengine.document.diagnostics import INVALID, Collector
from syncengine.document.digest import sha256_of, sha256_of_values
from syncengine.document.model import constructed
from syncengine.document.nodes import Mapping, Sequence
from syncengine.manifest.context import LoadContext
from syncengine.manifest.files import GENERATES, ManifestFile
from syncengine.manifest.generate.blocks import GENERATE_TABLE
from syncengine.manifest.generate_schema import ForEach, Generate
from syncengine.manifest.read_file import documents_of
from syncengine.manifest.sources.read import file_digest, read_source
from syncengine.manifest.sources.records import SourceTrouble

FORMAT = 1


def digest_with_inputs(file: ManifestFile, data: bytes, context: LoadContext) -> str:
    """Return a digest of a file's bytes and of all inputs of the resources that it generates."""
    folder, findings = (context.root / file.name).parent, Collector(file.name)
    inputs = (
        _of_template(data, context, folder, findings)
        if file.is_template
        else _of_blocks(data, context, folder, findings)
    )
    return sha256_of_values((FORMAT, sha256_of(data), context.variables, context.environ, list(inputs)))


def _of_blocks(data: bytes, context: LoadContext, folder: Path, findings: Collector) -> Iterator[str]:
    """Yield a digest for the source of each block."""
    for root in documents_of(data, findings, context).roots if GENERATES in data else ():
        blocks = root.get("generate") if isinstance(root, Mapping) else None
        for block in blocks.items if isinstance(blocks, Sequence) else ():
            if isinstance(block, Mapping):
                values = GENERATE_TABLE.read(block, Collector(""))
                if "forEach" in values and INVALID not in values.values():
                    yield _filled_digest(context, folder, constructed(Generate, values).for_each)


def _filled_digest(context: LoadContext, folder: Path, for_each: ForEach) -> str:
    from syncengine.manifest.generate.queries import filled

    try:
        return source_digest(context, folder, filled(context, for_each))
    except SourceTrouble as trouble:
        return str(trouble)


def source_digest(context: LoadContext, folder: Path, for_each: ForEach) -> str:
    """Return the digest of a source's rows, or the error message when it cannot be read."""
    if for_each.file is not None:
        return file_digest(context, folder, for_each.file[1].text)
    try:
        return read_source(context, folder, for_each).sha256
    except SourceTrouble as trouble:
        return str(trouble)


def _of_template(data: bytes, context: LoadContext, folder: Path, findings: Collector) -> Iterator[str]:
    """Yield a digest of each source and template that a template names, or of its result when it computes names."""
    from syncengine.manifest.generate.text_templates import GENERATE_SECTION, Loader, render
    from syncengine.templating.environment import SandboxedEnvironment

    environment, loader = SandboxedEnvironment(), Loader(context)
    waiting, met = [data.decode("utf-8", "replace")], set[str]()
    try:
        while waiting:
            text = waiting.pop()
            if GENERATE_SECTION.search(text):
                raise _Unknown
            tree = environment.parse(text)
            for for_each in _data_calls(tree):
                yield source_digest(context, folder, for_each)
            for name in _templates(tree) - met:
                met.add(name)
                source = loader.get_source(environment, name)[0]
                yield sha256_of(source)
                waiting.append(source)
    except (_Unknown, TemplateError, SourceTrouble, RecursionError):
        result = render(data, findings.file, context, findings)
        yield repr(findings.found) if result is None else repr((result.text, result.places.marks))
        if result is not None:
            text_of_result = result.text.encode("utf-8", "surrogatepass")
            yield from _of_blocks(text_of_result, context, folder, Collector(findings.file, line_of=result.places.line))


class _Unknown(Exception):
    """Raised for a template that computes the names of its sources or templates as it runs."""


def _data_calls(tree: nodes.Template) -> Iterator[ForEach]:
    from syncengine.manifest.generate.data_function import for_each_of_call

    calls = [c for c in tree.find_all(nodes.Call) if isinstance(c.node, nodes.Name) and c.node.name == "data"]
    if len(calls) < sum(n.name == "data" for n in tree.find_all(nodes.Name)):
        raise _Unknown
    for call in calls:
        if call.dyn_args or call.dyn_kwargs or len(call.args) > 1:
            raise _Unknown
        path = _constant(call.args[0]) if call.args else None
        yield for_each_of_call(path, {each.key: _constant(each.value) for each in call.kwargs})


def _templates(tree: nodes.Template) -> set[str]:
    loading = (nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)
    names = {_constant(node.template) for each in tree.find_all(loading) for node in (cast("Any", each),)}
    if not all(isinstance(name, str) for name in names):
        raise _Unknown
    return names


def _constant(node: Any) -> Any:
    if isinstance(node, nodes.Const):
        return node.value
    if isinstance(node, nodes.List | nodes.Tuple):
        return [_constant(item) for item in node.items]
    raise _Unknown
