"""Checks of freshness, failures and drift.

They cost few queries, so they run after each run that changes their data. The job `health` also runs all of them four
times an hour, since an index changes without a run. `upkeep/due.py` computes pending work, and `status.py` the lag;
this module turns ages into pass, warning or failure.
"""

from collections.abc import Mapping
from datetime import timedelta

import dagster as dg

from pypi_assets.catalog.observed.index_state import count_kept_aside
from pypi_assets.catalog.reports.catalog_status import read_exhausted, read_followed
from pypi_assets.catalog.reports.failures import VISIT
from pypi_assets.catalog.reports.range_states import count_unexplained
from pypi_assets.catalog.work.audits import last_completed_audit
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import CheckFactory, check, check_result
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.policy import leveldb_asset
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.dumps.cover import cover
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.build_need import Need
from pypi_assets.settings import Settings
from pypi_assets.status import is_stale, measure_lag
from pypi_assets.upkeep.answers import answers_lag
from pypi_assets.upkeep.due import audit_hindrance, due_crawl, due_datasets, is_audit_missing, job_before_versions

_CRAWLED = ["crawled_distribution_data"]
"""A full crawl also changes the data of these checks, so they run after it."""


@check("changed_distribution_data", additional_deps=_CRAWLED)
def catalog_is_fresh(settings: SettingsResource, catalog: CatalogResource) -> dg.AssetCheckResult:
    """New events of the package index soon reach the catalog.

    The check depends on the age of the first missing event: it warns from `PYPI_ASSETS_LAG_WARN_S` seconds on, and
    fails from `PYPI_ASSETS_LAG_FAIL_S` seconds on. If the index does not answer, the check uses the stored events, and
    warns. It fails if the changelog has failed for as long.
    """
    with expected_errors_as_failures():
        thresholds = settings.get()
        with catalog.get().read() as connection:
            followed = read_followed(connection)
        now = catalog.get().clock()
        lag = measure_lag(thresholds, followed, now)
    numbers = {"serial": lag.complete_serial, "index_serial": lag.index_serial, "lag_serials": lag.serials}
    if lag.complete_serial is None:
        crawl = due_crawl(catalog.get())
        what = "scope" if crawl.is_scoped else "full crawl"
        return _warning(f"no {what} is complete yet: run the job {crawl.first_job}", numbers)
    trouble = followed.changelog_trouble
    if lag.seconds is None and trouble is not None and now - trouble.since >= thresholds.lag_fail_s:
        unknown_for = timedelta(seconds=round(now - trouble.since))
        text = f"the lag of the catalog has been unknown for {unknown_for}: {trouble.text}"
        return check_result(passed=False, description=text, metadata=_known(numbers))
    return _by_age(thresholds, "the catalog", "the index", lag.seconds, lag.index_error, numbers)


def _is_fresh(dataset: str) -> CheckFactory:
    @check(
        leveldb_asset(dataset),
        name=f"{dataset}_is_fresh",
        description=f"Crawled changes soon reach the look-ups in {dataset}. The check depends on the age of the first"
        " missing event: it warns from `PYPI_ASSETS_LAG_WARN_S` seconds on, and fails from `PYPI_ASSETS_LAG_FAIL_S`"
        " seconds on. It also warns if the dataset must be built from scratch, or if dumps lack columns that it needs.",
    )
    def of_dataset(
        settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
    ) -> dg.AssetCheckResult:
        with expected_errors_as_failures():
            opened, thresholds = catalog.get(), settings.get()
            in_use = cover(opened)
            due = due_datasets(opened, storage.get(), in_use, [DATASETS[dataset]])[dataset]
            next_job, now = job_before_versions(opened, in_use), opened.clock()
        need = due.need
        if need.need in {Need.NO_DUMPS, Need.NO_VERSION}:
            return _warning(f"no version of {dataset} is published: run the job {next_job}", {})
        numbers: dict[str, int | None] = {"serial": need.serial}
        if need.need == Need.LACKS_COLUMNS:
            return _warning(need.reason, numbers)
        if not due.lags_dumps and is_stale(thresholds, due.due_for_s(now)):
            return _warning(f"{need.reason}: run the job update_leveldbs", numbers)
        age = 0.0 if due.lacks_since is None else max(now - due.lacks_since, 0.0)
        return _by_age(thresholds, dataset, "the catalog", age, None, numbers)

    return of_dataset


_FIRST, *_OTHERS = (leveldb_asset(dataset) for dataset in DATASETS)


