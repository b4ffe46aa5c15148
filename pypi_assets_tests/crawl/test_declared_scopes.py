"""Scopes declared in the file of indexes are created when they are worked on, and stay as the file declares them."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.scopes.stored_scopes import all_scopes, change_scope, require_scope, rulesets_of
from pypi_assets.catalog.tables import scope_marks
from pypi_assets.components import declared_scopes
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.scope_crawl import keep_in_line, start_scope
from pypi_assets.errors import SettingsError
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.settings import load_settings
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.scoped_index import ScopedFollower, scoped

FILE = """
[public]
url = "https://public.example/simple/"
contact = "me@example.org"
default = true

[company]
url = "https://company.example/simple/"
"""
TOOLS = """
[public.scopes.tools]
projects = ["app[Extra]"]
roots = "requirements.txt"
"""


@pytest.fixture
def follower(catalog: Catalog) -> ScopedFollower:
    follower = scoped(catalog)
    follower.index.upload("app", "1.0", "lib")
    follower.index.upload("lib", "1.0", "base")
    follower.index.upload("base", "1.0")
    follower.index.upload("tool", "1.0")
    return follower


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(tmp_path / "indexes.toml"))
    (tmp_path / "requirements.txt").write_text("tool>=1\n./here\n")
    return tmp_path


def kept(follower: ScopedFollower, folder: Path, text: str) -> list[str]:
    """Apply the declared scopes of a file with this text, and return the notices for operators."""
    (folder / "indexes.toml").write_text(FILE + text)
    notes: list[str] = []
    crawler: Crawler = replace(follower.crawler, notify=notes.append)
    keep_in_line(crawler, declared_scopes(load_settings()))
    return notes


def settings_in(note: str) -> set[str]:
    """Return the names of the scope settings that the notice mentions. The notice must mention the scope itself."""
    words = set(re.findall(r"\w+", note))
    assert "tools" in words
    return words & {"roots", "most_depth", "nice", "concurrency", "rules", "tag", "match_only"}


@pytest.mark.nightly
def test_declared_scope_is_created_once_and_followed(follower: ScopedFollower, folder: Path) -> None:
    created, left_out = kept(follower, folder, TOOLS)
    assert "tools" in created
    assert "./here" in left_out
    assert dict(follower.scope("tools").roots) == {"app": frozenset({"extra"}), "tool": frozenset()}
    follower.run("tools")
    assert follower.depths("tools") == {"app": 0, "tool": 0, "lib": 1, "base": 2}
    before = follower.scope("tools")
    assert kept(follower, folder, TOOLS) == []
    assert follower.scope("tools") == before
    with follower.catalog.read() as connection:
        assert connection.scalar(select(func.count()).select_from(scope_marks)) == 0, "nothing is searched again"


@pytest.mark.nightly
def test_changed_declaration_applies_from_the_next_run(follower: ScopedFollower, folder: Path) -> None:
    kept(follower, folder, TOOLS + "depth = 0\n")
    follower.run("tools")
    assert follower.depths("tools") == {"app": 0, "tool": 0}
    (folder / "rules.toml").write_text("[[rule]]\nmax_files = 1")
    text = TOOLS + 'depth = 1\nrules = "rules.toml"\nnice = 5\ntag = "fast"\n'
    [note] = kept(follower, folder, text)
    assert settings_in(note) == {"most_depth", "nice", "rules", "tag"}
    assert follower.scope("tools").completed_at is None, "work is left to do"
    follower.run("tools")
    assert follower.depths("tools") == {"app": 0, "tool": 0, "lib": 1}
    with follower.catalog.read() as connection:
        assert rulesets_of(connection, follower.scope("tools").id)[-1].ruleset.max_files("app") == 1
    assert kept(follower, folder, text) == []
    follower.index.upload("other", "1.0")
    changed = kept(follower, folder, text.replace("app[Extra]", "other"))
    assert settings_in(changed[0]) == {"roots"}
    follower.run("tools")
    assert follower.depths("tools") == {"app": 0, "tool": 0, "lib": 1, "other": 0}, "members stay"


def test_settings_omitted_from_the_file_are_changed_by_commands(follower: ScopedFollower, folder: Path) -> None:
    kept(follower, folder, TOOLS + "nice = 5\n")
    follower.set_rules("[[rule]]\nmax_files = 1", "tools")
    scope = follower.scope("tools")
    follower.catalog.transact(partial(change_scope, scope=scope, values={"nice": 7, "concurrency": 2, "tag": "slow"}))
    [note] = kept(follower, folder, TOOLS + "nice = 5\n")
    assert settings_in(note) == {"nice"}
    with follower.catalog.read() as connection:
        scope = require_scope(connection, "tools")
        assert (scope.nice, scope.concurrency, scope.tag) == (5, 2, "slow")
        assert rulesets_of(connection, scope.id)[-1].version == 2


def test_undeclared_scopes_are_unchanged(follower: ScopedFollower, folder: Path) -> None:
    start_scope(follower.crawler, ScopePlan("mine", {"base": frozenset()}))
    kept(follower, folder, TOOLS)
    kept(follower, folder, "[company.scopes.theirs]\nprojects = ['app']\n")
    with follower.catalog.read() as connection:
        assert {scope.name for scope in all_scopes(connection)} == {"mine", "tools"}, "no scope is removed"


def test_concurrent_processes_create_a_declared_scope_once(
    follower: ScopedFollower, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(crawler: Crawler, plan: ScopePlan) -> None:
        start_scope(crawler, plan)
        start_scope(crawler, plan)

    monkeypatch.setattr("pypi_assets.crawl.scope_crawl.start_scope", late)
    assert kept(follower, folder, TOOLS) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[public.scopes.a]\nprojects = ['x==1']", "'x==1'"),
        ("[public.scopes.a]\nroots = 'missing.txt'", "missing.txt"),
        ("[public.scopes.a]\nroots = 'empty.txt'", "--roots"),
        ("[public.scopes.a]\nprojects = ['x']\nrules = 'requirements.txt'", "TOML"),
        ("[public.scopes.a]\nprojects = ['x']\nrules = 'refusing.toml'", "rule 1"),
    ],
)
def test_error_in_a_referenced_file_is_one_line(text: str, named: str, folder: Path) -> None:
    (folder / "empty.txt").write_text("# nothing yet")
    (folder / "refusing.toml").write_text("[[rule]]\naccept = false")
    (folder / "indexes.toml").write_text(FILE + text)
    with pytest.raises(SettingsError) as caught:
        declared_scopes(load_settings())
    message = str(caught.value)
    assert [
        value for value in (str(folder / "indexes.toml"), "public", "scopes.a", named) if value not in message
    ] == []
    assert len(str(caught.value).splitlines()) == 1


def test_no_scopes_are_declared_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_settings(monkeypatch)
    assert declared_scopes(load_settings()) == []
