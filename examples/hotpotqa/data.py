"""Makes `data/`: a corpus and three splits of questions, from HotpotQA rows that carry their paragraphs.

    python examples/hotpotqa/data.py hotpot_dev_distractor_v1.json [FOLDER]

Reads HotpotQA's own JSON, or (`.jsonl.gz`) rows `{id, question, answers, supporting_titles, contexts}`, where a context
is `{title, text}`. The same rows give the same files, byte for byte.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
DEV, TEST = 40, 80
"""Questions of these splits; all others are trained on."""
Row = Mapping[str, Any]


def read(source: Path) -> list[Row]:
    """The rows of a file of either layout."""
    if source.name.endswith(".jsonl.gz"):
        with gzip.open(source, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    return [
        {
            "id": row["_id"],
            "question": row["question"],
            "answers": [row["answer"]],
            "supporting_titles": sorted({title for title, _ in row["supporting_facts"]}),
            "contexts": [{"title": title, "text": "".join(sentences)} for title, sentences in row["context"]],
        }
        for row in json.loads(source.read_text("utf-8"))
    ]


def corpus(rows: Iterable[Row]) -> list[Row]:
    """Every paragraph once, by title; its number is its id."""
    texts = {paragraph["title"]: paragraph["text"] for row in rows for paragraph in row["contexts"]}
    return [{"id": str(number), "title": title, "text": texts[title]} for number, title in enumerate(sorted(texts))]


def split(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The questions as the workflow's input has them, split by a digest of their ids."""
    ordered = sorted(rows, key=lambda row: sha256(row["id"].encode()).digest())
    questions: list[Row] = [
        {"id": row["id"], "question": row["question"], "answers": row["answers"], "titles": row["supporting_titles"]}
        for row in ordered
    ]
    return {"test": questions[:TEST], "dev": questions[TEST : TEST + DEV], "train": questions[TEST + DEV :]}


def packed(rows: Sequence[Row]) -> bytes:
    """Gzipped JSON lines, without the time."""
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return gzip.compress(lines.encode("utf-8"), mtime=0)


def main(source: Path, folder: Path = DATA) -> None:
    """Write the files and say how many rows each has."""
    rows = read(source)
    folder.mkdir(exist_ok=True)
    for name, part in {"corpus": corpus(rows), **split(rows)}.items():
        (folder / f"{name}.jsonl.gz").write_bytes(packed(part))
        print(f"{name}: {len(part)} rows")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*(Path(argument) for argument in sys.argv[1:]))
