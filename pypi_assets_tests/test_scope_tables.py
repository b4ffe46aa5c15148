"""A scope in the file of indexes has what `scope create` takes, and what is wrong with it is one sentence."""

import tomllib
from pathlib import Path

import pytest

from pypi_assets.errors import SettingsError
from pypi_assets.scope_tables import ScopeTable, read_scope_tables


def read(text: str) -> tuple[ScopeTable, ...]:
    def fail(key: str, sentence: str) -> SettingsError:
        return SettingsError(f"{key}: {sentence}")

    return read_scope_tables("one", tomllib.loads(text)["scopes"], Path("/srv/files"), fail)


def test_a_table_has_what_scope_create_takes() -> None:
    found = read(
        """
        [scopes.tools]
        projects = ["httpx", "requests[socks]"]
        roots = "requirements.txt"
        depth = 2
        rules = "rules/tools.toml"
        nice = -5
        concurrency = 0
        tag = "fast"
        match_only = true
        [scopes.others]
        roots = ["/etc/one.txt", "two.txt"]
        depth = "all"
        """
    )
    folder = Path("/srv/files")
    assert found == (
        ScopeTable(
            "tools",
            ("httpx", "requests[socks]"),
            (folder / "requirements.txt",),
            2,
            folder / "rules/tools.toml",
            -5,
            0,
            "fast",
            True,
        ),
        ScopeTable("others", (), (Path("/etc/one.txt"), folder / "two.txt"), "all"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scopes = 'x'", "scopes: each scope is a table, such as [one.scopes.tools]"),
        ("scopes = ['tools']", "scopes: each scope is a table, such as [one.scopes.tools]"),
        ("scopes.tools = ['httpx']", "scopes: each scope is a table"),
        ("[scopes.'a b']\nprojects = ['x']", "scopes: 'a b' is no name for a scope: it takes"),
        ("[scopes.A]\nprojects = ['x']", "scopes: 'A' is no name for a scope"),
        ('[scopes."o\\u001b"]\nprojects = ["x"]', "scopes: 'o\\x1b' is no name for a scope"),
        ("[scopes.tools]", "scopes.tools: names no root"),
        ("[scopes.tools]\nprojects = []", "scopes.tools: names no root"),
        ("[scopes.tools]\nprojects = 'httpx'", "scopes.tools.projects: 'httpx' is not accepted; it accepts a list"),
        ("[scopes.tools]\nprojects = [1]", "scopes.tools.projects: '[1]' is not accepted"),
        ("[scopes.tools]\nroots = ['x', '']", "scopes.tools.roots: \"['x', '']\" is not accepted"),
        (
            "[scopes.tools]\nprojects = ['x']\ndept = 1",
            "scopes.tools.'dept': is no key of a scope; did you mean",
        ),
        ("[scopes.tools]\nprojects = ['x']\nzzz = 1", "scopes.tools.'zzz': is no key of a scope; there are"),
        (
            "[scopes.tools]\nprojects = ['x']\ndepth = -1",
            "scopes.tools.depth: '-1' is not accepted; it accepts",
        ),
        ("[scopes.tools]\nprojects = ['x']\ndepth = true", "scopes.tools.depth: 'True' is not accepted"),
        ("[scopes.tools]\nprojects = ['x']\nnice = 10001", "scopes.tools.nice: '10001' is not accepted"),
        ("[scopes.tools]\nprojects = ['x']\nconcurrency = 1.5", "scopes.tools.concurrency: '1.5' is not accepted"),
        ("[scopes.tools]\nprojects = ['x']\ntag = ''", "scopes.tools.tag: '' is not accepted; it accepts a text"),
        ("[scopes.tools]\nprojects = ['x']\nmatch_only = 1", "scopes.tools.match_only: '1' is not accepted"),
        ("[scopes.tools]\nprojects = ['x']\nrules = {a = 1}", "scopes.tools.rules: \"{'a': 1}\" is not accepted"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_scope_and_key(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(text)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 1
