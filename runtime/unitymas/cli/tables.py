"""A run's records as DuckDB tables: `visits` and `metrics`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from unitymas.api.errors import BadInput, Finding

QUERIES: tuple[tuple[str, str], ...] = (
    (
        "mean reward by step and role",
        "SELECT step, role, avg(reward) AS reward FROM visits"
        " WHERE phase = 'train' AND role <> '' GROUP BY ALL ORDER BY ALL",
    ),
    (
        "the ten worst trajectories, to be told with --trajectory",
        "SELECT trajectory, any_value(score) AS score FROM visits GROUP BY ALL ORDER BY score LIMIT 10",
    ),
    (
        "replies that did not parse",
        "SELECT role, phase, count(*) AS replies, any_value(text) AS example FROM visits"
        " WHERE role <> '' AND NOT ok GROUP BY ALL ORDER BY replies DESC",
    ),
)
"""Queries to start from: what for, and the SQL."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        """One mapping a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@contextmanager
def opened(folder: Path) -> Generator[duckdb.DuckDBPyConnection]:
    """A connection with the tables of a run's folder, or of its `evaluations`. Raises BadInput where nothing is."""
    files = sorted(str(path) for path in (folder / "trajectories").glob("*.parquet"))
    if not files:
        finding = Finding("run-folder", str(folder), "no trajectories/*.parquet", "the folder of a run")
        raise BadInput([finding])
    with duckdb.connect() as connection:
        connection.read_parquet(files).create_view("visits")
        metrics = folder / "metrics.jsonl"
        if metrics.exists():  # a last line cut short by a kill is passed over
            connection.read_json(
                str(metrics), format="newline_delimited", ignore_errors=True, sample_size=-1
            ).create_view("metrics")
        yield connection


def query(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> Rows:
    """Run one query. Raises BadInput with what DuckDB says."""
    try:
        if len(connection.extract_statements(sql)) != 1:
            raise BadInput([Finding("sql", "SQL", f"`{sql}`", "one query over the tables visits and metrics")])
        answer = connection.execute(sql, list(parameters))
        columns = tuple(column[0] for column in answer.description)
        return Rows(columns, answer.fetchall())
    except duckdb.Error as error:
        said, _, detail = str(error).partition("\n")
        expected = "DuckDB SQL over the tables visits and metrics; `unitymas traces RUN` shows their columns"
        raise BadInput([Finding("sql", "SQL", said, expected, detail.strip())]) from None


def visits_of(connection: duckdb.DuckDBPyConnection, trajectory: str) -> list[dict[str, Any]]:
    """All visits of one trajectory, in order. Raises BadInput naming ones that are like it."""
    rows = query(connection, "FROM visits WHERE trajectory = ? ORDER BY position", [trajectory])
    if rows.rows:
        return rows.records()
    near = query(
        connection,
        "SELECT DISTINCT trajectory FROM visits ORDER BY levenshtein(trajectory, ?), trajectory LIMIT 3",
        [trajectory],
    )
    hint = "such as " + ", ".join(row[0] for row in near.rows)
    raise BadInput([Finding("trajectory", "--trajectory", f"`{trajectory}`", "the id of a trajectory", hint)])
