"""Variables are read from the environment and from a file, and misspelled ones are reported."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.errors import SettingsError
from pypi_assets.setting_sources import (
    ENV_PREFIX,
    Locations,
    describe_unknown,
    load_locations,
    read_variables,
    setting_names,
)
from pypi_assets.settings import Settings, load_settings
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.examples import examples


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the current folder, with an environment without settings."""
    clear_settings(monkeypatch)
    monkeypatch.delenv("PYPI_ASSETS_ENV_FILE")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_setting_names_match_the_settings() -> None:
    assert set(Settings.model_fields) == setting_names()


def test_setting_names_without_source_text_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypi_assets.setting_sources.find_spec", lambda _: None)
    assert setting_names.__wrapped__() == set(Settings.model_fields)


def test_variables_without_file_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("pypi_assets_home", "some/folder")
    monkeypatch.setenv("PYPI_ASSETS_CONTACT", "")
    found = read_variables()
    assert (found.texts, found.file, found.in_file, found.warnings()) == (
        {"home": "some/folder"},
        None,
        frozenset(),
        [],
    )


def test_environment_overrides_the_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / ".env").write_text(
        "# comment\nPYPI_ASSETS_HOME=in-file\nexport PYPI_ASSETS_CONTACT='me@example.org'\nOTHER=1\n"
        "PYPI_ASSETS_LISTER=\n"
    )
    monkeypatch.setenv("PYPI_ASSETS_HOME", "in-environment")
    found = read_variables()
    assert found.texts == {"home": "in-environment", "contact": "me@example.org"}
    assert (found.file, found.in_file) == (Path(".env"), {"contact"})
    assert load_settings().contact == "me@example.org"
    assert load_settings().home == Path("in-environment")


def test_empty_variable_does_not_override_the_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / ".env").write_text("PYPI_ASSETS_HOME=in-file\n")
    monkeypatch.setenv("PYPI_ASSETS_HOME", "")
    assert load_settings().home == Path("in-file")


def test_value_can_refer_to_another_variable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("SECRET_OF_TEST", "pw")
    (folder / ".env").write_text("PYPI_ASSETS_DATABASE_URL=postgresql://me:${SECRET_OF_TEST}@host/catalog\n")
    assert load_settings().database_url == "postgresql://me:pw@host/catalog"


def test_env_file_variable_selects_another_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / ".env").write_text("PYPI_ASSETS_HOME=here\n")
    (folder / "other.env").write_text("PYPI_ASSETS_HOME=there\n")
    monkeypatch.setenv("PYPI_ASSETS_ENV_FILE", "other.env")
    assert load_settings().home == Path("there")
    assert load_settings().env_file == Path("other.env")
    monkeypatch.setenv("PYPI_ASSETS_ENV_FILE", os.devnull)
    assert load_settings().home == Path(".pypi-assets")


def test_selected_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_ENV_FILE", "missing.env")
    with pytest.raises(SettingsError, match=r"PYPI_ASSETS_ENV_FILE.*missing\.env"):
        read_variables()


def test_binary_file_is_rejected(folder: Path) -> None:
    (folder / ".env").write_bytes(b"PYPI_ASSETS_HOME=\xff\n")
    with pytest.raises(SettingsError, match=r"\.env"):
        load_settings()


def test_folder_named_env_is_ignored(folder: Path) -> None:
    (folder / ".env").mkdir()
    assert read_variables().file is None


def test_invalid_value_error_names_its_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / ".env").write_text("PYPI_ASSETS_CONTACT=me\n")
    with pytest.raises(SettingsError, match=r"PYPI_ASSETS_CONTACT.*\.env"):
        load_settings()
    monkeypatch.setenv("PYPI_ASSETS_CONTACT", "you")
    with pytest.raises(SettingsError, match="PYPI_ASSETS_CONTACT") as caught:
        load_settings()
    assert ".env" not in str(caught.value)


def test_lookup_reads_the_same_file(folder: Path) -> None:
    (folder / ".env").write_text("PYPI_ASSETS_HOME=~/home\nPYPI_ASSETS_STORAGE_URL=s3://bucket/prefix/\n")
    assert load_locations().resolved_home == load_settings().resolved_home
    assert load_locations().resolved_storage_url == load_settings().resolved_storage_url == "s3://bucket/prefix"
    (folder / ".env").write_text("PYPI_ASSETS_STORAGE_URL=s3://\n")
    messages = []
    for load in (load_locations, load_settings):
        with pytest.raises(SettingsError) as caught:
            load()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert re.search(r"PYPI_ASSETS_STORAGE_URL.*\.env", messages[0])


def test_misspelled_variable_is_reported_with_the_closest_name(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / ".env").write_text("PYPI_ASSETS_PROJECT=flask\n")
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_ULR", "file:///x")
    monkeypatch.setenv("PYPI_ASSETS_XYZZY", "1")
    assert [re.findall(r"PYPI_ASSETS_\w+", warning) for warning in read_variables().warnings()] == [
        ["PYPI_ASSETS_PROJECT", "PYPI_ASSETS_PROJECTS"],
        ["PYPI_ASSETS_STORAGE_ULR", "PYPI_ASSETS_STORAGE_URL"],
        ["PYPI_ASSETS_XYZZY"],
    ]
    load_settings()


