"""A catalog with scopes and files whose bytes are drawn, and the rules that kept files always meet."""

import hashlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sqlalchemy import insert, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.kept_files import FileToKeep, KeptObject, KeptState, ranks
from pypi_assets.catalog.reads.kept_lists import kept_totals
from pypi_assets.catalog.scopes.stored_scopes import change_scope, require_scope
from pypi_assets.catalog.tables import (
    distributions,
    forgotten_files,
    kept_files,
    kept_in_scopes,
    live_intervals,
    projects,
    releases,
    scope_projects,
    scopes,
    yanked_intervals,
)
from pypi_assets.catalog.work.full_crawls import begin_catalog
from pypi_assets.keeping.keeper import FileKeeper
from pypi_assets.keeping.objects import ReceivedFile, stored_objects, verify_object
from pypi_assets.keeping.unwanted_files import clean_files
from pypi_assets.storage.store import Storage

CLAIM_ENDS_S = 7 * 3600.0


def bytes_of(number: int, size: int) -> bytes:
    """Return the bytes of a file: those of equal numbers are equal."""
    return hashlib.shake_128(str(number).encode()).digest(size)


def sha256_of(number: int, size: int) -> str:
    return hashlib.sha256(bytes_of(number, size)).hexdigest()


@dataclass
class KeptModel:
    """Scopes and files over one catalog and storage. `late_s` is added to the clock of the catalog."""

    opened: Catalog
    storage: Storage
    late_s: float = 0.0
    first_id: int = 1
    files: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def catalog(self) -> Catalog:
        return replace(self.opened, clock=lambda: 1_800_000_000.0 + self.late_s)

    @property
    def keeper(self) -> FileKeeper:
        return FileKeeper(self.catalog, self.storage)

    def begin(self) -> None:
        """Make the catalog follow an index."""
        with self.opened.write() as connection:
            begin_catalog(connection, "https://index.example/simple/", 1, 1, 0.0, exact_from=1, follows_all=False)

    def add_scope(self, name: str, most: int | None, project_ids: Sequence[int]) -> int:
        """Add a scope that keeps files of these projects."""
        common: dict[str, Any] = {"created_at": 0.0, "created_serial": 1, "roots": "{}", "nice": 0, "match_only": False}
        member = {"depth": 0, "is_beyond": False, "first_serial": 1, "entered_serial": 1, "is_late": False}
        with self.opened.write() as connection:
            row = common | {"name": name, "most": most, "keep_files": True}
            scope_id: int = connection.execute(insert(scopes).values(row).returning(scopes.c.id)).scalar_one()
            for project_id in project_ids:
                if connection.scalar(select(projects.c.id).where(projects.c.id == project_id)) is None:
                    of_it = {"bucket": 0, "shard": 0, "known_since": 0}
                    name_of_it = f"project-{project_id}"
                    connection.execute(
                        insert(projects).values(id=project_id, normalized=name_of_it, name=name_of_it, **of_it)
                    )
                    connection.execute(insert(releases).values(id=project_id, project_id=project_id, version="1"))
                keys = {"scope_id": scope_id, "project_id": project_id, "entered_at": 0.0, "nice": 0}
                connection.execute(insert(scope_projects).values(member | keys))
        return scope_id

    def add_file(self, project_id: int, number: int, size: int, uploaded: int) -> int:
        """Add a file to the index. Return its id."""
        id_ = len(self.files) + self.first_id
        row = {
            "id": id_,
            "project_id": project_id,
            "release_id": project_id,
            "filename": f"file-{id_}.tar.gz",
            "kind": "sdist",
            "sha256": sha256_of(number, size),
            "size": size,
            "uploaded_at": f"2026-01-01T00:00:{uploaded:02}Z",
        }
        with self.opened.write() as connection:
            connection.execute(insert(distributions).values(row))
            connection.execute(insert(live_intervals).values(distribution_id=id_, start=1))
        self.files[id_] = (number, size, project_id)
        return id_

    def remove(self, id_: int) -> None:
        """Remove a file from the index."""
        c = live_intervals.c
        with self.opened.write() as connection:
            connection.execute(update(live_intervals).where(c.distribution_id == id_, c.end.is_(None)).values(end=2))

    def yank(self, id_: int) -> None:
        with self.opened.write() as connection:
            found = select(yanked_intervals.c.start).where(yanked_intervals.c.distribution_id == id_)
            if connection.scalar(found) is None:
                connection.execute(insert(yanked_intervals).values(distribution_id=id_, start=1))

    def keep(self, *ids: int) -> None:
        """Keep files as a crawl does: reserve, write, record."""
        keeper = self.keeper
        reserved = keeper.reserve([self._wanted(id_) for id_ in ids])
        written: dict[KeptObject, bytes] = {}
        for id_, one in reserved.items():
            with closing(ReceivedFile(self.storage)) as received:
                received.write(bytes_of(*self.files[id_][:2]))
                assert received.store(one)
            written[one] = received.blocks
        keeper.finish(written)

    def _wanted(self, id_: int) -> FileToKeep:
        number, size, _ = self.files[id_]
        return FileToKeep(id_, sha256_of(number, size), size)

    def set_most(self, name: str, most: int | None) -> None:
        with self.opened.read() as connection:
            scope = require_scope(connection, name)
        self.opened.transact(partial(change_scope, scope=scope, values={"most": most}))
        self.keeper.enforce_budgets()

    def clean(self, *, is_late: bool = True) -> None:
        """Run the clean-up, with `is_late` after all claims have ended and all orphans are old."""
        self.late_s += CLAIM_ENDS_S if is_late else 0.0
        clean_files(self.catalog, self.storage, 4e9 if is_late else 0.0)

    def members(self) -> dict[str, set[str]]:
        """Return the hashes of the kept files of each scope that are not about to be deleted."""
        query = (
            select(scopes.c.name, kept_files.c.sha256)
            .join(kept_in_scopes, kept_in_scopes.c.scope_id == scopes.c.id)
            .join(kept_files, kept_files.c.sha256 == kept_in_scopes.c.sha256)
            .where(kept_files.c.state != KeptState.DELETING)
        )
        found: dict[str, set[str]] = {}
        with self.opened.read() as connection:
            for name, sha256 in connection.execute(query):
                found.setdefault(name, set()).add(sha256)
        return found

    def ranks(self, sha256s: Sequence[str]) -> dict[str, Any]:
        with self.opened.read() as connection:
            return dict(ranks(connection, sha256s))

    def assert_budgets_hold(self) -> None:
        """Check the budget of each scope by the bytes that the storage really has."""
        sizes: dict[str, int] = {}
        for one, sha256, _ in stored_objects(self.storage):
            sizes[sha256] = sizes.get(sha256, 0) + one.size
        joined = select(kept_in_scopes.c.sha256, kept_files.c.size).join(
            kept_files, kept_files.c.sha256 == kept_in_scopes.c.sha256
        )
        with self.opened.read() as connection:
            for scope in connection.execute(select(scopes)).all():
                held = connection.execute(joined.where(kept_in_scopes.c.scope_id == scope.id)).all()
                assert scope.kept_bytes == sum(row.size for row in held)
                if scope.most is not None:
                    assert scope.kept_bytes <= scope.most
                    assert sum(sizes.get(row.sha256, 0) for row in held) <= scope.most

    def assert_whole(self, *, is_clean: bool) -> None:
        """Check that rows and objects belong together. With `is_clean`, nothing may be left over."""
        stored = {(sha256, attempt) for _, sha256, attempt in stored_objects(self.storage)}
        with self.opened.read() as connection:
            rows = connection.execute(select(kept_files)).all()
            forgotten = set(connection.scalars(select(forgotten_files.c.sha256)))
            total = kept_totals(connection)
            held = set(connection.scalars(select(kept_in_scopes.c.sha256)))
        assert (total.files, total.bytes) == (len(rows), sum(row.size for row in rows))
        for row in rows:
            if row.state == KeptState.KEPT:
                one = KeptObject(row.sha256, row.attempt, row.size)
                assert verify_object(self.storage, one, row.blocks) is None
        if is_clean:
            assert stored == {(row.sha256, row.attempt) for row in rows}
            assert {row.state for row in rows} <= {KeptState.KEPT}
            assert held == {row.sha256 for row in rows}
            assert not forgotten & {sha256 for sha256, _ in stored}
