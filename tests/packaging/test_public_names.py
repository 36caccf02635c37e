"""Packages export few names, each documented; modules stay small; locks hold no addresses."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "runtime" / "unitymas"
WITHOUT_TORCH = [
    path.parent
    for path in sorted(PACKAGE.rglob("__init__.py"))
    if "__all__" in path.read_text("utf-8") and "verl" not in path.parts
]
MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("folder", WITHOUT_TORCH, ids=lambda folder: folder.name)
def test_a_package_exports_at_most_twenty_documented_names(folder: Path) -> None:
    package = import_module(".".join(("unitymas", *folder.relative_to(PACKAGE).parts)))
    assert len(package.__all__) <= 20
    assert list(package.__all__) == sorted(package.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    for name in package.__all__:
        exported = getattr(package, name)
        assert not callable(exported) or exported.__doc__ or not isinstance(exported, type), name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(PACKAGE)))
def test_a_module_is_small_and_says_what_it_is(module: Path) -> None:
    text = module.read_text("utf-8")
    assert len(text.splitlines()) <= 300
    assert not text.strip() or ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(PACKAGE)))
def test_functions_are_short_and_public_ones_documented(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node, clean=False) or ""
            lines = (node.end_lineno or 0) - node.lineno + 1 - len(doc.splitlines())
            assert lines <= 45, f"{node.name}: {lines} lines"


@pytest.mark.parametrize("lock", sorted((ROOT / "locks").glob("*.txt")), ids=lambda lock: lock.name)
def test_a_lock_holds_names_versions_and_hashes_only(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert not re.search(r"https?://|^--?(index|find|extra)", text, re.M)
    assert text.count("--hash=sha256:") >= text.count("==")