@given(st.sampled_from(sorted(setting_names() - {"home"})), st.data())
def test_swapped_letters_are_matched_to_a_setting(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 2))
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    if swapped not in setting_names():
        [_, nearest] = re.findall(rf"{ENV_PREFIX}(\w+)", describe_unknown(f"{ENV_PREFIX}{swapped.upper()}"))
        assert nearest.lower() in setting_names()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(
    st.dictionaries(st.sampled_from(["HOME", "CONTACT", "LISTER"]), st.sampled_from(["", "auto", "a@b", "simple"])),
    st.dictionaries(st.sampled_from(["HOME", "CONTACT", "LISTER"]), st.sampled_from(["", "auto", "c@d", "xmlrpc"])),
)
def test_settings_have_the_values_of_the_variables(
    folder: Path, in_file: dict[str, str], in_environment: dict[str, str]
) -> None:
    (folder / ".env").write_text("".join(f"PYPI_ASSETS_{name}={text}\n" for name, text in in_file.items()))
    with pytest.MonkeyPatch.context() as patch:
        for name, text in in_environment.items():
            patch.setenv(f"PYPI_ASSETS_{name}", text)
        texts = read_variables().texts
        for name in ("HOME", "CONTACT", "LISTER"):
            assert texts.get(name.lower()) == (in_environment.get(name) or in_file.get(name) or None)
        try:
            loaded = load_settings()
        except SettingsError:
            return
        assert {name: str(getattr(loaded, name)) for name in texts} == texts


def test_neither_pydantic_nor_dotenv_is_imported_without_a_file() -> None:
    program = (
        "import sys; from pypi_assets.setting_sources import read_variables; read_variables();"
        "assert not {'pydantic', 'dotenv', 'dagster', 'sqlalchemy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_file_variable_names_a_file_with_the_value(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "url").write_text("postgresql://me:secret@db/catalog\n")
    (folder / "nothing").write_text("\n")
    (folder / ".env").write_text("PYPI_ASSETS_DATABASE_URL=sqlite:///other\nPYPI_ASSETS_NOTIFY_URLS_FILE=url\n")
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL_FILE", str(folder / "url"))
    monkeypatch.setenv("PYPI_ASSETS_PROXY_FILE", "nothing")
    monkeypatch.setenv("PYPI_ASSETS_CA_FILE", "missing.pem")  # the setting `ca_file`, not the file of a setting `ca`
    found = read_variables()
    secret = "postgresql://me:secret@db/catalog"
    assert found.texts == {"database_url": secret, "notify_urls": secret, "ca_file": "missing.pem"}
    assert (found.in_file, found.warnings()) == (frozenset({"notify_urls"}), [])


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"DATABASE_URL_FILE": "missing"}, "PYPI_ASSETS_DATABASE_URL_FILE.* missing"),
        ({"DATABASE_URL_FILE": "odd"}, "PYPI_ASSETS_DATABASE_URL_FILE.* odd"),
        ({"PROXY": "http://p", "PROXY_FILE": "odd"}, r"PYPI_ASSETS_PROXY_FILE.*PYPI_ASSETS_PROXY\b"),
    ],
)
def test_file_without_a_value_is_rejected(
    variables: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    (folder / "odd").write_bytes(b"\xff")
    for name, value in variables.items():
        monkeypatch.setenv(f"PYPI_ASSETS_{name}", value)
    with pytest.raises(SettingsError, match=named):
        read_variables()


VALUES = [
    {},
    {"HOME": ""},
    {"HOME": "relative/folder"},
    {"HOME": "/a/../b"},
    {"HOME": "~/pypi"},
    {"HOME": "/with space/and-ü"},
    {"STORAGE_URL": "file:///data/"},
    {"STORAGE_URL": "file://localhost/data"},
    {"STORAGE_URL": "s3://bucket/prefix/"},
    {"STORAGE_URL": "s3://bucket"},
    {"STORAGE_URL": "memory:///"},
    {"HOME": "/home/me", "STORAGE_URL": "az://container/x"},
    {"HOME": "/home/me", "MAX_CONNECTIONS": "3"},
]
WRONG_URLS = ["ftp://host/path", "file://relative", "s3:///prefix", "gs://", "no url", "bucket/prefix"]


def resolved(locations: Locations) -> tuple[Path, Path, str]:
    return locations.resolved_home, locations.leveldbs_dir, locations.resolved_storage_url


def test_locations_match_the_settings(subtests: pytest.Subtests) -> None:
    for lower in [False, True]:
        for values in VALUES:
            with subtests.test(lower=lower, values=values), pytest.MonkeyPatch.context() as monkeypatch:
                for name, value in values.items():
                    variable = f"{ENV_PREFIX}{name}"
                    monkeypatch.setenv(variable.lower() if lower else variable, value)
                settings = load_settings()
                assert resolved(load_locations()) == resolved(settings.locations)
                assert resolved(settings.locations) == (
                    settings.resolved_home,
                    settings.leveldbs_dir,
                    settings.resolved_storage_url,
                )


@pytest.mark.parametrize("url", WRONG_URLS)
def test_invalid_location_has_the_same_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{ENV_PREFIX}STORAGE_URL", url)
    with pytest.raises(SettingsError) as of_all:
        load_settings()
    with pytest.raises(SettingsError) as of_locations:
        load_locations()
    assert str(of_locations.value) == str(of_all.value)
    assert str(of_locations.value).startswith("PYPI_ASSETS_STORAGE_URL: ")


def test_locations_ignore_other_settings() -> None:
    environment = {"PYPI_ASSETS_MAX_CONNECTIONS": "none", "PYPI_ASSETS_HOME": "/data"}
    assert load_locations(environment) == Locations(Path("/data"))


def test_locations_are_read_from_the_environment_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_locations() == Locations()
    monkeypatch.setitem(os.environ, f"{ENV_PREFIX}HOME", "/data")
    assert load_locations() == Locations(Path("/data"))
