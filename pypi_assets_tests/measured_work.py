"""Measure the cost of work for a catalog: statements, steps of SQLite's virtual machine, and added rows.

The counts do not depend on the load of the machine. A step is one virtual machine instruction; a scan takes several per
row.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event, func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import metadata


@dataclass(frozen=True, slots=True)
class Work:
    """The measured cost. `added` has the number of added rows by table, `by_statement` the steps of each statement."""

    statements: int
    steps: int
    added: Mapping[str, int]
    by_statement: Mapping[str, int]


@contextmanager
def statements(catalog: Catalog) -> Iterator[dict[str, object]]:
    """Collect the statements executed in the block, each with the parameters of its first execution."""
    found: dict[str, object] = {}

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if re.match(r"\s*(SELECT|UPDATE|DELETE|INSERT|WITH)", statement):
            found.setdefault(statement, parameters[0] if isinstance(parameters, list) else parameters)

    event.listen(catalog.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(catalog.engine, "before_cursor_execute", note)


def measure(catalog: Catalog, do: Callable[[], object]) -> Work:
    """Measure the work of `do` on a catalog in SQLite."""
    executed = 0
    current = ""
    steps: Counter[str] = Counter()

    def count_statement(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
        nonlocal executed, current
        executed += 1
        current = statement

    def count_step() -> int:
        steps[current] += 1
        return 0

    def begin(connection: Any, *_: object) -> None:
        connection.set_progress_handler(count_step, 1)

    def end(connection: Any, *_: object) -> None:
        if connection is not None:
            connection.set_progress_handler(None, 0)

    before = _rows(catalog)
    listeners = (("before_cursor_execute", count_statement), ("checkout", begin), ("checkin", end))
    for name, listener in listeners:
        event.listen(catalog.engine, name, listener)
    try:
        do()
    finally:
        for name, listener in listeners:
            event.remove(catalog.engine, name, listener)
    after = _rows(catalog)
    added = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    return Work(executed, steps.total(), added, steps)


def _rows(catalog: Catalog) -> dict[str, int]:
    with catalog.read() as connection:
        return {
            name: connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
        }
