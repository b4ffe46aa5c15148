"""How far the answers of look-ups lag the index: the one number over all stages.

The answers come from the newest version of each dataset. How old a lag may become is judged where it is displayed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pypi_assets.upkeep.due import DatasetDue


@dataclass(frozen=True, slots=True)
class AnswersLag:
    """How far look-ups lag the index.

    `serial` is the least of the newest versions: whatever is looked up, the answer holds at least up to there. It is
    None where no dataset has a version, and `without_version` names those that have none. `lagging_since` is the time
    (unix seconds) of the first event that an answer lacks; None where there is none or the time is not known.
    """

    serial: int | None
    index_serial: int | None
    lagging_since: float | None
    measured_at: float
    without_version: tuple[str, ...]

    @property
    def serials(self) -> int | None:
        """The serials of the index that an answer lacks; None where either serial is not known."""
        return None if self.serial is None or self.index_serial is None else max(self.index_serial - self.serial, 0)

    @property
    def seconds(self) -> float | None:
        """For how long an answer has lagged, 0 where none does; None where that is not known."""
        if self.serials == 0:
            return 0.0
        if self.serial is None or self.lagging_since is None:
            return None
        return max(self.measured_at - self.lagging_since, 0.0)


def answers_lag(
    datasets: Mapping[str, DatasetDue], index_serial: int | None, lagging_since: float | None, now: float
) -> AnswersLag:
    """How far the newest versions of `datasets` lag the index, whose last serial is `index_serial`.

    `lagging_since` is the time of the first event that the catalog lacks: it counts where the versions lack no event
    that the catalog has.
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
