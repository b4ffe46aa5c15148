"""The settings: what each variable accepts, and the message for a value that it does not accept."""

import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT
from sqlalchemy.engine import make_url

from pypi_assets.settings import ENV_PREFIX, Settings, SettingsError, is_loopback, load_settings
from pypi_assets_tests.environment import clear_settings

INDEXES = Path(__file__).parent / "data" / "indexes.toml"
WRONG = {
    "env_file": ["no/such/file.env", "."],
    "indexes": ["no/such/file.toml", "."],
    "index": ["company"],
    "index_url": [
        "files.example.org/simple/",
        "ftp://index.example.org/simple/",
        "https:///simple/",
        "https://index.example.org/simple/?format=json",
        "https://index.example.org:port/simple/",
        "http://[::1/simple/",
    ],
    "changelog_url": ["index.example.org/pypi", "https://index.example.org/pypi#top"],
    "lister": ["both", "XMLRPC"],
    "log_format": ["xml", "json lines"],
    "log_level": ["all", "10"],
    "database_url": [
        "mysql://localhost/catalog",
        "catalog.sqlite",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite://folder/catalog.sqlite",
        "postgresql://user:secret@host:port/catalog",
    ],
    "storage_url": ["/srv/storage", "http://storage.example.org/", "file://relative/path", "s3://", "gs:///prefix"],
    "contact": ["somebody", "me@example.org\nX-Evil: 1", "mé@example.org"],
    "projects": ["demo, -wrong-", "requests==2.0", "no/such/file", "no-such-file.txt"],
    "max_connections": ["0", "65", "many", "1.5"],
    "requests_per_second": ["0", "-1", "nan", "inf", "10001"],
    "allowed_file_hosts": ["files.example.org", '["https://files.example.org/"]', '{"a": 1}', "[1]"],
    "proxy": ["proxy.example.org:3128", "socks5://me:secret@proxy.example.org", "http://me:secret@/", "http://p/x"],
    "ca_file": ["no/such/file.pem"],
    "client_cert": ["no/such/file.pem"],
    "connect_timeout_s": ["0", "inf", "3601"],
    "read_timeout_s": ["0", "nan", "3601"],
    "request_attempts": ["0", "21"],
    "retry_pause_s": ["0", "inf"],
    "retry_deadline_s": ["-1", "inf"],
    "poll_requests": ["0", "many"],
    "poll_shortest_s": ["-1", "inf"],
    "poll_longest_s": ["0", "inf"],
    "poll_confirm_s": ["-1", "nan"],
    "range_events": ["0", "all"],
    "range_min_age_s": ["-1", "soon"],
    "range_min_events": ["0", "many"],
    "follow_interval_s": ["0.4", "3601"],
    "kafka_bootstrap_servers": ["one:9092, two:9092", ","],
    "kafka_properties": ["no/such/file.properties"],
    "kafka_topic_prefix": ["a topic", "a/b"],
    "follow_leveldb_interval_s": ["-1", "soon"],
    "revisit_share": ["-1", "101", "nan", "some"],
    "max_attempts": ["0", "10001"],
    "in_flight": ["0", "10001"],
    "claim_lease_s": ["2.9", "inf", "86401"],
    "audit_share_percent": ["-1", "101", "nan"],
    "max_file_bytes": ["0", "2 GB"],
    "max_metadata_bytes": ["0"],
    "max_members": ["0"],
    "max_name_length": ["0"],
    "max_expansion_ratio": ["1", "nan"],
    "max_read_seconds": ["0", "3601"],
    "max_inflated_bytes": ["0"],
    "containment": ["none", "true"],
    "sensors_on": ["perhaps", "2"],
    "sensor_interval_s": ["4", "soon"],
    "service_refresh_s": ["0", "often"],
    "service_timeout_s": ["0", "3601"],
    "service_allow_quarantined": ["2", "some"],
    "service_public_url": ["packages", "ftp://host/", "https://user@host/", "https://host/?a=1", "https://host/$(x)"],
    "service_max_body_bytes": ["0", "1MB"],
    "service_resolve_timeout_s": ["0", "3601"],
    "service_max_connections": ["0", "many"],
    "service_max_requests": ["0", "many"],
    "owners": ["somebody", "me@localhost", "team:", "team:data,me@example"],
    "notify_urls": ["me@example.org", "mailto://me:secret@example.org secret"],
    "lag_warn_s": ["0", "soon"],
    "lag_fail_s": ["-1", "inf"],
    "freshness_hours": ["0", "87601", "daily"],
    "given_up_warn_percent": ["0", "101"],
    "given_up_fail_percent": ["0", "many"],
    "dump_concurrency": ["0", "13", "many"],
    "partitions_kept_days": ["0", "nan", "36501"],
    "visits_kept_days": ["0", "nan", "36501"],
    "read_attempts_kept_days": ["0", "nan", "36501"],
    "superseded_kept_hours": ["-1", "nan", "87601"],
    "leveldb_versions_kept": ["0", "10001"],
    "parquet_exports_kept": ["0", "10001"],
    "solvability_projects": ["0", "100001", "all"],
    "solvability_since": ["0", "1772323200", "2026-02-30", "yesterday"],
    "solvability_kept_days": ["0", "nan", "36501"],
    "leveldb_write_buffer_bytes": ["1000"],
    "leveldb_memory_bytes": ["1000000"],
    "webhooks": ["http://example.org/", '{"url": "http://example.org/"}', '["http://example.org/"]'],
    "webhooks_private": ["perhaps"],
}
RIGHT = {
    "env_file": (os.devnull, Path(os.devnull)),
    "indexes": (str(INDEXES), INDEXES),
    "index": ("company", "company"),
    "home": ("some/folder", Path("some/folder")),
    "index_url": (
        "https://user:secret@index.example.org/team/simple",
        "https://user:secret@index.example.org/team/simple/",
    ),
    "changelog_url": ("https://index.example.org/xmlrpc", "https://index.example.org/xmlrpc"),
    "lister": ("simple", "simple"),
    "log_format": ("JSON", "json"),
    "log_level": ("Warning", "warning"),
    "database_url": ("postgresql://user@host/catalog", "postgresql://user@host/catalog"),
    "storage_url": ("s3://bucket/some/prefix/", "s3://bucket/some/prefix"),
    "contact": ("https://example.org/about", "https://example.org/about"),
    "projects": ("Requests Demo.Pkg,demo-pkg\nzope.interface", ("demo-pkg", "requests", "zope-interface")),
    "max_connections": ("64", 64),
    "requests_per_second": ("0.5", 0.5),
    "allowed_file_hosts": ('["files.example.org", "[::1]:8080"]', ("files.example.org", "[::1]:8080")),
    "proxy": ("http://me:secret@proxy.example.org:3128", "http://me:secret@proxy.example.org:3128"),
    "ca_file": (__file__, Path(__file__)),
    "client_cert": (__file__, Path(__file__)),
    "connect_timeout_s": ("3", 3.0),
    "read_timeout_s": ("0.1", 0.1),
    "request_attempts": ("20", 20),
    "retry_pause_s": ("0.01", 0.01),
    "retry_deadline_s": ("0", 0.0),
    "poll_requests": ("1", 1),
    "poll_shortest_s": ("0", 0.0),
    "poll_longest_s": ("3600", 3600.0),
    "poll_confirm_s": ("0", 0.0),
    "range_events": ("50000", 50_000),
    "range_min_age_s": ("600", 600.0),
    "range_min_events": ("1", 1),
    "follow_interval_s": ("10", 10.0),
    "kafka_bootstrap_servers": ("one:9092,two:9092", "one:9092,two:9092"),
    "kafka_topic_prefix": ("pypi.changes", "pypi.changes"),
    "kafka_properties": (__file__, Path(__file__)),
    "follow_leveldb_interval_s": ("60", 60.0),
    "revisit_share": ("0.5", 0.5),
    "max_attempts": ("1", 1),
    "in_flight": ("1", 1),
    "claim_lease_s": ("3", 3.0),
    "audit_share_percent": ("12.5", 12.5),
    "max_file_bytes": ("1", 1),
    "max_metadata_bytes": ("1", 1),
    "max_members": ("1", 1),
    "max_name_length": ("255", 255),
    "max_expansion_ratio": ("1000", 1000.0),
    "max_read_seconds": ("5", 5.0),
    "max_inflated_bytes": ("1", 1),
    "containment": ("required", "required"),
    "sensors_on": ("true", True),
    "sensor_interval_s": ("5", 5),
    "service_refresh_s": ("0.5", 0.5),
    "service_timeout_s": ("30", 30.0),
    "service_allow_quarantined": ("1", True),
    "service_public_url": ("https://packages.example.org/pypi", "https://packages.example.org/pypi/"),
    "service_max_body_bytes": ("1024", 1024),
    "service_resolve_timeout_s": ("2.5", 2.5),
    "service_max_connections": ("10", 10),
    "service_max_requests": ("10", 10),
    "notify_urls": (
        "json://127.0.0.1/  mailto://me:secret@example.org",
        ("json://127.0.0.1/", "mailto://me:secret@example.org"),
    ),
    "owners": ("me@example.org, team:data", ("me@example.org", "team:data")),
    "lag_warn_s": ("60", 60.0),
    "lag_fail_s": ("600", 600.0),
    "freshness_hours": ("1.5", 1.5),
    "given_up_warn_percent": ("0.1", 0.1),
    "given_up_fail_percent": ("100", 100.0),
    "dump_concurrency": ("12", 12),
    "partitions_kept_days": ("1.5", 1.5),
    "visits_kept_days": ("30", 30.0),
    "read_attempts_kept_days": ("30", 30.0),
    "superseded_kept_hours": ("1.5", 1.5),
    "leveldb_versions_kept": ("1", 1),
    "parquet_exports_kept": ("1", 1),
    "solvability_projects": ("1", 1),
    "solvability_since": ("2026-03-01", date(2026, 3, 1)),
    "solvability_kept_days": ("30", 30.0),
    "leveldb_write_buffer_bytes": ("1048576", 1024**2),
    "leveldb_memory_bytes": ("536870912", 512 * 1024**2),
    "webhooks": ('[{"url": "http://example.org/"}]', '[{"url": "http://example.org/"}]'),
    "webhooks_private": ("1", True),
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)


