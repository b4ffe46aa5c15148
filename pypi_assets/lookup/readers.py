"""Readers of a dataset: they answer from the newest version, and move on to newer ones while they are asked."""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from typing import Any, Protocol, Self, TypeVar, cast

import plyvel
from packaging.utils import canonicalize_name

from pypi_assets.leveldbs.datasets.depgraph import records as depgraph
from pypi_assets.leveldbs.datasets.modules import records as modules
from pypi_assets.leveldbs.format.errors import LeveldbError
from pypi_assets.leveldbs.format.keys import key
from pypi_assets.leveldbs.format.open_leveldb import plyvel_errors_as_damage
from pypi_assets.leveldbs.format.records import records_of, scan
from pypi_assets.lookup.answers import (
    Answer,
    Dependent,
    Distribution,
    ModuleResult,
    Result,
    Stream,
)
from pypi_assets.storage.store import StorageError

_REMEMBERED_ANSWERS = 256  # of modules that follow each other most have the same one
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class OpenVersion:
    """A version in a private copy, which goes when nobody holds this any more: the last answer that is made of it.

    `checked` tells whether the files were compared with their hashes; `process` is the id of the one that opened it.
    """

    db: plyvel.DB
    name: str
    version: int
    serial: int
    checked: bool
    process: int

    def close_with(self, stack: ExitStack) -> None:
        """Closes `stack` in the end."""
        weakref.finalize(self, _close, stack, self.process)


def _close(stack: ExitStack, process: int) -> None:
    if os.getpid() == process:
        stack.close()
    else:  # a fork has none of LevelDB's threads, and would wait for them
        _LEFT_TO_PARENT.append(stack)


_LEFT_TO_PARENT: list[ExitStack] = []


class Versions(Protocol):
    """The published versions of a dataset. `skipped` tells of each that was tried and not opened why."""

    dataset: str
    skipped: dict[int, str]

    def open_newest(self, *, check_hashes: bool, beyond: int = 0) -> OpenVersion | None:
        """The newest good version above `beyond`; raises NoVersionError where there is none above 0."""
        ...


class Reader:
    """Answers from the newest version of a dataset, for any number of threads; a context manager.

    `refresh` moves on to a newer version. With `refresh_every_s`, the first question so many seconds after the last
    look has the next one made in the background; `refresh_problem` tells what was in its way. Answers that are under
    way are made to the end from the version that they began with. A process that was forked has to open its own.

    Raises LeveldbDamagedError where what is read is damaged and no other version is good.
    """

    def __init__(self, versions: Versions, *, check_hashes: bool, refresh_every_s: float | None = None) -> None:
        self._versions, self._check_hashes, self._refresh_every_s = versions, check_hashes, refresh_every_s
        self._opening, self._swapping = threading.Lock(), threading.Lock()
        self._opened = versions.open_newest(check_hashes=check_hashes)
        self._next_look = time.monotonic() + (refresh_every_s or 0)
        self.refresh_problem: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> int:
        """The version that is read now."""
        return self._current().version

    @property
    def serial(self) -> int:
        """The serial of the version that is read now."""
        return self._current().serial

    @property
    def skipped(self) -> tuple[str, ...]:
        """Why versions that are newer than this one, or were when they were tried, are not read."""
        skipped = sorted(self._versions.skipped.items(), reverse=True)
        return tuple(f"version {version}: {why}" for version, why in skipped if version > self.version)

    def close(self) -> None:
        """Ends the reading; the private copy goes with the last answer that is under way."""
        with self._swapping:
            self._opened = None

    def refresh(self) -> bool:
        """Moves on to the newest good version, and returns whether that is another one."""
        with self._opening:
            return self._move(beyond=self._current().version, check_hashes=self._check_hashes)

    def _move(self, *, beyond: int, check_hashes: bool) -> bool:
        newest = self._versions.open_newest(check_hashes=check_hashes, beyond=beyond)
        with self._swapping:
            if newest is None or self._opened is None:  # closed meanwhile
                return False
            self._opened = newest
            return True

    def _current(self) -> OpenVersion:
        opened = self._opened
        if opened is None:
            raise LeveldbError(f"this reader of {self._versions.dataset} is closed: open another one")
        if opened.process != os.getpid():
            raise LeveldbError(
                f"this reader of {self._versions.dataset} was opened before the process was forked: open one in each"
                " process, and start processes by spawn or forkserver"
            )
        if self._refresh_every_s is not None and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + self._refresh_every_s
            threading.Thread(target=self._look, name=f"newer {self._versions.dataset}", daemon=True).start()
        return opened

    def _look(self) -> None:
        if not self._opening.acquire(blocking=False):  # another look takes its time
            return
        try:
            opened = self._opened
            if opened is not None:
                self._move(beyond=opened.version, check_hashes=self._check_hashes)
            self.refresh_problem = None
        except (LeveldbError, StorageError, OSError) as error:
            self.refresh_problem = str(error)
        finally:
            self._opening.release()

    def _found(self, ask: Callable[[plyvel.DB], Found]) -> tuple[OpenVersion, Found]:
        opened = self._current()
        try:
            return opened, ask(opened.db)
        except plyvel.Error:
            if opened.checked:
                with plyvel_errors_as_damage(opened.name):
                    raise
        with self._opening:
            if self._opened is opened:  # its files were not compared with their hashes: find out who is damaged
                self._move(beyond=0, check_hashes=True)
        opened = self._current()
        with plyvel_errors_as_damage(opened.name):
            return opened, ask(opened.db)

    def _stream(self, kind: type[Result], ask: Callable[[plyvel.DB], Iterator[Result]]) -> Stream[Result]:
        opened = self._current()

        def results() -> Iterator[Result]:
            with plyvel_errors_as_damage(opened.name):
                yield from ask(opened.db)

        return Stream(opened.version, opened.serial, results(), kind)


