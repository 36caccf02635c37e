from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from unitymas.api.errors import Author, Deadline, Infrastructure
from unitymas.rewards.worker import ProcessPool

Result = TypeVar("Result")
CODE = """
import os, sys, time
from pathlib import Path

class Scaled:
    def __init__(self, scale):
        self.scale = scale
    def __call__(self, value):
        return self.scale * value

class Own: ...

def double(value): return 2 * value
def process(): return os.getpid()
def threads(): return os.environ["OMP_NUM_THREADS"]
def readings(count): yield from range(count)
def hang(): time.sleep(600)
def die(): os._exit(3)
def leave(): sys.exit(3)
def interrupt(): raise KeyboardInterrupt("stop")
def endless():
    value = []
    for _ in range(100000): value = [value]
    return value
def own(): return Own()
def function(): return lambda: 0
def talk(): print("heard"); return sys.stdin.read()
def misread(text): raise ValueError("no number in it")
def outer(text): return inner(text)
def inner(text): return text["missing"]
def die_once(marker):
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(3)
    return "alive"
"""


def in_pool(folder: Path, body: Callable[[ProcessPool], Awaitable[Result]], *, processes: int = 1) -> Result:
    (folder / "users.py").write_text(CODE)

    async def run() -> Result:
        pool = ProcessPool(python_paths=[str(folder)], processes=processes)
        try:
            return await body(pool)
        finally:
            await pool.close()

    return asyncio.run(run())


async def call(pool: ProcessPool, name: str, *, timeout_s: float = 30.0, **arguments: object) -> object:
    return await pool.call(f"users:{name}", arguments, where="metric mine", timeout_s=timeout_s)


def test_a_function_gets_its_arguments_by_keyword_or_by_position(tmp_path: Path) -> None:
    async def body(pool: ProcessPool) -> list[object]:
        return [
            await call(pool, "double", value=2),
            await pool.call("users:double", [3], where="metric mine", timeout_s=30.0),
        ]

    assert in_pool(tmp_path, body) == [4, 6]


def test_an_iterator_comes_back_as_a_list(tmp_path: Path) -> None:
    assert in_pool(tmp_path, lambda pool: call(pool, "readings", count=3)) == [0, 1, 2]


def test_a_class_is_built_once_with_its_setup_then_called(tmp_path: Path) -> None:
    async def body(pool: ProcessPool) -> list[object]:
        return [
            await pool.call("users:Scaled", {"value": 2}, where="m", timeout_s=30.0, setup={"scale": scale})
            for scale in (3, 5, 3)
        ]

    assert in_pool(tmp_path, body) == [6, 10, 6]


def test_calls_share_one_process_with_one_thread(tmp_path: Path) -> None:
    async def body(pool: ProcessPool) -> tuple[set[object], object]:
        return set(await asyncio.gather(*[call(pool, "process") for _ in range(4)])), await call(pool, "threads")

    processes, threads = in_pool(tmp_path, body)
    assert len(processes) == 1
    assert threads == "1"


def test_what_users_code_prints_or_reads_does_not_disturb_the_answers(tmp_path: Path) -> None:
    assert in_pool(tmp_path, lambda pool: call(pool, "talk")) == ""


def test_an_exception_is_the_authors_and_tells_file_line_and_text(tmp_path: Path) -> None:
    with pytest.raises(Author) as caught:
        in_pool(tmp_path, lambda pool: call(pool, "outer", text={}))
    line = CODE.splitlines().index('def inner(text): return text["missing"]') + 1
    assert caught.value.where == "metric mine"
    assert caught.value.message.startswith("KeyError: 'missing'")
    assert f"{tmp_path}/users.py:{line} in inner" in caught.value.message
    assert "userprocess" not in caught.value.message
    assert caught.value.__cause__ is None


def test_a_value_error_can_be_told_from_other_exceptions(tmp_path: Path) -> None:
    with pytest.raises(Author) as caught:
        in_pool(tmp_path, lambda pool: call(pool, "misread", text=""))
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("name", ["leave", "own", "function"])
def test_leaving_and_results_that_are_no_data_are_the_authors(tmp_path: Path, name: str) -> None:
    with pytest.raises(Author):
        in_pool(tmp_path, lambda pool: call(pool, name))


def test_a_module_that_is_not_found_tells_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(Author, match=f"no module `absent` in {tmp_path}"):
        in_pool(tmp_path, lambda pool: pool.call("absent:f", {}, where="m", timeout_s=30.0))
    with pytest.raises(Author, match=f"no `absent` in {tmp_path}/users.py"):
        in_pool(tmp_path, lambda pool: call(pool, "absent"))


def test_arguments_that_cannot_be_sent_are_the_authors(tmp_path: Path) -> None:
    with pytest.raises(Author, match="cannot be sent"):
        in_pool(tmp_path, lambda pool: call(pool, "double", value=lambda: 0))


def test_a_hung_function_passes_its_limit_and_spares_the_jobs_that_wait(tmp_path: Path) -> None:
    async def body(pool: ProcessPool) -> list[object]:
        jobs = [call(pool, "hang", timeout_s=1.0), call(pool, "double", value=1), call(pool, "double", value=2)]
        return list(await asyncio.gather(*jobs, return_exceptions=True))

    hung, *others = in_pool(tmp_path, body)
    assert isinstance(hung, Deadline)
    assert others == [2, 4]


def test_a_cancelled_call_leaves_no_answer_for_the_next_one(tmp_path: Path) -> None:
    async def body(pool: ProcessPool) -> object:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await call(pool, "hang")
        return await call(pool, "double", value=21)

    assert in_pool(tmp_path, body) == 42


def test_a_process_that_dies_once_is_replaced_unnoticed(tmp_path: Path) -> None:
    assert in_pool(tmp_path, lambda pool: call(pool, "die_once", marker=str(tmp_path / "marker"))) == "alive"


def test_a_process_that_dies_again_is_infrastructure(tmp_path: Path) -> None:
    with pytest.raises(Infrastructure):
        in_pool(tmp_path, lambda pool: call(pool, "die"))


@pytest.mark.parametrize(
    ("name", "told"), [("interrupt", "KeyboardInterrupt: stop"), ("endless", "cannot be sent back.* recursion")]
)
def test_whatever_users_code_raises_is_the_authors_and_keeps_its_process(tmp_path: Path, name: str, told: str) -> None:
    async def body(pool: ProcessPool) -> tuple[object, object]:
        before = await call(pool, "process")
        with pytest.raises(Author, match=told):
            await call(pool, name)
        return before, await call(pool, "process")

    before, after = in_pool(tmp_path, body)
    assert before == after
