"""Several indexes are configured in one file, and an error in the file is reported in one clear sentence."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pypi_assets.errors import SettingsError
from pypi_assets.indexes import read_indexes
from pypi_assets.setting_sources import (
    load_locations,
    read_all_indexes,
    read_variables,
    selected_index,
    setting_names,
)
from pypi_assets.settings import load_settings
from pypi_assets_tests.environment import clear_settings

PUBLIC = """
[public]
url = "https://public.example/simple/"
contact = "me@example.org"
default = true
"""
COMPANY = """
[company-internal]
url = "https://company.example/root/simple/"
lister = "simple"
private = true
also_public = ["Some.Tool"]

[company-internal.scopes.tools]
projects = ["httpx"]
"""
Write = Callable[[str], Path]


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Write:
    """Return a function that writes the file of indexes and names it in an environment without other settings."""
    clear_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> Path:
        path = tmp_path / "indexes.toml"
        path.write_text(text)
        monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(path))
        return path

    return write


def test_index_without_a_file_is_the_only_one(write: Write) -> None:
    assert (read_variables().index, read_all_indexes(), load_settings().index) == (None, None, None)
    with (
        selected_index("company"),
        pytest.raises(SettingsError, match=r"company.*PYPI_ASSETS_INDEXES"),
    ):
        load_settings()


def test_default_index_uses_the_home_and_others_a_folder_below_it(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", "postgresql://me@db.example/public")
    monkeypatch.setenv("PYPI_ASSETS_PROJECTS", "requests")
    monkeypatch.setenv("PYPI_ASSETS_CONTACT", "us@example.org")
    write(PUBLIC + COMPANY)
    public = load_settings()
    assert (public.index, public.index_url, public.contact) == (
        "public",
        "https://public.example/simple/",
        "me@example.org",
    )
    assert (public.resolved_home, public.projects) == (tmp_path / "home", ("requests",))
    assert public.resolved_database_url == "postgresql+psycopg://me@db.example/public"
    with selected_index("company-internal"):
        company, locations = load_settings(), load_locations()
    home = tmp_path / "home" / "indexes" / "company-internal"
    assert (company.index, company.lister, company.contact) == ("company-internal", "simple", "us@example.org")
    assert (company.resolved_home, company.projects) == (home, ())
    assert company.resolved_database_url == f"sqlite:///{home / 'catalog.sqlite'}"
    assert company.resolved_storage_url == (home / "storage").as_uri() == locations.resolved_storage_url
    assert company.leveldbs_dir == home / "leveldbs" == locations.leveldbs_dir


def test_index_is_selected_by_variable_or_block(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(PUBLIC + COMPANY)
    monkeypatch.setenv("PYPI_ASSETS_INDEX", "company-internal")
    assert load_settings().index == "company-internal"
    with selected_index("public"):
        assert load_settings().index == "public"
    assert load_settings().index == "company-internal"


def test_table_has_scopes_and_flags_besides_settings(write: Write) -> None:
    indexes = read_indexes(write(PUBLIC + COMPANY), setting_names())
    assert [table.name for table in indexes.tables] == ["public", "company-internal"]
    company = indexes.named("company-internal")
    assert company is not None
    assert (indexes.default.name, indexes.default.is_private, company.is_private) == ("public", False, True)
    assert (company.scopes, company.also_public) == ({"tools": {"projects": ["httpx"]}}, ("some-tool",))


@pytest.mark.parametrize(
    ("lines", "name", "value"),
    [
        ('projects = ["Requests", "attrs"]', "projects", ("attrs", "requests")),
        ('allowed_file_hosts = ["files.example.org"]', "allowed_file_hosts", ("files.example.org",)),
        ("requests_per_second = 2.5", "requests_per_second", 2.5),
        ("sensors_on = true", "sensors_on", True),
        ('database = "postgresql://me@db/x"', "resolved_database_url", "postgresql+psycopg://me@db/x"),
        ('storage = "s3://bucket/x"', "resolved_storage_url", "s3://bucket/x"),
        ('credentials = { username = "me@x" }', "index_url", "https://me%40x@one.example/simple/"),
        ('credentials = "keyring"', "index_url", "https://one.example/simple/"),
        (
            'credentials = { username = "me", password = { env = "HIDDEN" } }',
            "index_url",
            "https://me:p%40ss%2F@one.example/simple/",
        ),
    ],
)
def test_keys_become_settings(
    lines: str, name: str, value: object, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIDDEN", "p@ss/")
    write(f'[one]\nurl = "https://one.example/simple/"\n{lines}\n')
    assert getattr(load_settings(), name) == value


def test_secret_is_read_from_the_env_file(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYPI_ASSETS_ENV_FILE")
    (tmp_path / ".env").write_text("COMPANY_DATABASE=postgresql://me:secret@db/x\n")
    write('[one]\nurl = "https://one.example/simple/"\ndatabase = { env = "COMPANY_DATABASE" }\n')
    assert load_settings().resolved_database_url == "postgresql+psycopg://me:secret@db/x"


ONE = '[one]\nurl = "https://one.example/simple/"\n'
OTHER = '[other]\nurl = "https://other.example/simple/"\n'


WRONG = [
    ("", ""),
    ("[one", "TOML"),
    (ONE + ONE, "one"),
    ("one = 1", "'one'"),
    (ONE.replace("one", "One", 1), "'One'"),
    (ONE.replace("one", "all", 1), "'all'"),
    (ONE.replace("one", "a__b", 1), "'a__b'"),
    (ONE.replace("one", "o" * 41, 1), "ooo 40"),
    (ONE.replace("one", "a-b", 1) + ONE.replace("one", "a_b", 1), "a-b a_b"),
    ("[one]\n", "one url"),
    (ONE + "ulr = 1", "one 'ulr' url"),
    (ONE + "index_url = 1", "one 'index_url' url"),
    (ONE + "home = 'x'", "one 'home'"),
    (ONE + "password = 'hunter2'", "one 'password'"),
    (ONE + "notify_urls = 'x://y'", "one 'notify_urls'"),
    ("[one]\nurl = 'https://me:hunter2@x/simple/'", "one url"),
    (ONE + "database = 'postgresql://x/y?password=hunter2'", "one database"),
    (ONE + "credentials = {username = 'me', password = 'hunter2'}", "one credentials.password"),
    (ONE + "credentials = 'hunter2'", "one credentials"),
    (ONE + "credentials = {token = 'hunter2'}", "one credentials.'token'"),
    (ONE + "credentials = {password = {env = 'X'}}", "one credentials.username"),
    (ONE + "contact = 1979-05-27", "one contact"),
    (ONE + "contact = ''", "one contact"),
    (ONE + "contact = {file = 'x'}", "one contact"),
    (ONE + "contact = {env = 'NOT_SET'}", "one contact NOT_SET"),
    (ONE + "private = 'yes'", "one private true false"),
    (ONE + "scopes = 'x'", "one scopes [one.scopes.tools]"),
    (ONE + "scopes = ['tools']", "one scopes [one.scopes.tools]"),
    (ONE + "scopes.tools = ['httpx']", "one scopes [one.scopes.tools]"),
    (ONE + "scopes.'a b'.projects = ['x']", "one scopes 'a b'"),
    (ONE + "[one.scopes.a]\n[one.scopes.a]", "TOML"),
    (ONE + "scopes.a.projects = [1]", "one scopes.a.projects '[1]'"),
    (ONE + OTHER, "one other `default = true`"),
    (ONE + "default = true\n" + OTHER + "default = true\n", "one other default"),
    (ONE + "lister = 'telepathy'", "one lister 'telepathy'"),
    (ONE + "storage = 'ftp://x'", "one storage file:// s3://"),
    ("[one]\nurl = 'http://[::1/simple/'\ncredentials = {username = 'me'}", "one url"),
    ("[[one]]\nurl = 'https://x/simple/'", "'one'"),
    ("one.url = 'https://x/simple/'\none.url = 'https://y/simple/'", "TOML"),
    ('["o\\u001be"]\nurl = "https://x/simple/"', "'o\\x1be'"),
    (ONE + "requests_per_second = inf", "one requests_per_second"),
    ("[one]\nurl = 'https://x/'\nlister = 'xmlrpc'", "one url /simple/"),
]
"""Invalid files, and the values that the error message must contain, separated by spaces."""


def test_invalid_file_is_reported_in_one_line_with_index_and_key(write: Write, subtests: pytest.Subtests) -> None:
    for text, named in WRONG:
        with subtests.test(text=text):
            path = write(text)
            with pytest.raises(SettingsError) as caught:
                load_settings()
            message = str(caught.value)
            assert message.startswith(f"{path}: ")
            assert [value for value in named.split(" ") if value not in message.removeprefix(str(path))] == []
            assert "hunter2" not in message
            assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("database", "", "sqlite:///{home}/catalog.sqlite"),
        ("database", "postgresql://a@db/x", "postgresql+psycopg://b@db:5432/x"),
        ("storage", "", "file://{home}/storage/"),
        ("storage", "s3://b/x", "s3://b/x/"),
        ("storage", "file://{home}/indexes/other/storage", ""),
    ],
)
def test_indexes_with_a_common_database_or_storage_are_rejected(
    key: str, one: str, other: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(home))
    lines = [f"{key} = {json.dumps(url.format(home=home))}\n" if url else "" for url in (one, other)]
    path = write(ONE + "default = true\n" + lines[0] + OTHER + lines[1])
    for name in (None, "other"):
        with selected_index(name), pytest.raises(SettingsError) as caught:
            load_settings()
        message = str(caught.value)
        assert message.startswith(f"{path}: ")
        assert [value for value in ("other", key, "one") if value not in message.removeprefix(str(path))] == []


def test_secret_of_another_index_may_be_unset(write: Write) -> None:
    write(ONE + "default = true\n" + OTHER + 'database = { env = "NOT_SET" }\n')
    assert load_settings().index == "one"
    with selected_index("other"), pytest.raises(SettingsError, match=r"other.*database.*NOT_SET"):
        load_settings()


def test_unknown_index_error_names_the_known_indexes(write: Write) -> None:
    path = write(PUBLIC + COMPANY)
    with selected_index("compony"), pytest.raises(SettingsError) as caught:
        load_settings()
    named = ("compony", str(path), "public", "company-internal")
    assert [value for value in named if value not in str(caught.value)] == []


def test_byte_order_mark_is_accepted(write: Write) -> None:
    write("\ufeff" + ONE)
    assert load_settings().index == "one"


def test_unreadable_file_is_named(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(tmp_path / "missing.toml"))
    with pytest.raises(SettingsError, match=r"PYPI_ASSETS_INDEXES.*missing\.toml"):
        load_settings()
    (tmp_path / "binary.toml").write_bytes(b"\xff")
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(tmp_path / "binary.toml"))
    with pytest.raises(SettingsError, match=r"binary\.toml"):
        load_settings()