class ModulesReader(Reader):
    """Answers from `modules`."""

    def module(self, name: str) -> Answer[ModuleResult]:
        """The projects that provide the module, by normalized name."""
        start = modules.module_prefix(name)

        def found(db: plyvel.DB) -> list[ModuleResult]:
            groups = [modules.answer_key(record_key, group) for record_key, group in records_of(db, start)]
            return [_module_result(name, modules.read_answer(db, one)) for one in groups]

        opened, results = self._found(found)
        return Answer(opened.version, opened.serial, tuple(results), ModuleResult)

    def modules(self, prefix: str = "") -> Stream[ModuleResult]:
        """All modules whose name begins with `prefix`, by name, and of each the projects that provide it."""

        def results(db: plyvel.DB) -> Iterator[ModuleResult]:
            read_answer = lru_cache(_REMEMBERED_ANSWERS)(partial(modules.read_answer, db))
            for record_key, group in scan(db, key("m", prefix)):
                value = read_answer(modules.answer_key(record_key, group))
                yield _module_result(record_key.decode().split("\0")[1], value)

        return self._stream(ModuleResult, results)


class DepgraphReader(Reader):
    """Answers from `depgraph`. Names are compared normalized, and versions canonically."""

    def project(self, name: str, version: str | None = None) -> Answer[Distribution]:
        """The distributions of a project, or of one version of it, by version (PEP 440) and filename."""
        project = canonicalize_name(name)

        def found(db: plyvel.DB) -> list[dict[str, Any]]:
            if version is None:
                return depgraph.decode_project(project, depgraph.project_records(db, project))
            return depgraph.find_version(db, project, version)

        opened, results = self._found(found)
        return Answer(opened.version, opened.serial, tuple(cast("list[Distribution]", results)), Distribution)

    def projects(self, prefix: str = "") -> Stream[Distribution]:
        """The distributions of all projects whose name begins with `prefix`, by project, version and filename."""

        def results(db: plyvel.DB) -> Iterator[Distribution]:
            records = scan(db, key("d", canonicalize_name(prefix)))
            for project, of_project in groupby(records, key=lambda record: depgraph.project_of(record[0])):
                yield from cast("list[Distribution]", depgraph.decode_project(project.decode(), of_project))

        return self._stream(Distribution, results)

    def dependents(self, name: str) -> Answer[Dependent]:
        """The projects that require a project, by normalized name."""
        required = canonicalize_name(name)
        start = depgraph.dependents_prefix(required)
        opened, found = self._found(lambda db: records_of(db, start))
        results = tuple(_dependent(required, record_key[len(start) :].decode(), value) for record_key, value in found)
        return Answer(opened.version, opened.serial, results, Dependent)

    def all_dependents(self, prefix: str = "") -> Stream[Dependent]:
        """All that require a project whose name begins with `prefix`, by its name and by theirs."""

        def results(db: plyvel.DB) -> Iterator[Dependent]:
            for record_key, value in scan(db, key("r", canonicalize_name(prefix))):
                _, required, project = record_key.decode().split("\0")
                yield _dependent(required, project, value)

        return self._stream(Dependent, results)


def _module_result(module: str, value: bytes) -> ModuleResult:
    project, versions = modules.decode_answer(value)
    return ModuleResult(module=module, project=project, versions=versions)


def _dependent(required: str, project: str, value: bytes) -> Dependent:
    always, marker, extra = depgraph.decode_dependent(value)
    return Dependent(required=required, normalized=project, always=always, marker=marker, extra=extra)
