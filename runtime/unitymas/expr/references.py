"""Which member paths a template reads, local names resolved to what they stand for."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import nodes

from unitymas.expr.paths import ITEM, Path

GLOBALS = frozenset({"range", "dict", "namespace", "cycler", "joiner", "loop", "caller", "varargs", "kwargs"})
"""Names that every template has; no variable goes by them."""

METHODS = frozenset({"items", "keys", "values", "get"})
"""Methods of a record that templates may call, where no field has the name."""

_CALLABLE = METHODS | {name for name in dir(str) if not name.startswith("_")}

_SAME_LIST = frozenset({"list", "reverse", "sort", "unique", "default", "d"})
_ONE_ITEM = frozenset({"first", "last", "min", "max"})

Locals = dict[str, Path | None]
"""What a local name stands for; None when that is no path."""


def references(template: nodes.Template) -> set[Path]:
    """Every member path read, ITEM for an item of a list; names of loops, macros and `set` resolved or left out."""
    return {path for path in _block(template.body, {}) if path[0] not in GLOBALS}


def _block(body: list[nodes.Node], known: Locals) -> Iterator[Path]:
    """Statements in order; `known` grows as they set names."""
    for node in body:
        yield from _statement(node, known)


def _statement(node: nodes.Node, known: Locals) -> Iterator[Path]:
    match node:
        case nodes.For():
            yield from _for(node, known)
        case nodes.If():
            yield from _reads(node.test, known)
            for branch in (node.body, node.elif_, node.else_):
                yield from _block(list(branch), known)
        case nodes.Assign():
            yield from _reads(node.node, known)
            _bind(node.target, _path(node.node, known), known)
        case nodes.AssignBlock():
            yield from _block(node.body, dict(known))
            _bind(node.target, None, known)
        case nodes.With():
            inner = dict(known)
            for target, value in zip(node.targets, node.values, strict=True):
                yield from _reads(value, known)
                _bind(target, _path(value, known), inner)
            yield from _block(node.body, inner)
        case nodes.Macro() | nodes.CallBlock():
            if isinstance(node, nodes.Macro):
                known[node.name] = None
            else:
                yield from _reads(node.call, known)
            for default in node.defaults:
                yield from _reads(default, known)
            yield from _block(node.body, {**known, **{argument.name: None for argument in node.args}})
        case nodes.FilterBlock():
            yield from _reads(node.filter, known)
            yield from _block(node.body, dict(known))
        case _:
            yield from _reads(node, known)


def _for(node: nodes.For, known: Locals) -> Iterator[Path]:
    yield from _reads(node.iter, known)
    inner = dict(known)
    items = _path(node.iter, known)
    _bind(node.target, None if items is None else (*items, ITEM), inner)
    if node.test is not None:
        yield from _reads(node.test, inner)
    yield from _block(node.body, inner)
    yield from _block(node.else_, dict(known))


def _bind(target: nodes.Node, path: Path | None, known: Locals) -> None:
    if isinstance(target, nodes.Name):
        known[target.name] = path
    else:
        known.update({name.name: None for name in target.find_all(nodes.Name)})


def _reads(node: nodes.Node, known: Locals) -> Iterator[Path]:
    """The paths that an expression reads: the longest ones, and those inside of what is no path."""
    path = _path(node, known)
    match node:
        case nodes.Name() | nodes.Getattr() | nodes.Getitem() if path is not None:
            yield path
            yield from _arguments(node, known)
        case nodes.Name():
            return
        case nodes.Call(node=nodes.Getattr() as method) if method.attr in _CALLABLE:
            yield from _reads(method.node, known)
            yield from _children(node, known, skip=method)
        case _:
            yield from _children(node, known)


def _arguments(node: nodes.Node, known: Locals) -> Iterator[Path]:
    """What a path reads on its way: indexes and the arguments of filters."""
    match node:
        case nodes.Getattr():
            yield from _arguments(node.node, known)
        case nodes.Getitem():
            yield from _arguments(node.node, known)
            yield from _reads(node.arg, known)
        case nodes.Filter() if node.node is not None:
            yield from _arguments(node.node, known)
            yield from _children(node, known, skip=node.node)
        case _:
            return


def _children(node: nodes.Node, known: Locals, skip: nodes.Node | None = None) -> Iterator[Path]:
    for child in node.iter_child_nodes():
        if child is not skip:
            yield from _reads(child, known)


def _path(node: nodes.Node, known: Locals) -> Path | None:
    """The path that an expression is, through members, indexes and filters that keep the items."""
    match node:
        case nodes.Name():
            return known.get(node.name, (node.name,))
        case nodes.Getattr():
            before, step = _path(node.node, known), (node.attr,)
        case nodes.Getitem(arg=nodes.Const(value=str(key))):
            before, step = _path(node.node, known), (key,)
        case nodes.Getitem():
            before = _path(node.node, known)
            step = () if isinstance(node.arg, nodes.Slice) else (ITEM,)
        case nodes.Filter() if node.node is not None and node.name in _SAME_LIST | _ONE_ITEM:
            before, step = _path(node.node, known), (ITEM,) if node.name in _ONE_ITEM else ()
        case _:
            return None
    return None if before is None else (*before, *step)
