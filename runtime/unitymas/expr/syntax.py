"""What the engine read: the syntax tree of an expression, from the engine's serialised form.

The messages are those of CEL's public `cel.expr.ParsedExpr` and `CheckedExpr`, as far as they are needed here.
Source: github.com/google/cel-spec, proto/cel/expr/{syntax,checked}.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

from unitymas.expr.paths import Path

Node = Any
"""A protobuf message `Expr`; its class is made at run time."""

_Fields = dict[str, tuple[int, str]]

_SCALARS = {"int64": 3, "uint64": 4, "bool": 8, "string": 9, "bytes": 12, "double": 1}
_MESSAGES: dict[str, _Fields] = {
    "Constant": {
        "null_value": (1, "int64"),
        "bool_value": (2, "bool"),
        "int64_value": (3, "int64"),
        "uint64_value": (4, "uint64"),
        "double_value": (5, "double"),
        "string_value": (6, "string"),
        "bytes_value": (7, "bytes"),
    },
    "Ident": {"name": (1, "string")},
    "Select": {"operand": (1, "Expr"), "field": (2, "string"), "test_only": (3, "bool")},
    "Call": {"target": (1, "Expr"), "function": (2, "string"), "args": (3, "*Expr")},
    "CreateList": {"elements": (1, "*Expr")},
    "Entry": {"id": (1, "int64"), "field_key": (2, "string"), "map_key": (3, "Expr"), "value": (4, "Expr")},
    "CreateStruct": {"message_name": (1, "string"), "entries": (2, "*Entry")},
    "Comprehension": {
        "iter_var": (1, "string"),
        "iter_range": (2, "Expr"),
        "accu_var": (3, "string"),
        "accu_init": (4, "Expr"),
        "loop_condition": (5, "Expr"),
        "loop_step": (6, "Expr"),
        "result": (7, "Expr"),
        "iter_var2": (8, "string"),
    },
    "Expr": {
        "id": (2, "int64"),
        "const_expr": (3, "Constant"),
        "ident_expr": (4, "Ident"),
        "select_expr": (5, "Select"),
        "call_expr": (6, "Call"),
        "list_expr": (7, "CreateList"),
        "struct_expr": (8, "CreateStruct"),
        "comprehension_expr": (9, "Comprehension"),
    },
    "Reference": {"name": (1, "string"), "overload_id": (3, "*string")},
    "Resolved": {"key": (1, "int64"), "value": (2, "Reference")},
    "ParsedExpr": {"expr": (2, "Expr")},
    "CheckedExpr": {"reference_map": (2, "*Resolved"), "expr": (4, "Expr")},
}


def _message_classes() -> dict[str, Any]:
    """Classes of the messages above. All fields are optional or repeated, so that presence can be asked."""
    file = descriptor_pb2.FileDescriptorProto(name="expression.proto", package="expression", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            field = message.field.add(name=field_name, number=number, label=3 if kind.startswith("*") else 1)
            kind = kind.removeprefix("*")
            if kind in _SCALARS:
                field.type = descriptor_pb2.FieldDescriptorProto.Type.ValueType(_SCALARS[kind])
            else:
                field.type_name = f".expression.{kind}"
                field.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"expression.{name}")) for name in _MESSAGES
    }


_CLASSES = _message_classes()


def _unpack(serialised: bytes, kind: str) -> Any:
    return _CLASSES[kind].FromString(any_pb2.Any.FromString(serialised).value)


def _kind(node: Node) -> str:
    return next((field.name for field, _ in node.ListFields() if field.name != "id"), "")


def _children(node: Node) -> Iterator[tuple[Node, frozenset[str]]]:
    """The nodes right below, each with the names that are bound for it."""
    none: frozenset[str] = frozenset()
    match _kind(node):
        case "select_expr":
            yield node.select_expr.operand, none
        case "call_expr":
            if node.call_expr.HasField("target"):
                yield node.call_expr.target, none
            yield from ((argument, none) for argument in node.call_expr.args)
        case "list_expr":
            yield from ((element, none) for element in node.list_expr.elements)
        case "struct_expr":
            for entry in node.struct_expr.entries:
                yield from ((part, none) for part in (entry.map_key, entry.value) if part.ListFields())
        case "comprehension_expr":
            fold = node.comprehension_expr
            result = frozenset({fold.accu_var})
            step = result | {fold.iter_var, fold.iter_var2}
            yield from ((fold.iter_range, none), (fold.accu_init, none))
            yield from ((fold.loop_condition, step), (fold.loop_step, step), (fold.result, result))
        case _:
            return


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child, _ in _children(node):
        yield from _walk(child)


def _member_path(node: Node) -> Path | None:
    """The path when the node is nothing but one: `a`, `a.b`, `a['b']`."""
    match _kind(node):
        case "ident_expr":
            return (node.ident_expr.name.removeprefix("."),)
        case "select_expr":
            operand, name = node.select_expr.operand, node.select_expr.field
        case "call_expr" if node.call_expr.function == "_[_]" and node.call_expr.args[1].const_expr.HasField(
            "string_value"
        ):
            operand, key = node.call_expr.args
            name = key.const_expr.string_value
        case _:
            return None
    before = _member_path(operand)
    return None if before is None else (*before, name)


def _paths(node: Node, bound: frozenset[str]) -> Iterator[Path]:
    path = _member_path(node)
    if path is not None:
        if path[0] not in bound:
            yield path
        return
    for child, names in _children(node):
        yield from _paths(child, bound | names)


@dataclass(frozen=True)
class Syntax:
    """A parsed expression."""

    text: str
    parsed: bytes
    """Serialised by the engine, unchecked."""

    @cached_property
    def _root(self) -> Node:
        return _unpack(self.parsed, "ParsedExpr").expr

    @cached_property
    def paths(self) -> frozenset[Path]:
        """The longest member paths read; variables of comprehensions and `cel.bind` left out."""
        return frozenset(_paths(self._root, frozenset()))

    @property
    def path(self) -> Path | None:
        """The member path when the expression is nothing else."""
        return None if self.asks else _member_path(self._root)

    @property
    def asks(self) -> bool:
        """Whether there is a `has(...)`."""
        return any(node.select_expr.test_only for node in _walk(self._root))

    @property
    def literal(self) -> object | None:
        """The value when the expression is one string, number or truth value."""
        constant = self._root.const_expr
        kinds = ("string_value", "double_value", "int64_value", "bool_value")
        return next((getattr(constant, kind) for kind in kinds if constant.HasField(kind)), None)

    @property
    def has_records(self) -> bool:
        """Whether there is a record literal, `{'a': 1}`."""
        return any(node.HasField("struct_expr") for node in _walk(self._root))

    @property
    def message_name(self) -> str:
        """The first protobuf message that the expression makes, `Name{...}`, which is not in the language."""
        made = (node.struct_expr.message_name for node in _walk(self._root))
        return next((name for name in made if name), "")

    def renamed(self, functions: Mapping[int, str]) -> bytes:
        """The expression, serialised, with some calls going to other functions, by node id."""
        message = _unpack(self.parsed, "ParsedExpr")
        for node in _walk(message.expr):
            if node.id in functions:
                node.call_expr.function = functions[node.id]
        wrapped = any_pb2.Any(type_url="type.googleapis.com/cel.expr.ParsedExpr", value=message.SerializeToString())
        return wrapped.SerializeToString()


def overloads(checked: bytes) -> dict[int, str]:
    """The overload that the checker chose, by node id, where it chose exactly one."""
    resolved = _unpack(checked, "CheckedExpr").reference_map
    return {entry.key: entry.value.overload_id[0] for entry in resolved if len(entry.value.overload_id) == 1}
