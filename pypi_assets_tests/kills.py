"""Kill work at a chosen step: another process by SIGKILL, or work in this process by an error that nothing catches.

The steps are before and after each call of certain functions, by default the puts to the storage. Between two steps,
all kills have the same effect.

    assert run_and_kill(build, catalog, storage, 3) == "before modules/00001/CURRENT"
    with killed_at(4, (Storage, "put"), (Storage, "delete")) as reached:
        clean(storage)
    assert reached
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.tables import leases
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.forked import processes

Work = Callable[[Catalog, Storage], object]
Counted = tuple[object, str]
"""An object or module, and the name of its function."""
PUTS: Sequence[Counted] = ((Storage, "put"),)
BOTH = ("before", "after")
DONE = "done"


class KilledError(BaseException):
    """Raised to end work in this process. It is not an Exception, so that no handler catches it."""


def run_and_kill(work: Work, catalog: Catalog, storage: Storage, step: int, *counted: Counted) -> str:
    """Run the work in a separate process, and kill it at the step. Return `before PATH` or `after PATH`, or DONE.

    `work` must be a module-level function, because the process imports it. Each call of a counted function has two
    steps.
    """
    reader, writer = processes.Pipe(duplex=False)
    url = catalog.engine.url.render_as_string(hide_password=False)
    named = [(one.__name__ if isinstance(one, ModuleType) else one, name) for one, name in counted or PUTS]
    process = processes.Process(target=_run, args=(work, url, storage.url, step, named, writer))
    process.start()
    writer.close()
    try:
        reached = reader.recv()
    finally:
        process.kill()
        process.join()
        reader.close()
    assert isinstance(reached, str)
    return reached


def _run(work: Work, url: str, storage_url: str, step: int, counted: Sequence[Counted], reached: Connection) -> None:
    def wait(moment: str, argument: object) -> None:
        reached.send(f"{moment} {argument}")
        signal.pause()  # waits until the process is killed

    counted = [(import_module(one) if isinstance(one, str) else one, name) for one, name in counted]
    with _counted(step, counted, BOTH, wait):
        work(open_catalog(url), open_storage(storage_url))
    reached.send(DONE)


@contextmanager
def killed_at(step: int, *counted: Counted, moments: Sequence[str] = BOTH) -> Iterator[list[str]]:
    """End the block with a KilledError at the step, and continue after the block. Yield the list of reached steps."""
    reached: list[str] = []

    def end(moment: str, argument: object) -> None:
        reached.append(f"{moment} {argument}")
        raise KilledError

    with suppress(KilledError), _counted(step, counted or PUTS, moments, end):
        yield reached


@contextmanager
def _counted(
    step: int, counted: Sequence[Counted], moments: Sequence[str], at_step: Callable[[str, object], None]
) -> Iterator[None]:
    """Call `at_step` at step number `step`, with its moment and the first string among the call's arguments."""
    steps = count(1)

    def stepped(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def step_by_step(*arguments: Any, **named: Any) -> Any:
            text = next((one for one in arguments if isinstance(one, str)), call.__name__)
            if "before" in moments and next(steps) == step:
                at_step("before", text)
            result = call(*arguments, **named)
            if "after" in moments and next(steps) == step:
                at_step("after", text)
            return result

        return step_by_step

    with pytest.MonkeyPatch.context() as patched:
        for owner, name in counted:
            patched.setattr(owner, name, stepped(getattr(owner, name)))
        yield


def forget_leases(catalog: Catalog) -> None:
    """Delete the leases of killed processes, so that tests do not wait until they expire."""
    with catalog.write() as connection:
        connection.execute(leases.delete())
