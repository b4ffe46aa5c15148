"""A machine's clock that tests set forward and back during a crawl."""

import time
from dataclasses import dataclass, replace

from pypi_assets.catalog.database import Catalog, MachineClock


@dataclass
class SetClock:
    """A clock with the true time and an offset in seconds."""

    ahead_s: float = 0.0

    def now(self) -> float:
        return time.time() + self.ahead_s

    def of(self, catalog: Catalog) -> Catalog:
        """Return the catalog as a process with this clock opens it."""
        return replace(catalog, clock=MachineClock(self.now, time.monotonic))
