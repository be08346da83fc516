"""Which functions a request reaches where the operator allowed a module: those it defines, by their own names, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from dragoman.client.worker.lookup import Lookup, UnknownJob
from tests.client.legacy import tasks

TASKS = "tests.client.legacy.tasks"
LOOKUP = Lookup({}, (TASKS,))


def result(path: str, name: str, *args: Any, lookup: Lookup = LOOKUP, **more: Any) -> Any:
    """Find and run what a request names, as a worker does."""
    body = msgspec.json.encode(["run", {"path": path, "callable": name, "args": args, **more}])
    function, found_args, kwargs, is_async = lookup.find(body)
    made = function(*found_args, **kwargs)
    return asyncio.run(made) if is_async else made


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("send", "sent to a"),
        ("send_later", "sent to a later"),
        ("another_apps_job", "sent to a by another App's job"),
        ("decorated", "sent to a through a decorator"),
        ("cached", "sent to a once"),
    ],
)
def test_a_function_that_an_allowed_module_defines_is_run(name: str, said: str) -> None:
    assert result(TASKS, name, "a") == said


@pytest.mark.parametrize(
    ("class_name", "method", "args", "class_args", "value"),
    [
        ("Till", "put", [2], [40], 42),
        ("Till", "put_later", [2], [40], 42),
        ("Till", "__call__", [2], [44], 42),
        ("Till", "of_none", [42], [], 42),
        ("Till", "of_class", [42], [], "Till 42"),
        ("Till", "inherited", [], [], "from the base"),
        ("Parcel", "postage", [3], [14], 42),
        ("OwnConstructor", "put", [], [], "made"),
        ("Bag", "total", [], [{"a": 40, "b": 2}], 42),
    ],
)
def test_a_method_of_an_allowed_modules_class_is_run(
    class_name: str, method: str, args: list[Any], class_args: list[Any], value: Any
) -> None:
    assert result(f"{TASKS}:{class_name}", method, *args, class_args=class_args) == value


def test_a_class_may_be_called_itself() -> None:
    assert result(TASKS, "Parcel", 7).grams == 7


def test_what_a_package_hands_on_from_a_module_of_its_own_is_run() -> None:
    lookup = Lookup({}, ("tests.client.legacy",))
    assert result(TASKS, "called", lookup=lookup) == "reached"
    assert result(TASKS, "Made", lookup=lookup).args == ()


ATTACKS = [
    # dotted names, the fault that was found
    (TASKS, "os.system"),
    (TASKS, "subprocess.Popen"),
    (TASKS, "subprocess.call"),
    (TASKS, "Till.put"),
    (TASKS, "send.__globals__"),
    (TASKS, "elsewhere.called"),
    (f"{TASKS}:subprocess.Popen", "communicate"),
    (f"{TASKS}:Till.Inner", "put"),
    (f"{TASKS}:os", "system"),
    (f"{TASKS}:subprocess", "Popen"),
    (f"{TASKS}:elsewhere", "called"),
    (f"{TASKS}:", "send"),
    (f"{TASKS}::Till", "put"),
    (f"{TASKS}:Till:put", "put"),
    # imported, kept or renamed
    (TASKS, "system"),
    (TASKS, "run_command"),
    (TASKS, "evaluate"),
    (TASKS, "called"),
    (TASKS, "os"),
    (TASKS, "in_shell"),
    (TASKS, "shout"),
    (TASKS, "proxy"),
    (TASKS, "app"),
    (TASKS, "nothing"),
    (TASKS, "sent_again"),
    (TASKS, "disguised"),
    (TASKS, "unwrapped"),
    (TASKS, "Maker"),
    (TASKS, "App"),
    (f"{TASKS}:Maker", "inherited"),
    (f"{TASKS}:App", "call"),
    (f"{TASKS}:Made", "put"),
    (f"{TASKS}:Runner", "put"),
    (TASKS, "Runner"),
    (f"{TASKS}:OwnConstructor", "inherited"),
    (f"{TASKS}:send", "put"),
    (f"{TASKS}:proxy", "put"),
    # names that no module has, but answers to
    (TASKS, "anything"),
    (f"{TASKS}:Anything", "put"),
    (f"{TASKS}:Till", "anything"),
    # private and special names
    (TASKS, "_private"),
    (TASKS, "__getattr__"),
    (TASKS, "__builtins__"),
    (TASKS, "__loader__"),
    (TASKS, "__import__"),
    (f"{TASKS}:Till", "_hidden"),
    (f"{TASKS}:Till", "__init__"),
    (f"{TASKS}:Till", "__class__"),
    (f"{TASKS}:Till", "__getattr__"),
    (f"{TASKS}:Till", "__reduce_ex__"),
    (f"{TASKS}:Parcel", "__call__"),
    # what a class or its objects keep
    (f"{TASKS}:Till", "aliased"),
    (f"{TASKS}:Till", "foreign"),
    (f"{TASKS}:Till", "static_foreign"),
    (f"{TASKS}:Till", "partial"),
    (f"{TASKS}:Till", "assigned"),
    (f"{TASKS}:Till", "computed"),
    (f"{TASKS}:Till", "Inner"),
    (f"{TASKS}:Till", "sum"),
    # no names at all
    (TASKS, ""),
    (TASKS, " send"),
    (TASKS, "send "),
    (TASKS, "send()"),
    # other modules
    ("", "send"),
    ("os", "system"),
    ("builtins", "eval"),
    ("tests.client.legacy", "send"),
    ("tests.client.legacy.elsewhere", "called"),
    (f"{TASKS}extra", "send"),
    (f"{TASKS}.", "send"),
    (f"{TASKS}..tasks", "send"),
    (f".{TASKS}", "send"),
    (f"{TASKS}.__main__", "send"),
    (f"{TASKS}._private", "send"),
    (f"{TASKS}/../elsewhere", "called"),
]


@pytest.mark.parametrize(("path", "name"), ATTACKS, ids=[f"{path}:{name}" for path, name in ATTACKS])
def test_nothing_else_is_reached(path: str, name: str) -> None:
    tasks.looked_up.clear()
    with pytest.raises(UnknownJob):
        result(path, name)
    assert tasks.looked_up == [], "a lookup ran code of the module"


def test_a_modules_own_names_are_no_door_into_a_package_beside_it() -> None:
    lookup = Lookup({}, ("tests.client.legacy",))
    for path in ("tests.client.legacy.__main__", "tests.client.legacy._private", "tests.client.legacy..tasks"):
        with pytest.raises(UnknownJob):
            result(path, "send", lookup=lookup)


def test_without_allowed_modules_nothing_is_imported() -> None:
    for allowed in ((), ("",), (".",)):
        with pytest.raises(UnknownJob):
            result(TASKS, "send", lookup=Lookup({}, allowed))


def test_the_error_names_what_was_found_and_is_bounded() -> None:
    with pytest.raises(UnknownJob, match=r"legacy\.tasks:run_command is not run: it is posix\.system"):
        result(TASKS, "run_command")
    with pytest.raises(UnknownJob, match=r"functools\.wraps"):
        result(TASKS, "disguised")
    with pytest.raises(UnknownJob, match=r"subprocess\.Popen, which makes its objects, is not allowed"):
        result(f"{TASKS}:Runner", "put")
    with pytest.raises(UnknownJob) as long:
        result(TASKS, "\x1b[2J" + "a" * 1_000_000)
    assert len(str(long.value)) < 1000
    assert "\x1b" not in str(long.value)
