"""A quick run takes quick tests, tests of changed packages and a share of the others. Durations are added up."""

import importlib
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from pypi_assets_tests import importing
from pypi_assets_tests.counted_steps import growth, steps_of
from pypi_assets_tests.durations import Durations
from pypi_assets_tests.tiers import SHARE, TOP, Draw, changed_packages, choose, draw, group_of, order, package_of

GROUPS = [f"crawl/test_{number}.py::test_it" for number in range(600)]


def git(root: Path, *arguments: str) -> str:
    names = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", "-C", root, *names, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(root: Path, path: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{file.exists()}")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", path)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Create a clone whose main branch equals its origin."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "--quiet")
    commit(origin, "README.md")
    commit(origin, "pypi_assets/dumps/full_dump.py")
    git(tmp_path, "clone", "--quiet", "origin", "clone")
    return tmp_path / "clone"


def test_package_of_path_is_its_folder() -> None:
    for path, package in {
        "crawl/test_kill.py::test_x": "crawl",
        "catalog/work/test_queue.py": "catalog",
        "test_growth.py::test_x": TOP,
        "settings.py": TOP,
    }.items():
        assert package_of(path) == package, path


def test_changed_packages_ignore_docs_and_helpers() -> None:
    paths = ["pypi_assets/crawl/x.py", "pypi_assets_tests/journal/test_kafka.py", "pypi_assets/settings.py"]
    ignored = [
        "README.md",
        "docs/design.md",
        "benchmarks/growth.py",
        "deploy/compose.yaml",
        "pypi_assets_tests/served_index.py",
    ]
    assert changed_packages(paths + ignored) == {"crawl", "journal", TOP}


def test_draw_takes_one_in_share_and_differs_by_commit() -> None:
    draws = [Draw(f"{number:040}", "", frozenset()) for number in range(30)]
    taken = [{group for group in GROUPS if one.takes(group)} for one in draws]
    for groups in taken:
        assert 0.5 < len(groups) * SHARE / len(GROUPS) < 1.5
    assert len({frozenset(groups) for groups in taken}) == len(draws)
    counts = Counter(group for groups in taken for group in groups)
    assert len(counts) > 0.9 * len(GROUPS)  # 30 commits together take nearly all groups


def test_draw_takes_all_tests_of_a_changed_package() -> None:
    drawn = Draw("0" * 40, "origin/main", frozenset({"crawl"}))
    assert all(drawn.takes(group) for group in GROUPS)
    assert not all(drawn.takes(group.replace("crawl", "dumps")) for group in GROUPS)
    assert "crawl" in str(drawn)
    assert "origin/main" in str(drawn)


def test_draw_on_main_compares_with_the_commit_before(checkout: Path) -> None:
    drawn = draw(checkout)
    assert (drawn.commit, drawn.base, drawn.changed) == (git(checkout, "rev-parse", "HEAD"), "HEAD~1", {"dumps"})


def test_draw_on_a_branch_compares_with_main_and_sees_the_working_tree(checkout: Path) -> None:
    commit(checkout, "pypi_assets/crawl/full_crawl.py")
    commit(checkout, "pypi_assets/index/client.py")
    (checkout / "pypi_assets" / "dumps" / "full_dump.py").write_text("changed")
    (checkout / "pypi_assets" / "journal").mkdir()
    (checkout / "pypi_assets" / "journal" / "new.py").touch()
    drawn = draw(checkout)
    assert (drawn.base, drawn.changed) == ("origin/main", {"crawl", "index", "dumps", "journal"})


def test_draw_without_history_changes_nothing(tmp_path: Path) -> None:
    assert draw(tmp_path) == Draw("", "", frozenset())


@pytest.mark.nightly
@pytest.mark.parametrize("value", [1, 2])
def test_nightly_test_is_chosen_with_all_parameters(request: pytest.FixtureRequest, value: int) -> None:
    items = request.session.items
    assert group_of(request.node) == "test_tiers.py::test_nightly_test_is_chosen_with_all_parameters"
    nothing = Draw("", "", frozenset({"no such package"}))
    selected, deselected, taken = choose(items, nothing)
    assert len(selected) + len(deselected) == len(items)
    assert {group_of(item) for item in selected} - {None} == taken
    assert not taken & {group_of(item) for item in deselected}


def test_order_keeps_all_tests(request: pytest.FixtureRequest) -> None:
    items = list(request.session.items)
    for workers in (1, 3):
        ordered = list(items)
        order(ordered, workers)
        assert sorted(map(id, ordered)) == sorted(map(id, items))


def test_duration_tables_add_up_the_files_of_all_workers(tmp_path: Path) -> None:
    rows = {
        "gw0": [
            ("pypi_assets_tests/crawl/test_a.py::test_x[1]", 1.5, 0.5),
            ("pypi_assets_tests/test_b.py::test_y", 2, 1),
        ],
        "gw1": [("pypi_assets_tests/crawl/test_a.py::test_x[2]", 0.5, 0.25)],
    }
    for worker, lines in rows.items():
        (tmp_path / f"{worker}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    durations = Durations.read(tmp_path)
    crawl = durations.groups["crawl/test_a.py::test_x"]
    assert (crawl.tests, crawl.wall_s, crawl.processor_s) == (2, 2.0, 0.75)
    lines = durations.tables().splitlines()
    assert lines[2:5] == ["| `(top)` | 1 | 1.0 | 2.0 |", "| `crawl` | 2 | 0.8 | 2.0 |", "| together | 3 | 1.8 | 4.0 |"]
    assert "| `crawl/test_a.py::test_x` | 2 | 0.8 | 2.0 |" in lines


def test_folder_without_durations_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        Durations.read(tmp_path)


def test_modules_are_imported_from_the_share_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = ["a", "b", "c", "d"]
    (tmp_path / "tests").mkdir()
    for name in names:
        (tmp_path / "tests" / f"test_{name}.py").touch()
    (tmp_path / "tests" / "helpers.py").touch()
    imported: list[str] = []

    def note(module: str) -> None:
        imported.append(module.removeprefix("tests.test_"))
        if imported[-1] == "b":
            raise SyntaxError(module)

    monkeypatch.setattr(importing, "ROOT", tmp_path)
    monkeypatch.setattr(importlib, "import_module", note)
    for share, expected in [(0, "abcd"), (0.25, "bcda"), (0.5, "cdab"), (0.9, "dabc")]:
        imported.clear()
        importing.import_tests([tmp_path / "tests", tmp_path / "tests" / "test_a.py"], share)
        assert "".join(imported) == expected


def add_up(count: int) -> int:
    return sum(number for number in range(count))


def add_up_pairs(count: int) -> int:
    return sum(number for number in range(count) for _ in range(count))


def test_steps_of_same_work_are_equal():
    assert steps_of(lambda: add_up(100)) == steps_of(lambda: add_up(100)) > 100


def test_growth_is_linear_for_linear_work_and_higher_for_quadratic():
    assert 3.5 < growth(add_up, 100) < 4.5
    assert growth(add_up_pairs, 100) > 12
