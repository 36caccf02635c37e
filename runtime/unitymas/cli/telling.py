"""Records on the screen: rows in three formats, an overview of a run, one trajectory as a story."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
from rich import box
from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from unitymas.cli.console import OUT, say
from unitymas.cli.options import Output
from unitymas.cli.tables import QUERIES, Rows, query

WIDE = 1000
"""Columns of a table that goes to a file or pipe: lines are not folded to a screen's width."""
_OVERVIEW = """
SELECT phase, count(DISTINCT step) AS steps, count(DISTINCT trajectory) AS trajectories, count(*) AS visits,
       avg(score) FILTER (position = 0) AS score,
       count(*) FILTER (position = 0 AND trajectory_failure IS NOT NULL) AS failed,
       min(trajectory) AS example
FROM visits GROUP BY phase ORDER BY phase = 'train' DESC, phase
"""


def show(rows: Rows, *, output: Output) -> None:
    """Print rows."""
    match output:
        case "json":
            say(json.dumps(rows.records(), indent=2, ensure_ascii=False, default=str))
        case "csv":
            lines = csv.writer(sys.stdout, lineterminator="\n")
            lines.writerow(rows.columns)
            lines.writerows(rows.rows)
        case "table":
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
            for column in rows.columns:
                table.add_column(escape(column), overflow="fold")
            for row in rows.rows:
                table.add_row(*(Text(_cell(value)) for value in row))
            (OUT if OUT.is_terminal else Console(width=WIDE)).print(table)


def overview(connection: duckdb.DuckDBPyConnection, folder: str) -> None:
    """What there is, the columns of the tables, and queries to start from."""
    show(query(connection, _OVERVIEW), output="table")
    columns = query(
        connection,
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
        " ORDER BY table_name DESC, column_index",
    )
    for table in dict.fromkeys(row[0] for row in columns.rows):
        names = _families([name for of, name in columns.rows if of == table])
        OUT.print(Group(Text(table, "bold"), Padding(Text(", ".join(names)), (0, 0, 1, 2), expand=False)))
    say(f'# every column and its type\nunitymas traces {folder} "DESCRIBE metrics"')
    for purpose, sql in QUERIES:
        say(f'# {purpose}\nunitymas traces {folder} "{sql}"')


def _families(names: Sequence[str]) -> list[str]:
    """The names; those of a family such as `reward/<role>` as one."""
    return list(dict.fromkeys(f'"{name.partition("/")[0]}/..."' if "/" in name else name for name in names))


def tell(visits: Sequence[Mapping[str, Any]], *, output: Output) -> None:
    """Tell one trajectory: every visit with its prompt, reply and parts of the reward."""
    if output != "table":
        columns = tuple(visits[0])
        show(Rows(columns, [tuple(visit.values()) for visit in visits]), output=output)
        return
    first = visits[0]
    score = "none" if first["score"] is None else f"{first['score']:.3f}"
    OUT.print(Text(f"{first['trajectory']}  score {score}", "bold"))
    for visit in visits:
        OUT.print(Rule(Text(_title(visit)), align="left", characters="─"))
        for name, text in _parts(visit):
            OUT.print(Group(Text(name, "dim"), Padding(Text(text), (0, 0, 0, 2), expand=False)))
    OUT.print(Rule(characters="─"))
    say(f"result: {first['result']}")
    say(f"metrics: {first['metrics']}")
    if first["trajectory_failure"]:
        say(f"{first['trajectory_failure']} failure: {first['trajectory_error']}", style="red")


def _title(visit: Mapping[str, Any]) -> str:
    by = f"{visit['role']} on {visit['model']}" if visit["role"] else visit["tool"] or "set"
    parts = " ".join(f"{name} {value:+.3f}" for name, value in visit["rewards"].items())
    reward = f"  reward {visit['reward']:.3f}" + (f" = {parts}" if len(visit["rewards"]) > 1 else "")
    return f"{visit['visit']}  {by}{reward if visit['rewards'] else ''}"


def _parts(visit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a visit has to tell: name and text of each part."""
    tokens = sum(call["output_tokens"] for call in visit["calls"])
    texts = [
        ("prompt", visit["prompt"]),
        (f"reply, {tokens} tokens", visit["text"]),
        (
            "output" if visit["ok"] else "output, did not parse",
            visit["output"] if visit["output"] != visit["text"] else "",
        ),
        (f"{visit['failure'] or ''} failure", visit["error"]),
    ]
    return [(name, text) for name, text in texts if text]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)
