"""Shapes as protobuf messages, so that the engine's checker knows every field; and its types back as shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import assert_never

from cel_expr_python import cel
from google.protobuf import descriptor_pool, struct_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from unitymas.api.shapes import ANY, BOOL, INT, NUMBER, STRING, ListOf, Record, Scalar, Shape

PACKAGE = "__shape"
"""Not a name that users can give a variable, so `__shape.R1` hides none."""

_SAYABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_CEL = {
    "string": cel.Type.STRING,
    "number": cel.Type.DOUBLE,
    "int": cel.Type.INT,
    "bool": cel.Type.BOOL,
    "any": cel.Type.DYN,
}
_FIELD = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "number": FieldDescriptorProto.TYPE_DOUBLE,
    "int": FieldDescriptorProto.TYPE_INT64,
    "bool": FieldDescriptorProto.TYPE_BOOL,
}
_SHAPES = {"STRING": STRING, "DOUBLE": NUMBER, "INT": INT, "BOOL": BOOL, "DYN": ANY}


class Messages:
    """The message types of one environment: one for each record shape that it can reach."""

    def __init__(self, variables: Mapping[str, Shape]) -> None:
        self._names: dict[Record, str] = {}
        self._file = FileDescriptorProto(name="shapes.proto", package=PACKAGE, syntax="proto3")
        self._file.dependency.append("google/protobuf/struct.proto")
        self.variables = {name: self._cel_type(shape) for name, shape in variables.items()}
        # a message field cannot be a list of lists; a variable of a qualified name can, and the checker prefers it
        self.nested = {path: self._cel_type(shape) for path, shape in _nested_lists(variables)}
        self._records = {name: record for record, name in self._names.items()}

    def pool(self) -> descriptor_pool.DescriptorPool:
        """A descriptor pool that holds them."""
        values = FileDescriptorProto()
        struct_pb2.DESCRIPTOR.CopyToProto(values)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(values)
        pool.Add(self._file)
        return pool

    def record(self, message_name: str) -> Record | None:
        """The record shape that a message stands for."""
        return self._records.get(message_name)

    def shape(self, type_name: str) -> Shape | None:
        """The shape of a type as the checker names it, such as `LIST<__shape.R1>`; None for what JSON cannot say."""
        if type_name.startswith("LIST<"):
            item = self.shape(type_name[5:-1])
            return None if item is None else ListOf(item)
        if type_name.startswith("MAP<") or type_name == "LIST":
            return ANY
        return _SHAPES.get(type_name) or self.record(type_name)

    def describe(self, text: str) -> str:
        """A message of the engine with the records' fields in place of message names."""

        def spelled(match: re.Match[str]) -> str:
            record = self.record(match[0])
            return "{" + ", ".join(record.names()) + "}" if record else match[0]

        return re.sub(rf"{PACKAGE}\.R\d+", spelled, text)

    def _cel_type(self, shape: Shape) -> cel.Type:
        match shape:
            case Scalar(name):
                return _CEL[name]
            case ListOf(item):
                return cel.Type.List(self._cel_type(item))
            case Record():
                return cel.Type(self._message(shape))
        assert_never(shape)

    def _message(self, record: Record) -> str:
        if record in self._names:
            return self._names[record]
        short = f"R{len(self._names) + 1}"
        self._names[record] = f"{PACKAGE}.{short}"
        message = self._file.message_type.add(name=short)
        message.options.deprecated_legacy_json_field_conflicts = True  # else `a_b` and `aB` would collide
        for number, (name, shape) in enumerate(record.fields, start=1):
            if _SAYABLE.fullmatch(name):  # no expression can name another field
                field = message.field.add(name=name, number=number, json_name=name)
                self._fill(field, shape)
        return self._names[record]

    def _fill(self, field: FieldDescriptorProto, shape: Shape) -> None:
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        if isinstance(shape, ListOf):
            field.label = FieldDescriptorProto.LABEL_REPEATED
            shape = shape.item
        match shape:
            case Scalar("any"):
                self._refer(field, "google.protobuf.Value")
            case Scalar(name):
                field.type = _FIELD[name]
            case ListOf():
                field.label = FieldDescriptorProto.LABEL_OPTIONAL
                self._refer(field, "google.protobuf.ListValue")
            case Record():
                self._refer(field, self._message(shape))

    @staticmethod
    def _refer(field: FieldDescriptorProto, message_name: str) -> None:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{message_name}"


def _nested_lists(fields: Mapping[str, Shape], prefix: str = "") -> Iterator[tuple[str, Shape]]:
    """Every list of lists that is reached through records alone, by its dotted path."""
    for name, shape in fields.items():
        match shape:
            case Record(inner):
                yield from _nested_lists(dict(inner), f"{prefix}{name}.")
            case ListOf(ListOf()) if prefix:
                yield prefix + name, shape
            case ListOf() | Scalar():
                pass
