"""All formats are made of one answer, and what they lack is named."""

import pytest

from pypi_assets.export.formats import FORMATS, SUMMARIES, remarks
from pypi_assets.locks.pins import RemarkKind
from pypi_assets_tests.export.pinned import USUAL, answer, of_modules, release


def test_each_format_has_a_sentence() -> None:
    assert list(SUMMARIES) == list(FORMATS)
    assert all(summary.endswith(".") for summary in SUMMARIES.values())


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_answer_gives_the_same_text(name: str) -> None:
    reordered = answer(*reversed(USUAL.releases))
    text = FORMATS[name].render(USUAL)
    assert text == FORMATS[name].render(USUAL)
    assert sorted(text.splitlines()) == sorted(FORMATS[name].render(reordered).splitlines())
    assert text.startswith(f"# Made by `pypi-assets export {name} --lock uv.lock`.\n")


@pytest.mark.parametrize(("name", "count"), [("gazelle", 1), ("pants", 1), ("deptry", 0), ("uv-metadata", 0)])
def test_where_a_module_has_one_owner_alone_collisions_are_named(name: str, count: int) -> None:
    found = list(remarks(name, of_modules({"one": ["a"], "two": ["a"]})))
    assert [remark.kind for remark in found] == [RemarkKind.COLLISION] * count


def test_requirements_that_only_a_build_shows_are_named() -> None:
    [remark] = remarks("uv-metadata", answer(release("a", ["a"], filename="a-1.zip", requires=None)))
    assert (remark.kind, remark.project) == (RemarkKind.NO_REQUIREMENTS, "a")