def refusal(monkeypatch: pytest.MonkeyPatch, field: str, value: str) -> str:
    monkeypatch.setenv(f"{ENV_PREFIX}{field.upper()}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    return str(caught.value)


def test_every_variable_is_tried_here() -> None:
    assert set(RIGHT) == set(Settings.model_fields)
    assert set(WRONG) == set(Settings.model_fields) - {"home"}  # any text is a path


def test_a_wrong_value_names_the_variable_and_what_it_accepts(subtests: pytest.Subtests) -> None:
    for field, value in [(field, value) for field, values in WRONG.items() for value in values]:
        with subtests.test(field=field, value=value), pytest.MonkeyPatch.context() as monkeypatch:
            message = refusal(monkeypatch, field, value)
            assert re.findall(r"PYPI_ASSETS_\w+", message)[0] == f"PYPI_ASSETS_{field.upper()}"
            assert str(Settings.model_fields[field].description) in message
            assert "secret" not in message
            assert len(message.splitlines()) == 1


def test_every_variable_is_read(subtests: pytest.Subtests) -> None:
    for field in RIGHT:
        with subtests.test(field=field), pytest.MonkeyPatch.context() as monkeypatch:
            text, value = RIGHT[field]
            if field == "index":
                monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(INDEXES))
            monkeypatch.setenv(f"{ENV_PREFIX}{field.upper()}", text)
            assert getattr(load_settings(), field) == value


