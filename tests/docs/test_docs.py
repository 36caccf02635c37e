"""The commands of README and docs run, page by page, in a copy of the repository; links lead somewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "examples").glob("*/README.md"),
    ]
)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
MAKE = re.compile(r"^make \w+$")
"""Targets that the tests themselves run under, or that take minutes: their recipes are tested, not the targets."""


def commands(page: Path) -> list[str]:
    blocks = BLOCK.findall(page.read_text("utf-8"))
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not MAKE.match(line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", [*(ROOT / "docs").glob("[0-8]*.md")], ids=lambda page: page.name)
def test_a_page_is_short(page: Path) -> None:
    assert len(page.read_text("utf-8").split()) <= 800


def test_every_make_target_is_helped() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    assert targets is not None
    for target in targets[1].split():
        assert re.search(rf"^{target}:.*## ", makefile, re.M), target


@pytest.mark.integration
@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: page.parent.name + page.name
)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands(page):
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "COLUMNS": "120"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
