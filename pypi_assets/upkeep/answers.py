"""Measure how far look-ups lag the index: one number over all stages.

Look-ups answer from the newest version of each dataset. The limit above which a lag is reported as a problem does not
belong here: each page, check and metric that displays the lag has its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pypi_assets.upkeep.due import DatasetDue


@dataclass(frozen=True, slots=True)
class AnswersLag:
    """The lag of the look-ups behind the index.

    `serial` is the lowest serial of the newest versions. Every look-up is exact at least up to this serial. It is None
    if no dataset has a version; `without_version` names the datasets without one. `lagging_since` is the time (unix
    seconds) of the first event that some dataset lacks. It is None if no event is missing, or if the time is unknown.
    """

    serial: int | None
    index_serial: int | None
    lagging_since: float | None
    measured_at: float
    without_version: tuple[str, ...]

    @property
    def serials(self) -> int | None:
        """Return the number of serials by which the answers lag, or None if either serial is unknown."""
        return None if self.serial is None or self.index_serial is None else max(self.index_serial - self.serial, 0)

    @property
    def seconds(self) -> float | None:
        """Return how long the answers have lagged, 0 if they do not lag, or None if the time is unknown."""
        if self.serials == 0:
            return 0.0
        if self.serial is None or self.lagging_since is None:
            return None
        return max(self.measured_at - self.lagging_since, 0.0)


def answers_lag(
    datasets: Mapping[str, DatasetDue], index_serial: int | None, lagging_since: float | None, now: float
) -> AnswersLag:
    """Return how far the newest versions of `datasets` lag the index, whose last serial is `index_serial`.

    `lagging_since` is the time of the first event that the catalog lacks. It is used only if the versions have every
    event of the catalog.
    """
    serials = [one.need.serial for one in datasets.values() if one.need.serial is not None]
    lacked = [one.lacks_since for one in datasets.values() if one.lacks_since is not None]
    return AnswersLag(
        serial=min(serials, default=None),
        index_serial=index_serial,
        lagging_since=min(lacked, default=lagging_since),
        measured_at=now,
        without_version=tuple(name for name, one in datasets.items() if one.need.serial is None),
    )
