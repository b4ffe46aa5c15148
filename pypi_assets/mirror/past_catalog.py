"""The history of a mirror: replays the mirrored journal into a separate catalog, which answers for earlier serials.

Each replay only adds to the previous one, so it can be stopped at any moment. Copying never waits for it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.replay import Progress, Replayed, replay
from pypi_assets.mirror.mirror_state import journal_end
from pypi_assets.storage.store import Storage


@dataclass(frozen=True)
class Past:
    """Replays the journal in a mirror's `storage` into `catalog`. `progress` receives the number of records so far."""

    storage: Storage
    catalog: Catalog
    progress: Progress | None = None

    def catch_up(self) -> Replayed | None:
        """Replay new records, or return None if there are none.

        Raises ReplayError, JournalDamagedError and CatalogError.
        """
        end = journal_end(self.storage)
        with self.catalog.read() as connection:
            reached = complete_serial(connection)
        if not end or end == reached:
            return None
        return replay(self.storage, self.catalog, progress=self.progress)


@dataclass
class PastFollower:
    """Catches up in a thread: on start, and each time that it is woken. The thread lives as long as the process.

    Local records are replayed even while the source does not answer. `done` receives the result of a replay. `failed`
    receives an error; the next wake-up tries again.
    """

    past: Past
    done: Callable[[Replayed], None]
    failed: Callable[[Exception], None]

    def __post_init__(self) -> None:
        self._woken = threading.Event()
        self._woken.set()
        threading.Thread(target=self._run, name="past", daemon=True).start()

    def wake(self) -> None:
        """Check for new records soon."""
        self._woken.set()

    def _run(self) -> None:
        while self._woken.wait():
            self._woken.clear()
            try:
                done = self.past.catch_up()
            except (ExpectedError, SQLAlchemyError) as error:
                self.failed(error)
            else:
                if done is not None:
                    self.done(done)
