"""A catalog with events on given days, so that days have serials."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from packaging.utils import canonicalize_name
from sqlalchemy import insert, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import events, full_crawls, projects
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

FIRST = date(2026, 3, 1)
PROJECTS = ("app", "base", "core", "data")
_REQUIRED = (
    *("base", "base>1", "base==1", "core<3", "core>=2; sys_platform == 'win32'", "data==2; python_version < '3.12'"),
    *("data", "core!=2", "never-uploaded; sys_platform == 'darwin'"),
)


@dataclass
class DatedCatalog:
    """Each change is an event with the next serial."""

    small: SmallCatalog
    serial: int = 0
    serials: dict[date, int] = field(default_factory=dict)
    _live: dict[str, bool] = field(default_factory=dict)

    @property
    def catalog(self) -> Catalog:
        return self.small.catalog

    def add(
        self,
        day: date,
        project: str,
        version: str,
        requires: tuple[str, ...] | None = (),
        requires_python: str | None = None,
    ) -> str:
        """Upload a wheel for all platforms, and return its filename."""
        filename = f"{project.replace('-', '_')}-{version}-py3-none-any.whl"

        def upload() -> None:
            self.small.add(
                self.serial, project, version, filename, requires_dist=requires, requires_python=requires_python
            )

        self._happen(day, project, version, f"add py3 file {filename}", "add file", upload)
        return filename

    def remove(self, day: date, filename: str) -> None:
        self._change(day, filename, f"remove file {filename}", self.small.remove)

    def show_again(self, day: date, filename: str) -> None:
        self._change(day, filename, "clear quarantine", self.small.show_again)

    def yank(self, day: date, filename: str) -> None:
        self._change(day, filename, "yank release", self.small.yank)

    def unyank(self, day: date, filename: str) -> None:
        self._change(day, filename, "unyank release", self.small.unyank)

    def complete(self) -> None:
        self.small.complete(self.serial)

    def draw(self, drawn: random.Random, day: date) -> None:
        """Change a random project of PROJECTS."""
        project, version = drawn.choice(PROJECTS), drawn.choice("123")
        filename = f"{project}-{version}-py3-none-any.whl"
        if filename not in self.small.filenames:
            requires = None if drawn.random() < 0.08 else tuple(drawn.sample(_REQUIRED, drawn.choice([0, 1, 1, 2])))
            self.add(day, project, version, requires, drawn.choice([None, None, None, ">=3.12", "<3.12"]))
            return
        is_live = self._live.setdefault(f"live {filename}", True)
        is_yanked = self._live.setdefault(f"yanked {filename}", False)
        if not is_live:
            self._live[f"live {filename}"] = True
            self.show_again(day, filename)
        elif drawn.random() < 0.5:
            self._live[f"live {filename}"] = False
            self.remove(day, filename)
        else:
            self._live[f"yanked {filename}"] = not is_yanked
            (self.unyank if is_yanked else self.yank)(day, filename)

    def _change(self, day: date, filename: str, action: str, change: Callable[[int, str], None]) -> None:
        project, version, *_ = filename.split("-")
        self._happen(day, project, version, action, "unknown", lambda: change(self.serial, filename))

    def _happen(
        self, day: date, project: str, version: str, action: str, kind: str, change: Callable[[], None]
    ) -> None:
        self.serial += 1
        self.serials[day] = self.serial
        change()
        at = datetime.combine(day, time(0, 0), UTC) + timedelta(seconds=self.serial)
        with self.catalog.write() as connection:
            of_project = select(projects.c.id).where(projects.c.normalized == canonicalize_name(project))
            row = {"serial": self.serial, "project_id": connection.scalar(of_project), "name": project}
            row |= {"version": version, "timestamp": int(at.timestamp()), "action": action, "kind": kind}
            connection.execute(insert(events).values(**row))


OPENED_AT = datetime(2026, 3, 20, tzinfo=UTC).timestamp()
"""When the full crawl began: after all events, as if it had stored the history."""


def dated_catalog(folder: Path, clock: Callable[[], float] | None = None) -> DatedCatalog:
    """Return an empty catalog that answers for each serial."""
    small = small_catalog(folder, **({} if clock is None else {"clock": clock}))
    with small.catalog.write() as connection:
        connection.execute(
            insert(full_crawls).values(serial=0, selection="[]", opened_at=OPENED_AT, completed_at=OPENED_AT)
        )
    return DatedCatalog(small)