def test_all_wrong_values_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_MAX_MEMBERS", "none")
    lines = refusal(monkeypatch, "contact", "me").splitlines()
    named = [re.findall(r"PYPI_ASSETS_\w+", line)[0] for line in lines]
    assert named == ["PYPI_ASSETS_CONTACT", "PYPI_ASSETS_MAX_MEMBERS"]


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.setenv(f"{ENV_PREFIX}{field.upper()}", "")
    assert load_settings() == Settings()


def test_without_any_variable_it_is_pypi_and_a_folder_here(tmp_path: Path) -> None:
    settings = load_settings()
    home = tmp_path / ".pypi-assets"
    assert settings.index_url == PYPI_SIMPLE_ENDPOINT
    assert settings.resolved_home == home
    assert settings.resolved_database_url == f"sqlite:///{home}/catalog.sqlite"
    assert settings.resolved_storage_url == f"file://{home}/storage"
    assert settings.projects == ()


def test_pypi_simple_is_imported_only_where_no_index_is_given() -> None:
    """Its import takes 0.2 s, which every command would wait for."""
    program = (
        "import sys, pypi_assets.cli\n"
        "from pypi_assets.settings import load_settings\n"
        "load_settings(index_url='http://127.0.0.1:8080/simple/')\n"
        "assert 'pypi_simple' not in sys.modules\n"
        "load_settings()\n"
        "assert 'pypi_simple' in sys.modules\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_overrides_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_MAX_CONNECTIONS", "3")
    assert load_settings(max_connections=5).max_connections == 5
    assert load_settings(projects=("B", "a")).projects == ("a", "b")


