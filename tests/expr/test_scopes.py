"""Scopes: what a node may see."""

from __future__ import annotations

import pytest

import unitymas.expr
from unitymas.api.shapes import BOOL, INT, STRING, record
from unitymas.expr import Scope

SEARCH = record(output=STRING, ok=BOOL)


def test_builders_leave_the_scope_they_start_from_alone() -> None:
    empty = Scope()
    turns = empty.with_variable("turn", INT)
    nodes = turns.with_node("search", SEARCH)
    assert (dict(empty.variables), list(turns.variables), list(nodes.variables)) == ({}, ["turn"], ["turn", "nodes"])


def test_a_node_is_seen_as_a_field_of_nodes() -> None:
    scope = Scope().with_node("search", SEARCH).with_node("count", record(total=INT))
    assert scope.node("search") == SEARCH
    assert scope.node("other") is None
    assert scope.compile("nodes.count.total + size(nodes.search.output)").shape == INT


def test_variables_cannot_be_changed_in_place() -> None:
    with pytest.raises(TypeError):
        Scope().variables["turn"] = INT  # pyright: ignore[reportIndexIssue]


def test_the_package_exports_what_it_says() -> None:
    assert len(unitymas.expr.__all__) <= 20
    assert all(getattr(unitymas.expr, name).__doc__ for name in unitymas.expr.__all__)
