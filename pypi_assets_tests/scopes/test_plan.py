"""A scope plan has the fields that `scope create` and the file of indexes state, and an invalid field is reported."""

import tomllib
from pathlib import Path

import pytest

from pypi_assets.scopes.byte_sizes import is_limit, parse_limit, shown_size
from pypi_assets.scopes.plan import PlanError, ScopePlan, read_plan


def read(text: str, folder: Path = Path()) -> list[ScopePlan]:
    return [read_plan(name, fields, folder) for name, fields in tomllib.loads(text)["scopes"].items()]


def test_plan_has_the_stated_fields(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("rich[jupyter]>=13\n./here\n")
    (tmp_path / "two.txt").write_text("Six\n")
    (tmp_path / "tools.toml").write_text("[[rule]]\nmax_files = 1")
    tools, others = read(
        f"""
        [scopes.tools]
        projects = ["httpx", "requests[socks]"]
        roots = "one.txt"
        depth = 2
        rules = "tools.toml"
        nice = -5
        concurrency = 0
        tag = "fast"
        match_only = true
        [scopes.others]
        roots = ["{tmp_path.as_posix()}/two.txt", "one.txt"]
        depth = "all"
        """,
        tmp_path,
    )
    roots = {"httpx": frozenset[str](), "requests": frozenset({"socks"}), "rich": frozenset({"jupyter"})}
    stated = frozenset({"roots", "most_depth", "rules", "nice", "concurrency", "tag", "match_only"})
    assert tools == ScopePlan("tools", roots, 2, "[[rule]]\nmax_files = 1", -5, 0, "fast", True, stated, tools.skipped)
    assert ["./here" in sentence for sentence in tools.skipped] == [True]
    assert (dict(others.roots), others.most_depth) == ({"rich": frozenset({"jupyter"}), "six": frozenset()}, None)
    assert others.stated == {"roots", "most_depth"}


WRONG = [
    ("[scopes.'a b']\nprojects = ['x']", (), "'a b'"),
    ("[scopes.A]\nprojects = ['x']", (), "'A'"),
    ('[scopes."o\\u001b"]\nprojects = ["x"]', (), "'o\\x1b'"),
    ("[scopes.tools]", ("tools",), "projects"),
    ("[scopes.tools]\nprojects = []", ("tools",), "projects"),
    ("[scopes.tools]\nprojects = 'httpx'", ("tools", "projects"), "'httpx'"),
    ("[scopes.tools]\nprojects = [1]", ("tools", "projects"), "'[1]'"),
    ("[scopes.tools]\nroots = ['x', '']", ("tools", "roots"), "\"['x', '']\""),
    ("[scopes.tools]\nprojects = ['x']\ndept = 1", ("tools", "'dept'"), "depth"),
    ("[scopes.tools]\nprojects = ['x']\nzzz = 1", ("tools", "'zzz'"), "match_only"),
    ("[scopes.tools]\nprojects = ['x']\ndepth = -1", ("tools", "depth"), "'-1'"),
    ("[scopes.tools]\nprojects = ['x']\ndepth = true", ("tools", "depth"), "'True'"),
    ("[scopes.tools]\nprojects = ['x']\nnice = 10001", ("tools", "nice"), "'10001'"),
    ("[scopes.tools]\nprojects = ['x']\nconcurrency = 1.5", ("tools", "concurrency"), "'1.5'"),
    ("[scopes.tools]\nprojects = ['x']\ntag = ''", ("tools", "tag"), "''"),
    ("[scopes.tools]\nprojects = ['x']\ntag = 'a b'", ("tools", "tag"), "'a b'"),
    ("[scopes.tools]\nprojects = ['x']\nmatch_only = 1", ("tools", "match_only"), "'1'"),
    ("[scopes.tools]\nprojects = ['x']\nkeep_files = 'yes'", ("tools", "keep_files"), "'yes'"),
    ("[scopes.tools]\nprojects = ['x']\nmost = '5 apples'", ("tools", "most"), "'5 apples'"),
    ("[scopes.tools]\nprojects = ['x']\nmost = -1", ("tools", "most"), "'-1'"),
    ("[scopes.tools]\nprojects = ['x']\nrules = {a = 1}", ("tools", "rules"), "\"{'a': 1}\""),
]
"""Tables with what is wrong in them, its place, and a value that the message names."""


def test_plan_error_is_one_line_with_scope_and_key(subtests: pytest.Subtests) -> None:
    for text, place, named in WRONG:
        with subtests.test(text=text):
            with pytest.raises(PlanError) as caught:
                read(text)
            assert caught.value.place == place
            assert named in caught.value.problem
            assert len(str(caught.value).splitlines()) == 1


def test_plan_checks_names_tags_and_roots_in_every_constructor(subtests: pytest.Subtests, tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("# nothing yet\n")
    root = {"app": frozenset[str]()}
    for name in ("", "Mine", "-mine", "a b", "über", "a" * 61, "a/b", "a\n"):
        with subtests.test(name=name), pytest.raises(PlanError) as caught:
            ScopePlan(name, root)
        assert (caught.value.place, repr(name)[:20] in caught.value.problem) == ((), True)
    for tag in ("", "a b", "-a", "a-", "a" * 64, "a\n"):
        with subtests.test(tag=tag), pytest.raises(PlanError) as caught:
            ScopePlan("mine", root, tag=tag)
        assert caught.value.place == ("mine", "tag")
    with pytest.raises(PlanError) as caught:
        read_plan("mine", {"roots": "none.txt"}, tmp_path)
    assert caught.value.place == ("mine",)


def test_kept_files_are_read_with_their_budget() -> None:
    plan = read_plan("tools", {"projects": ["x"], "keep_files": True, "most": "1.5GiB"})
    assert (plan.keep_files, plan.most) == (True, 1_610_612_736)
    for value, size in (("50GB", 50 * 10**9), ("500 mb", 500 * 10**6), (1234, 1234), ("7", 7), ("none", None)):
        assert parse_limit(value) == size
    for value in ("", "GB", "5PB", "-1", "1e9", True, 0, "0.1B", None, "9999999999TB"):
        assert not is_limit(value), value
    assert [shown_size(size) for size in (0, 999, 1_000, 2_450_000, 10**16)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "2.5 MB",
        "10000.0 TB",
    ]