@pytest.mark.parametrize(
    ("index_url", "changelog_url"),
    [
        ("https://index.example.org/simple/", "https://index.example.org/pypi"),
        ("https://index.example.org/simple", "https://index.example.org/pypi"),
        ("http://127.0.0.1:8137/team/simple//", "http://127.0.0.1:8137/team/pypi"),
        ("https://me:pw@index.example.org/simple/", "https://me:pw@index.example.org/pypi"),
    ],
)
def test_the_changelog_is_next_to_the_simple_api(index_url: str, changelog_url: str) -> None:
    assert load_settings(index_url=index_url).resolved_changelog_url == changelog_url


def test_hosts_of_files_are_trusted_on_first_use_unless_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().allowed_file_hosts == "auto"
    for text, value in (("AUTO", "auto"), ("[]", ()), ('["a.example.org"]', ("a.example.org",))):
        monkeypatch.setenv("PYPI_ASSETS_ALLOWED_FILE_HOSTS", text)
        assert load_settings().allowed_file_hosts == value


def test_the_changelog_can_be_elsewhere() -> None:
    settings = load_settings(changelog_url="https://changelog.example.org/RPC2")
    assert settings.resolved_changelog_url == "https://changelog.example.org/RPC2"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql_is_used_through_psycopg_3(scheme: str) -> None:
    settings = load_settings(database_url=f"{scheme}://me:pw@db.example.org:5433/catalog?sslmode=require")
    assert settings.resolved_database_url == "postgresql+psycopg://me:pw@db.example.org:5433/catalog?sslmode=require"


def test_a_home_with_any_characters_leads_to_its_files(tmp_path: Path) -> None:
    home = tmp_path / "a b?c#d%20"
    settings = load_settings(home=home)
    assert make_url(settings.resolved_database_url).database == str(home / "catalog.sqlite")
    assert unquote(urlsplit(settings.resolved_storage_url).path) == str(home / "storage")


def test_projects_can_be_listed_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "projects"
    file.write_text("# what we follow\nRequests\nzope.interface  # for others\n\nattrs, PyYAML\n")
    for value in (str(file), "projects"):
        monkeypatch.setenv("PYPI_ASSETS_PROJECTS", value)
        assert load_settings().projects == ("attrs", "pyyaml", "requests", "zope-interface")


def test_a_long_list_of_projects_is_not_taken_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"project-{number}" for number in range(500)]
    monkeypatch.setenv("PYPI_ASSETS_PROJECTS", ",".join(names))
    assert load_settings().projects == tuple(sorted(names))


def test_a_file_of_projects_that_is_no_text_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "projects.txt").write_bytes(b"\xff\xfe\x00")
    assert "PYPI_ASSETS_PROJECTS" in refusal(monkeypatch, "projects", "projects.txt")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "[::1]", "localhost", "dev.localhost"])
def test_an_index_on_loopback_needs_no_contact(host: str) -> None:
    load_settings(index_url=f"http://{host}:8137/simple/").require_contact()


@pytest.mark.parametrize(
    "urls",
    [
        {"index_url": "https://index.example.org/simple/"},
        {"index_url": "http://10.0.0.1/simple/"},
        {"index_url": "http://127.0.0.1/simple/", "changelog_url": "https://index.example.org/pypi"},
        {},
    ],
)
def test_any_other_index_is_refused_without_a_contact(urls: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="PYPI_ASSETS_CONTACT"):
        load_settings(**urls).require_contact()
    load_settings(contact="me@example.org", **urls).require_contact()


def test_what_is_loopback() -> None:
    assert [is_loopback(host) for host in (None, "::1", "127.0.0.1", "0.0.0.0", "localhost.example.org")] == [
        False,
        True,
        True,
        False,
        False,
    ]
