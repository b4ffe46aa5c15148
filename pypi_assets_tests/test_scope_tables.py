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


WRONG = [
    ("scopes = 'x'", "scopes", "[one.scopes.tools]"),
    ("scopes = ['tools']", "scopes", "[one.scopes.tools]"),
    ("scopes.tools = ['httpx']", "scopes", "[one.scopes.tools]"),
    ("[scopes.'a b']\nprojects = ['x']", "scopes", "'a b'"),
    ("[scopes.A]\nprojects = ['x']", "scopes", "'A'"),
    ('[scopes."o\\u001b"]\nprojects = ["x"]', "scopes", "'o\\x1b'"),
    ("[scopes.tools]", "scopes.tools", "projects"),
    ("[scopes.tools]\nprojects = []", "scopes.tools", "projects"),
    ("[scopes.tools]\nprojects = 'httpx'", "scopes.tools.projects", "'httpx'"),
    ("[scopes.tools]\nprojects = [1]", "scopes.tools.projects", "'[1]'"),
    ("[scopes.tools]\nroots = ['x', '']", "scopes.tools.roots", "\"['x', '']\""),
    ("[scopes.tools]\nprojects = ['x']\ndept = 1", "scopes.tools.'dept'", "depth"),
    ("[scopes.tools]\nprojects = ['x']\nzzz = 1", "scopes.tools.'zzz'", "match_only"),
    ("[scopes.tools]\nprojects = ['x']\ndepth = -1", "scopes.tools.depth", "'-1'"),
    ("[scopes.tools]\nprojects = ['x']\ndepth = true", "scopes.tools.depth", "'True'"),
    ("[scopes.tools]\nprojects = ['x']\nnice = 10001", "scopes.tools.nice", "'10001'"),
    ("[scopes.tools]\nprojects = ['x']\nconcurrency = 1.5", "scopes.tools.concurrency", "'1.5'"),
    ("[scopes.tools]\nprojects = ['x']\ntag = ''", "scopes.tools.tag", "''"),
    ("[scopes.tools]\nprojects = ['x']\nmatch_only = 1", "scopes.tools.match_only", "'1'"),
    ("[scopes.tools]\nprojects = ['x']\nrules = {a = 1}", "scopes.tools.rules", "\"{'a': 1}\""),
]
"""Tables with what is wrong in them, the key that the message begins with, and a value that it names."""


def test_what_is_wrong_is_one_line_with_scope_and_key(subtests: pytest.Subtests) -> None:
    for text, key, named in WRONG:
        with subtests.test(text=text):
            with pytest.raises(SettingsError) as caught:
                read(text)
            message = str(caught.value)
            assert message.startswith(f"{key}: ")
            assert named in message
            assert len(message.splitlines()) == 1
