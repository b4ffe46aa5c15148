"""A machine's clock that is set forward and back while work is under way."""

import time
from dataclasses import dataclass, replace

from pypi_assets.catalog.database import Catalog, MachineClock


@dataclass
class SetClock:
    """The true time, and by how much the clock was set forward, in seconds."""

    ahead_s: float = 0.0

    def now(self) -> float:
        return time.time() + self.ahead_s

    def of(self, catalog: Catalog) -> Catalog:
        """Return the catalog as a process of the machine with this clock opens it."""
        return replace(catalog, clock=MachineClock(self.now, time.monotonic))
