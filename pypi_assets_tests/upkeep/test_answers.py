"""How far look-ups lag the index: the dataset that lags most counts."""

from pypi_assets.leveldbs.versions.build_need import BuildNeed, Need
from pypi_assets.upkeep.answers import AnswersLag, answers_lag
from pypi_assets.upkeep.due import DatasetDue

NOW = 10_000.0


def dataset(serial: int | None, lacks_since: float | None = None) -> DatasetDue:
    need = BuildNeed("demo", Need.HELD if serial else Need.NO_VERSION, "", None if serial is None else 1, serial)
    return DatasetDue(need, lacks_since, lags_dumps=False, full_dump_at=None)


def lag(index_serial: int | None, lagging_since: float | None = None, **datasets: DatasetDue) -> AnswersLag:
    return answers_lag(datasets, index_serial, lagging_since, NOW)


def test_answers_as_new_as_the_index_do_not_lag() -> None:
    found = lag(100, modules=dataset(100), hashes=dataset(100))
    assert (found.serial, found.serials, found.seconds, found.without_version) == (100, 0, 0.0, ())


def test_the_dataset_that_lags_most_counts() -> None:
    found = lag(100, modules=dataset(100), hashes=dataset(90, NOW - 60), depgraph=dataset(95, NOW - 20))
    assert (found.serial, found.serials, found.seconds) == (90, 10, 60.0)


def test_an_event_that_not_even_the_catalog_has_counts_too() -> None:
    found = lag(103, NOW - 7, modules=dataset(100))
    assert (found.serials, found.seconds) == (3, 7.0)


def test_what_is_not_known_is_none() -> None:
    assert (lag(None, modules=dataset(100)).serials, lag(None, modules=dataset(100)).seconds) == (None, None)
    assert lag(None, modules=dataset(100, NOW - 9)).seconds == 9.0
    assert lag(105, modules=dataset(100)).seconds is None


def test_datasets_without_a_version_are_named() -> None:
    found = lag(100, NOW - 5, modules=dataset(100), hashes=dataset(None))
    assert (found.serial, found.without_version) == (100, ("hashes",))
    none = lag(100, NOW - 5, hashes=dataset(None))
    assert (none.serial, none.serials, none.seconds) == (None, None, None)
