"""The values that each setting accepts, and the error message for other values."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import get_args
from urllib.parse import unquote, urlsplit

import pytest
from pydantic.fields import FieldInfo
from pypi_simple import PYPI_SIMPLE_ENDPOINT
from sqlalchemy.engine import make_url

from pypi_assets.settings import ENV_PREFIX, Settings, SettingsError, is_loopback, load_settings
from pypi_assets_tests.environment import clear_settings

INDEXES = Path(__file__).parent / "data" / "indexes.toml"
WRONG = {
    "env_file": ["no/such/file.env", "."],
    "visit_token": ["short", "sixteen characters with spaces"],
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
    "allowed_file_hosts": ["files.example.org", '["https://files.example.org/"]', '{"a": 1}', "[1]"],
    "proxy": ["proxy.example.org:3128", "socks5://me:secret@proxy.example.org", "http://me:secret@/", "http://p/x"],
    "ca_file": ["no/such/file.pem"],
    "client_cert": ["no/such/file.pem"],
    "kafka_bootstrap_servers": ["one:9092, two:9092", ","],
    "kafka_properties": ["no/such/file.properties"],
    "kafka_topic_prefix": ["a topic", "a/b"],
    "containment": ["none", "true"],
    "dump_format": ["gz", "none"],
    "dump_shards": ["0", "2", "100", "8192", "many"],
    "visit_policy": ["oldest", "age,lag"],
    "service_public_url": ["packages", "ftp://host/", "https://user@host/", "https://host/?a=1", "https://host/$(x)"],
    "owners": ["somebody", "me@localhost", "team:", "team:data,me@example"],
    "notify_urls": ["me@example.org", "mailto://me:secret@example.org secret"],
    "tables_catalog_url": ["catalog", "ftp://host/", "https://host/a b"],
    "tables_namespace": ["a.b", "Pypi", "a/b"],
    "solvability_since": ["0", "1772323200", "2026-02-30", "yesterday"],
    "webhooks": ["http://example.org/", '{"url": "http://example.org/"}', '["http://example.org/"]'],
}
RIGHT = {
    "env_file": (os.devnull, Path(os.devnull)),
    "indexes": (str(INDEXES), INDEXES),
    "index": ("company", "company"),
    "visit_token": ("0123456789abcdef", "0123456789abcdef"),
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
    "allowed_file_hosts": ('["files.example.org", "[::1]:8080"]', ("files.example.org", "[::1]:8080")),
    "proxy": ("http://me:secret@proxy.example.org:3128", "http://me:secret@proxy.example.org:3128"),
    "ca_file": (__file__, Path(__file__)),
    "client_cert": (__file__, Path(__file__)),
    "kafka_bootstrap_servers": ("one:9092,two:9092", "one:9092,two:9092"),
    "kafka_topic_prefix": ("pypi.changes", "pypi.changes"),
    "kafka_properties": (__file__, Path(__file__)),
    "containment": ("required", "required"),
    "dump_format": ("zstd", "zstd"),
    "dump_shards": ("1024", 1024),
    "visit_policy": ("Activity", "activity"),
    "service_public_url": ("https://packages.example.org/pypi", "https://packages.example.org/pypi/"),
    "notify_urls": (
        "json://127.0.0.1/  mailto://me:secret@example.org",
        ("json://127.0.0.1/", "mailto://me:secret@example.org"),
    ),
    "owners": ("me@example.org, team:data", ("me@example.org", "team:data")),
    "tables_catalog_url": ("http://127.0.0.1:8181/catalog", "http://127.0.0.1:8181/catalog"),
    "tables_namespace": ("pypi_2", "pypi_2"),
    "solvability_since": ("2026-03-01", date(2026, 3, 1)),
    "webhooks": ('[{"url": "http://example.org/"}]', '[{"url": "http://example.org/"}]'),
}


def number_type(field: FieldInfo) -> type[bool] | type[int] | type[float] | None:
    """Return the type of a setting that is a number or a flag, and None for other settings."""
    kinds = {field.annotation, *get_args(field.annotation)}
    return next((kind for kind in (bool, int, float) if kind in kinds), None)


NUMBERS = {name: (kind, field) for name, field in Settings.model_fields.items() if (kind := number_type(field))}
"""The settings whose values follow from their declared type and limits."""


def limits(field: FieldInfo) -> dict[str, float]:
    """Return the declared limits of a number, by their names `ge`, `gt` and `le`."""
    return {name: getattr(part, name) for part in field.metadata for name in ("ge", "gt", "le") if hasattr(part, name)}


def wrong_values() -> Iterator[tuple[str, str]]:
    """Yield each setting with each text that it rejects."""
    yield from ((name, text) for name, texts in WRONG.items() for text in texts)
    for name, (kind, field) in NUMBERS.items():
        yield from ((name, text) for text in ("many", *{bool: ["2"], int: ["1.5"], float: ["nan", "inf"]}[kind]))
        beyond = {"ge": -1, "gt": 0, "le": 1}
        yield from ((name, str(limit + beyond[which])) for which, limit in limits(field).items())


def right_values() -> Iterator[tuple[str, str, object]]:
    """Yield each setting with a text and its value. Numbers have their smallest and largest value."""
    yield from ((name, text, value) for name, (text, value) in RIGHT.items())
    for name, (kind, field) in NUMBERS.items():
        if kind is bool:
            yield from ((name, text, value) for text, value in (("true", True), ("0", False)))
            continue
        within = {"ge": 0.0, "gt": 0.25, "le": 0.0}
        for which, limit in limits(field).items():
            value = kind(limit + within[which])
            yield name, str(value), value


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)


def refusal(monkeypatch: pytest.MonkeyPatch, field: str, value: str) -> str:
    monkeypatch.setenv(f"{ENV_PREFIX}{field.upper()}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    return str(caught.value)


def test_every_setting_has_values_in_this_test() -> None:
    assert RIGHT.keys() == Settings.model_fields.keys() - NUMBERS.keys()
    assert WRONG.keys() == RIGHT.keys() - {"home"}  # any text is a valid path


def test_every_number_has_a_least_value() -> None:
    declared = {
        name: limits(field).keys() & {"ge", "gt"} for name, (kind, field) in NUMBERS.items() if kind is not bool
    }
    assert [name for name, lowest in declared.items() if len(lowest) != 1] == []


def test_descriptions_of_numbers_name_the_declared_limits() -> None:
    described = 0
    for name, (_, field) in NUMBERS.items():
        for least, most in re.findall(r", (?:above )?([0-9.]+) to ([0-9.]+)", str(field.description)):
            described += 1
            assert sorted(limits(field).values()) == [float(least), float(most)], name
    assert described > 10


def test_invalid_value_error_names_variable_and_description(subtests: pytest.Subtests) -> None:
    for field, value in wrong_values():
        with subtests.test(field=field, value=value), pytest.MonkeyPatch.context() as monkeypatch:
            message = refusal(monkeypatch, field, value)
            assert re.findall(r"PYPI_ASSETS_\w+", message)[0] == f"PYPI_ASSETS_{field.upper()}"
            assert str(Settings.model_fields[field].description) in message
            assert "secret" not in message
            assert len(message.splitlines()) == 1


def test_every_variable_is_read(subtests: pytest.Subtests) -> None:
    for field, text, value in right_values():
        with subtests.test(field=field, text=text), pytest.MonkeyPatch.context() as monkeypatch:
            if field == "index":
                monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(INDEXES))
            monkeypatch.setenv(f"{ENV_PREFIX}{field.upper()}", text)
            assert getattr(load_settings(), field) == value


def test_all_invalid_values_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_MAX_MEMBERS", "none")
    lines = refusal(monkeypatch, "contact", "me").splitlines()
    named = [re.findall(r"PYPI_ASSETS_\w+", line)[0] for line in lines]
    assert named == ["PYPI_ASSETS_CONTACT", "PYPI_ASSETS_MAX_MEMBERS"]


def test_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.setenv(f"{ENV_PREFIX}{field.upper()}", "")
    assert load_settings() == Settings()


def test_defaults_are_pypi_and_a_local_folder(tmp_path: Path) -> None:
    settings = load_settings()
    home = tmp_path / ".pypi-assets"
    assert settings.index_url == PYPI_SIMPLE_ENDPOINT
    assert settings.resolved_home == home
    assert settings.resolved_database_url == f"sqlite:///{home}/catalog.sqlite"
    assert settings.resolved_storage_url == f"file://{home}/storage"
    assert settings.projects == ()


def test_pypi_simple_is_imported_only_without_an_index_url() -> None:
    """The import takes 0.2 s, which would delay every command."""
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


def test_overrides_precede_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_default_changelog_url_is_next_to_the_simple_api(index_url: str, changelog_url: str) -> None:
    assert load_settings(index_url=index_url).resolved_changelog_url == changelog_url


def test_file_hosts_are_trusted_on_first_use_unless_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().allowed_file_hosts == "auto"
    for text, value in (("AUTO", "auto"), ("[]", ()), ('["a.example.org"]', ("a.example.org",))):
        monkeypatch.setenv("PYPI_ASSETS_ALLOWED_FILE_HOSTS", text)
        assert load_settings().allowed_file_hosts == value


def test_changelog_url_can_be_set() -> None:
    settings = load_settings(changelog_url="https://changelog.example.org/RPC2")
    assert settings.resolved_changelog_url == "https://changelog.example.org/RPC2"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql_is_used_through_psycopg_3(scheme: str) -> None:
    settings = load_settings(database_url=f"{scheme}://me:pw@db.example.org:5433/catalog?sslmode=require")
    assert settings.resolved_database_url == "postgresql+psycopg://me:pw@db.example.org:5433/catalog?sslmode=require"


def test_home_with_special_characters_leads_to_its_files(tmp_path: Path) -> None:
    home = tmp_path / "a b?c#d%20"
    settings = load_settings(home=home)
    assert make_url(settings.resolved_database_url).database == str(home / "catalog.sqlite")
    assert unquote(urlsplit(settings.resolved_storage_url).path) == str(home / "storage")


def test_projects_are_read_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "projects"
    file.write_text("# what we follow\nRequests\nzope.interface  # for others\n\nattrs, PyYAML\n")
    for value in (str(file), "projects"):
        monkeypatch.setenv("PYPI_ASSETS_PROJECTS", value)
        assert load_settings().projects == ("attrs", "pyyaml", "requests", "zope-interface")


def test_long_list_of_projects_is_not_read_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"project-{number}" for number in range(500)]
    monkeypatch.setenv("PYPI_ASSETS_PROJECTS", ",".join(names))
    assert load_settings().projects == tuple(sorted(names))


def test_binary_file_of_projects_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "projects.txt").write_bytes(b"\xff\xfe\x00")
    assert "PYPI_ASSETS_PROJECTS" in refusal(monkeypatch, "projects", "projects.txt")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "[::1]", "localhost", "dev.localhost"])
def test_index_on_loopback_needs_no_contact(host: str) -> None:
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
def test_other_index_without_contact_is_rejected(urls: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="PYPI_ASSETS_CONTACT"):
        load_settings(**urls).require_contact()
    load_settings(contact="me@example.org", **urls).require_contact()


def test_is_loopback() -> None:
    assert [is_loopback(host) for host in (None, "::1", "127.0.0.1", "0.0.0.0", "localhost.example.org")] == [
        False,
        True,
        True,
        False,
        False,
    ]