@check(_FIRST, additional_deps=_OTHERS)
def answers_are_fresh(
    settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.AssetCheckResult:
    """The answers of all look-ups are as fresh as the package index was a short time ago.

    `lag_seconds` is the age of the first event that an answer lacks, and `lag_serials` is the number of serials that it
    lacks, both for the oldest dataset. Warns from `PYPI_ASSETS_LAG_WARN_S` seconds on, and if the age is not known.
    Fails from `PYPI_ASSETS_LAG_FAIL_S` seconds on.
    """
    with expected_errors_as_failures():
        opened, thresholds = catalog.get(), settings.get()
        with opened.read() as connection:
            followed = read_followed(connection)
        in_use = cover(opened)
        datasets = due_datasets(opened, storage.get(), in_use)
        catalog_lag = measure_lag(thresholds, followed, opened.clock())
        lag = answers_lag(datasets, catalog_lag.index_serial, catalog_lag.lagging_since, catalog_lag.measured_at)
        next_job = job_before_versions(opened, in_use)
    numbers = {"serial": lag.serial, "index_serial": lag.index_serial, "lag_serials": lag.serials}
    missing = f"no version of {', '.join(lag.without_version)} is published" if lag.without_version else None
    if lag.serial is None:
        return _warning(f"{missing}: run the job {next_job}", numbers)
    problem = "; ".join(text for text in (catalog_lag.index_error, missing) if text)
    return _by_age(thresholds, "the answer of a look-up", "the index", lag.seconds, problem or None, numbers)


def _by_age(
    settings: Settings, what: str, of: str, age: float | None, problem: str | None, numbers: dict[str, int | None]
) -> dg.AssetCheckResult:
    """Return pass, warning or failure by the `age` of the first missing event in seconds; None if it is not known."""
    if age is None:
        text = f"it is not known how far {what} lags {of}"
    elif age == 0:
        text = f"{what} is as fresh as {of}"
    else:
        text = f"{what} lags {of} by {timedelta(seconds=round(age))}"
    return check_result(
        passed=not (problem or is_stale(settings, age)),
        severity=_severity(age is not None and age >= settings.lag_fail_s),
        description="; ".join(part for part in (text, problem) if part),
        metadata=_known({**numbers, "lag_seconds": None if age is None else round(age, 1)}),
    )


@check("changed_distribution_data", name="few_are_given_up", additional_deps=_CRAWLED)
def few_are_exhausted(settings: SettingsResource, catalog: CatalogResource) -> dg.AssetCheckResult:
    """Few pages and files were abandoned after many attempts to fetch them.

    Warns from `PYPI_ASSETS_GIVEN_UP_WARN_PERCENT` percent on, and fails from `PYPI_ASSETS_GIVEN_UP_FAIL_PERCENT`
    percent on.
    """
    return check_exhausted(settings, catalog)


def check_exhausted(settings: SettingsResource, catalog: CatalogResource) -> dg.AssetCheckResult:
    """Return the present result of the check `few_are_given_up`."""
    with expected_errors_as_failures():
        thresholds = settings.get()
        with catalog.get().read() as connection:
            exhausted = read_exhausted(connection)
    kinds, percent = exhausted.kinds, exhausted.percent
    counts = ", ".join(
        f"{count} {'visits' if kind == VISIT else kind}" for kind, count in sorted(kinds.items()) if count
    )
    found = f"{percent:.2f} % were abandoned: {counts}; `pypi-assets failures list` shows why"
    return check_result(
        passed=percent < thresholds.given_up_warn_percent,
        severity=_severity(percent >= thresholds.given_up_fail_percent),
        description=found if counts else "nothing was abandoned",
        metadata={"given_up_percent": percent, "given_up": exhausted.count, **kinds},
    )


@check("changed_distributions", additional_deps=_CRAWLED)
def nothing_drifted(catalog: CatalogResource) -> dg.AssetCheckResult:
    """The last audit found no difference between the catalog and the package index. Warns if it found differences.

    The check also counts changes of files that no event explains, and invalid entries of the index's answers.
    """
    return check_drift(catalog)


def check_drift(catalog: CatalogResource) -> dg.AssetCheckResult:
    """Return the present result of the check `nothing_drifted`."""
    with expected_errors_as_failures(), catalog.get().read() as connection:
        audit = last_completed_audit(connection)
        is_missing = is_audit_missing(connection, catalog.get().clock())
        unexplained = count_unexplained(connection)
        broken = sum(count_kept_aside(connection).values())
    numbers: dict[str, int | None] = {"unexplained_changes": unexplained, "broken_entries": broken}
    if is_missing:
        return _warning("no audit was made yet: run the job audit, or turn on weekly_audit", numbers)
    if audit is None and (hindrance := audit_hindrance(catalog.get())):
        return check_result(passed=True, description=f"no audit is made: {hindrance}", metadata=_known(numbers))
    if audit is None:
        text = "no audit was made yet, and none is needed: the full crawl has just visited every project"
        return check_result(passed=True, description=text, metadata=_known(numbers))
    counts = audit.findings.counts
    found = ", ".join(f"{count} {cause}" for cause, count in sorted(counts.items()))
    return check_result(
        passed=not counts,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"the audit at serial {audit.serial} found: {found}"
        if found
        else f"no drift at serial {audit.serial}",
        metadata=numbers | {"serial": audit.serial, "drift": sum(counts.values()), **counts},
    )


HEALTH_CHECKS = [
    catalog_is_fresh,
    *(_is_fresh(dataset) for dataset in DATASETS),
    answers_are_fresh,
    few_are_exhausted,
    nothing_drifted,
]


def record_check(
    context: dg.OpExecutionContext, naming: Naming, check: CheckFactory, result: dg.AssetCheckResult
) -> None:
    """Record a result of a check from an op, since checks can only follow assets."""
    key = naming.check_key(check.key)
    context.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=key.asset_key,
            check_name=key.name,
            passed=result.passed,
            metadata=result.metadata,
            severity=result.severity,
            description=result.description,
        )
    )


def _warning(text: str, numbers: dict[str, int | None]) -> dg.AssetCheckResult:
    return check_result(passed=False, severity=dg.AssetCheckSeverity.WARN, description=text, metadata=_known(numbers))


def _known(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {key: number for key, number in numbers.items() if number is not None}


def _severity(fails: bool) -> dg.AssetCheckSeverity:
    return dg.AssetCheckSeverity.ERROR if fails else dg.AssetCheckSeverity.WARN
