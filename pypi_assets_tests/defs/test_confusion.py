"""A private project name that also exists on a public index fails a check, and each such name causes a notice."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.definitions import _of_index, build_defs
from pypi_assets.defs.naming import Naming
from pypi_assets.defs.resources import Resources, build_resources
from pypi_assets.setting_sources import selected_index
from pypi_assets.settings import Settings, load_settings
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.notice_receiver import receiving
from pypi_assets_tests.served_index import served_index, shared_readers

COMPANY = Naming("company")
CHECK = dg.AssetCheckKey(dg.AssetKey(["company", "changed_distribution_data"]), "no_name_became_public")

AT = datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)


def opened(name: str) -> tuple[Settings, Resources]:
    with selected_index(name):
        settings = load_settings(requests_per_second=10_000, request_attempts=1)
    return settings, build_resources(settings, naming=COMPANY, readers=shared_readers())


def test_only_private_indexes_have_the_confusion_check(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(Path(__file__).parent.parent / "data" / "indexes.toml"))
    _of_index.cache_clear()
    company = _of_index("company").get_repository_def()
    assert CHECK in company.asset_checks_defs_by_key
    assert company.get_schedule_def("company__quarter_hourly_confusion").job_name == "company__confusion"
    _of_index.cache_clear()
    assert CHECK.name not in {key.name for key in build_defs(load_settings()).resolve_asset_graph().asset_check_keys}


@pytest.mark.nightly
def test_newly_public_name_fails_the_check_and_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clear_settings(monkeypatch)
    with (
        served_index(tmp_path / "public") as public,
        served_index(tmp_path / "company") as company,
        dg.DagsterInstance.ephemeral() as instance,
        receiving() as (url, received),
    ):
        file = tmp_path / "indexes.toml"
        file.write_text(
            f'[public]\nurl = "{public.url}"\ndefault = true\n'
            f'[company]\nurl = "{company.url}"\nprivate = true\nalso_public = ["Shared"]\n'
        )
        monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(file))
        monkeypatch.setenv("PYPI_ASSETS_NOTIFY_URLS", url)
        for name in ("acme-tools", "acme-web", "fork", "shared"):
            company.wheel(name, "1.0", at=AT)
        public.wheel("unrelated", "1.0", at=AT - timedelta(seconds=2))
        (_, of_public), (settings, of_company) = opened("public"), opened("company")
        defs = build_defs(settings, COMPANY, is_private=True, catalog=of_company.catalog.get())

        def check() -> dg.AssetCheckEvaluation:
            ran = defs.resolve_job_def("company__confusion").execute_in_process(instance=instance)
            [evaluation] = ran.get_asset_check_evaluations()
            assert evaluation.asset_check_key == CHECK
            return evaluation

        def tick(cursor: str | None) -> str | None:
            sensor = defs.resolve_sensor_def("company__failed_check")
            resources = of_company.by_name()
            with dg.build_sensor_context(instance=instance, cursor=cursor, resources=resources) as context:
                result = sensor(context)
            assert isinstance(result, dg.SensorResult)
            return result.cursor

        crawl_full(of_company.crawler.get())
        before = check()
        assert (before.passed, before.severity) == (False, dg.AssetCheckSeverity.WARN)
        assert unnamed(str(before.description), "public") == []
        crawl_full(of_public.crawler.get())
        assert check().passed
        cursor = tick(None)
        assert received == []

        public.wheel("fork", "1.0", at=AT - timedelta(seconds=1))
        crawl_incremental(of_public.crawler.get())
        found = check()
        assert found.passed
        assert (found.metadata["new"].value, found.metadata["public_first"].value) == (0, 1)

        public.wheel("acme-web", "99.0", at=AT)
        crawl_incremental(of_public.crawler.get())
        found = check()
        assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
        assert unnamed(str(found.description), "acme-web", "public", "2026-01-02 03:04:05") == []
        assert [found.metadata[name].value for name in ("new", "same_second", "unknown")] == [0, 1, 0]
        for _ in range(2):
            cursor = tick(cursor)
            [notice] = received
        assert "company__no_name_became_public" in notice["title"]
        assert "acme-web" in notice["message"]

        public.wheel("Acme.Tools", "99.0", at=AT + timedelta(seconds=1))
        public.wheel("shared", "99.0", at=AT + timedelta(seconds=1))
        crawl_incremental(of_public.crawler.get())
        found = check()
        assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
        assert unnamed(str(found.description), "acme-tools", "public", "2026-01-02 03:04:06") == []
        assert [found.metadata[name].value for name in ("new", "same_second", "unknown")] == [1, 1, 0]
        tick(tick(cursor))
        assert len(received) == 2
        assert "acme-tools" in received[1]["message"]
        of_public.close()
        of_company.close()
