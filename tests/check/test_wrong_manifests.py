"""Every kind of wrong manifest in tests/cases/wrong.yaml is told exactly, and the docs show the same table."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel, Field
from ruamel.yaml import YAML

from unitymas.api.errors import BadInput, Finding
from unitymas.api.load import read
from unitymas.check.run import check

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
DOC = ROOT / "docs" / "92-wrong-manifests.md"
HEAD = """\
# Wrong manifests

What `unitymas validate` says of {count} kinds of mistake. Each row is a test: one edit of a right run
(`tests/cases/right`), and all that is then found. Generated from `tests/cases/wrong.yaml`.
"""


class Told(BaseModel, extra="forbid"):
    """One expected finding."""

    check: str
    file: str
    line: int
    kind: str
    path: str
    found: str
    expected: str
    hint: str = ""


class Wrong(BaseModel, extra="forbid"):
    """One kind of wrong manifest: an edit of a right one, and all that is found."""

    wrong: str
    file: str
    old: str
    new: str
    needs: list[str] = Field(default_factory=lambda: ["spec"])
    findings: list[Told] = Field(min_length=1)


def table() -> dict[str, list[Wrong]]:
    read_ = YAML(typ="safe", pure=True).load((CASES / "wrong.yaml").read_text(encoding="utf-8"))
    return {section: [Wrong.model_validate(entry) for entry in entries] for section, entries in read_.items()}


ALL = [entry for entries in table().values() for entry in entries]


@dataclass(frozen=True)
class Right:
    """A copy of the right manifests, in the working directory."""

    def edit(self, entry: Wrong) -> None:
        """Make the one mistake."""
        file = Path(entry.file)
        text = file.read_text(encoding="utf-8")
        assert entry.old in text
        file.write_text(text.replace(entry.old, entry.new, 1), encoding="utf-8")

    def findings(self, needs: list[str]) -> list[Finding]:
        """What loading and checking find."""
        try:
            return check(read(["."]), needs=needs)
        except BadInput as error:
            return list(error.findings)


@pytest.fixture
def right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Right:
    shutil.copytree(CASES / "right", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Right()


def test_nothing_is_found_in_the_right_manifests(right: Right):
    assert right.findings(["spec", "code", "data", "run"]) == []


@pytest.mark.parametrize("entry", ALL, ids=[entry.wrong for entry in ALL])
def test_each_mistake_is_told_with_its_place_and_nothing_else(right: Right, entry: Wrong):
    right.edit(entry)
    found = right.findings(entry.needs)
    assert [told(finding) for finding in found] == entry.findings
    for finding in found:
        resource = f"{finding.kind}/rag: " if finding.kind else ""
        place = f"{finding.file}:{finding.line}: {resource}{finding.path}"
        assert str(finding).startswith(f"{place}: found {finding.found}; expected {finding.expected}")


def told(finding: Finding) -> Told:
    fields = {name: getattr(finding, name) for name in Told.model_fields}
    return Told.model_validate({**fields, "found": finding.found.replace(f"{Path.cwd()}/", "")})


def shown(text: str) -> str:
    """The text in a cell of a Markdown table: what is not code is no HTML."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def document() -> str:
    """The table as a page of the docs."""
    lines = [HEAD.format(count=len(ALL))]
    for section, entries in table().items():
        lines += [f"## {section}", "", "| wrong | check | message |", "| --- | --- | --- |"]
        for entry in entries:
            for number, each in enumerate(entry.findings):
                said = shown(f"`{each.path}`: found {each.found}; expected {each.expected}")
                hint = f"<br>hint: {shown(each.hint)}" if each.hint else ""
                lines.append(f"| {'' if number else entry.wrong} | {each.check} | {said}{hint} |")
        lines.append("")
    return "\n".join(lines)


def test_the_docs_show_this_table():
    assert DOC.read_text(encoding="utf-8") == document(), f"run python {Path(__file__).relative_to(ROOT)}"


if __name__ == "__main__":
    DOC.write_text(document(), encoding="utf-8")
