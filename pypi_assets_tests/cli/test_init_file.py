"""The written file has the answers, is read back as written, and is accessible only to its owner."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.cli.init import LOGIN_FILE, FirstSettings, check_setting, write_env_file, write_first_settings
from pypi_assets.errors import SettingsError
from pypi_assets.setting_sources import read_variables
from pypi_assets.settings import load_settings
from pypi_assets_tests.environment import clear_settings

CHOSEN = FirstSettings("https://index.example.org/o'/simple/", "requests zope.interface", "me@example.org")
WITH_LOGIN = replace(CHOSEN, index_url="https://me:p'w@index.example.org/+simple/", lister="pages")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    clear_settings(monkeypatch)
    monkeypatch.delenv("PYPI_ASSETS_ENV_FILE")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_settings_are_read_as_written(folder: Path) -> None:
    CHOSEN.check()
    write_env_file(folder / ".env", CHOSEN.text(), replaces=False)
    loaded = load_settings()
    assert loaded.index_url == CHOSEN.index_url
    assert loaded.projects == ("requests", "zope-interface")
    assert loaded.contact == CHOSEN.contact
    assert read_variables().warnings() == []


def test_credentials_are_written_to_a_separate_file(folder: Path) -> None:
    WITH_LOGIN.check()
    write_first_settings(folder / ".env", WITH_LOGIN, replaces=False)
    assert "p'w" not in (folder / ".env").read_text()
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == {".env": 0o600, LOGIN_FILE: 0o600}
    loaded = load_settings()
    assert (loaded.index_url, loaded.lister) == (WITH_LOGIN.index_url, "pages")
    assert read_variables().warnings() == []
    with pytest.raises(FileExistsError):
        write_first_settings(folder / ".env", WITH_LOGIN, replaces=False)
    write_first_settings(folder / ".env", CHOSEN, replaces=True)
    assert [path.name for path in folder.iterdir()] == [".env"]
    assert load_settings().index_url == CHOSEN.index_url


def test_commented_lines_are_valid_settings(folder: Path) -> None:
    text = CHOSEN.text().replace("\n#PYPI", "\nPYPI").replace("USER:PASSWORD@HOST", "me:pw@host")
    write_env_file(folder / ".env", text, replaces=False)
    load_settings()
    assert read_variables().warnings() == []
    assert len(read_variables().texts) == 8
    assert "lister" not in read_variables().texts


def test_shell_reads_the_same_values(folder: Path) -> None:
    write_env_file(folder / ".env", CHOSEN.text(), replaces=False)
    line = 'set -a; . ./.env; printf "%s|%s|%s" "$PYPI_ASSETS_INDEX_URL" "$PYPI_ASSETS_PROJECTS" "$PYPI_ASSETS_CONTACT"'
    shown = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
    assert shown == f"{CHOSEN.index_url}|{CHOSEN.projects}|{CHOSEN.contact}"


def test_existing_file_is_kept_unless_replaced(folder: Path) -> None:
    path = folder / ".env"
    path.write_text("mine")
    path.chmod(0o644)
    with pytest.raises(FileExistsError):
        write_env_file(path, "new", replaces=False)
    assert path.read_text() == "mine"
    write_env_file(path, "new", replaces=True)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("chosen", "variable"),
    [
        (FirstSettings(), "CONTACT"),
        (FirstSettings("https://index.example.org/simple/"), "CONTACT"),
        (FirstSettings("https://index.example.org/", "", "me@example.org", "xmlrpc"), "INDEX_URL"),
        (FirstSettings("http://127.0.0.1/", "", "", "both"), "LISTER"),
        (FirstSettings("", "no/such/file.txt", "me@example.org"), "PROJECTS"),
        (FirstSettings("", "-x-", "me@example.org"), "PROJECTS"),
        (FirstSettings("", "", "me"), "CONTACT"),
        (FirstSettings("", "", "me@example.org${HOME}"), "CONTACT"),
        (FirstSettings("", "", "me@example.org\nPYPI_ASSETS_PROXY=http://evil.example.org"), "CONTACT"),
    ],
)
def test_invalid_answer_names_its_variable(chosen: FirstSettings, variable: str) -> None:
    with pytest.raises(SettingsError, match=rf"PYPI_ASSETS_{variable}\b"):
        chosen.check()


def test_local_index_needs_no_contact() -> None:
    FirstSettings("http://127.0.0.1:8137/simple/").check()


def test_other_invalid_settings_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_MAX_MEMBERS", "none")
    check_setting("contact", "me@example.org")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=20))
def test_accepted_answers_are_read_back_unchanged(folder: Path, contact: str) -> None:
    chosen = FirstSettings("http://127.0.0.1/simple/", "", f"{contact}@example.org")
    try:
        chosen.check()
    except SettingsError:
        return
    write_env_file(folder / ".env", chosen.text(), replaces=True)
    found = dotenv_values(folder / ".env")
    assert found["PYPI_ASSETS_CONTACT"] == chosen.contact
    assert set(found) == {f"PYPI_ASSETS_{name}" for name in ("INDEX_URL", "LISTER", "PROJECTS", "CONTACT")}
    assert os.environ.get("PYPI_ASSETS_CONTACT") is None
