"""Checks of how things stand: how far behind, what was given up, what drifted. They ask little, and can run often."""

from collections.abc import Mapping
from datetime import timedelta

import dagster as dg
from dagster import ResourceParam

from pypi_assets.catalog.reports.exhausted_work import read_exhausted
from pypi_assets.catalog.reports.failures import VISIT
from pypi_assets.catalog.reports.followed_index import read_followed
from pypi_assets.catalog.reports.range_changes import count_unexplained
from pypi_assets.catalog.work.audits import last_completed_audit
from pypi_assets.defs.assets.changes import changed_distribution_data, changed_distributions
from pypi_assets.defs.assets.leveldbs import depgraph_leveldb, modules_leveldb
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.parts import Parts
from pypi_assets.dumps.cover import cover
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.build_need import Need
from pypi_assets.settings import Settings
from pypi_assets.status import is_stale, measure_lag
from pypi_assets.upkeep.due import due_datasets


@dg.asset_check(asset=changed_distribution_data)
def catalog_is_fresh(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
    """The first event that the catalog lacks is not old: warns from `PYPI_ASSETS_LAG_WARN_S` on, fails from
    `PYPI_ASSETS_LAG_FAIL_S` on. Where the index does not answer, what is stored counts, and it warns; it fails once the
    changelog has failed for so long.
    """
    with expected_errors_as_failures():
        settings = parts.settings
        with parts.catalog.read() as connection:
            followed = read_followed(connection)
        now = parts.catalog.clock()
        lag = measure_lag(settings, followed, now)
    numbers = {"serial": lag.complete_serial, "index_serial": lag.index_serial, "lag_serials": lag.serials}
    if lag.complete_serial is None:
        return _warning("no full crawl is complete yet: run the job full_crawl", numbers)
    trouble = followed.changelog_trouble
    if lag.seconds is None and trouble is not None and now - trouble.since >= settings.lag_fail_s:
        text = f"nobody has told for {timedelta(seconds=round(now - trouble.since))} how far the catalog is behind"
        return dg.AssetCheckResult(passed=False, description=f"{text}: {trouble.text}", metadata=_known(numbers))
    return _by_age(settings, "the catalog", "the index", lag.seconds, lag.index_error, numbers)


def _is_fresh(dataset: str, asset: dg.AssetsDefinition) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=asset,
        name=f"{dataset}_is_fresh",
        description=f"The first event in the catalog that the newest version of {dataset} lacks is not old: warns from"
        " `PYPI_ASSETS_LAG_WARN_S` on, fails from `PYPI_ASSETS_LAG_FAIL_S` on.",
    )
    def check(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
        with expected_errors_as_failures():
            catalog = parts.catalog
            one = due_datasets(catalog, parts.storage, cover(catalog), [DATASETS[dataset]])[dataset]
            now = catalog.clock()
        need, settings = one.need, parts.settings
        if need.serial is None:
            what = f"no version of {dataset} is published: run the job update_leveldbs"
            return _warning(what if need.need in {Need.NO_DUMPS, Need.NO_VERSION} else need.reason, {})
        numbers: dict[str, int | None] = {"serial": need.serial}
        if not need.is_buildable or (not one.is_behind_dumps and is_stale(settings, one.due_for_s(now))):
            return _warning(f"{need.reason}: run the job update_leveldbs" if one.is_due else need.reason, numbers)
        age = 0.0 if one.lacks_since is None else max(now - one.lacks_since, 0.0)
        return _by_age(settings, dataset, "the catalog", age, None, numbers)

    return check


def _by_age(
    settings: Settings, what: str, of: str, age: float | None, problem: str | None, numbers: dict[str, int | None]
) -> dg.AssetCheckResult:
    """Passes, warns or fails by the `age` of the first event that is missing, in seconds; None: nobody tells it."""
    told = f"as {of}" if age == 0 else f"behind {of} by {timedelta(seconds=round(age or 0))}"
    text = f"{what} is {told}" if age is not None else f"nobody tells how far {what} is behind {of}"
    return dg.AssetCheckResult(
        passed=not (problem or is_stale(settings, age)),
        severity=_severity(age is not None and age >= settings.lag_fail_s),
        description="; ".join(part for part in (text, problem) if part),
        metadata=_known({**numbers, "lag_seconds": age}),
    )


@dg.asset_check(asset=changed_distribution_data)
def few_are_given_up(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
    """Few of all known distributions and projects were given up after errors that may pass: warns and fails from the
    per cent of `PYPI_ASSETS_GIVEN_UP_WARN_PERCENT` and `PYPI_ASSETS_GIVEN_UP_FAIL_PERCENT` on.
    """
    with expected_errors_as_failures():
        settings = parts.settings
        with parts.catalog.read() as connection:
            given_up = read_exhausted(connection)
    kinds, percent = given_up.kinds, given_up.percent
    told = ", ".join(f"{count} {'visits' if kind == VISIT else kind}" for kind, count in sorted(kinds.items()) if count)
    return dg.AssetCheckResult(
        passed=percent < settings.given_up_warn_percent,
        severity=_severity(percent >= settings.given_up_fail_percent),
        description=f"{percent:.2f} % were given up: {told}; `pypi-assets failures list` tells why"
        if told
        else "nothing was given up",
        metadata={"given_up_percent": percent, "given_up": given_up.count, **kinds},
    )


@dg.asset_check(asset=changed_distributions)
def nothing_drifted(parts: ResourceParam[Parts]) -> dg.AssetCheckResult:
    """The last audit found the catalog as the index is; warns where it did not. Changes of files that no event explains
    are counted beside.
    """
    with expected_errors_as_failures(), parts.catalog.read() as connection:
        audit = last_completed_audit(connection)
        unexplained = count_unexplained(connection)
    numbers: dict[str, int | None] = {"unexplained_changes": unexplained}
    if audit is None:
        return _warning("no audit was made yet: run the job audit, or turn on weekly_audit", numbers)
    counts = audit.findings.counts
    told = ", ".join(f"{count} {cause}" for cause, count in sorted(counts.items()))
    return dg.AssetCheckResult(
        passed=not counts,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"the audit at serial {audit.serial} found: {told}"
        if told
        else f"no drift at serial {audit.serial}",
        metadata=numbers | {"serial": audit.serial, "drift": sum(counts.values()), **counts},
    )


def _warning(text: str, numbers: dict[str, int | None]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=False, severity=dg.AssetCheckSeverity.WARN, description=text, metadata=_known(numbers)
    )


def _known(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {key: number for key, number in numbers.items() if number is not None}


def _severity(fails: bool) -> dg.AssetCheckSeverity:
    return dg.AssetCheckSeverity.ERROR if fails else dg.AssetCheckSeverity.WARN


HEALTH_CHECKS = [
    catalog_is_fresh,
    few_are_given_up,
    nothing_drifted,
    _is_fresh("modules", modules_leveldb),
    _is_fresh("depgraph", depgraph_leveldb),
]
