"""uv gets the metadata of what it would build."""

import tomllib
from dataclasses import replace

from pypi_assets.export.formats import built_sdist, render_uv_metadata
from pypi_assets.questions.locks import PinnedRelease
from pypi_assets_tests.export.pinned import USUAL, answer, release


def test_only_what_has_no_wheel_is_there() -> None:
    assert tomllib.loads(render_uv_metadata(USUAL)) == {
        "dependency-metadata": [{"name": "old", "version": "1", "requires-dist": ["PyYAML>5; python_version<'4'"]}]
    }


def sdist(**fields: object) -> PinnedRelease:
    one = release("A.b", ["a"], filename="a-1.tar.gz")
    file = replace(one.chosen[0], **fields)  # type: ignore[arg-type]
    return replace(one, files=(file,), chosen=(file,))


def test_requirements_that_are_not_known_are_left_to_uv() -> None:
    assert tomllib.loads(render_uv_metadata(answer(sdist(requires_dist=None)))) == {}
    assert built_sdist(sdist()) is not None


def test_python_and_extras_are_there_where_they_are_known() -> None:
    [table] = tomllib.loads(render_uv_metadata(answer(sdist(requires_python=">=3.8", provides_extra=("z", "a")))))[
        "dependency-metadata"
    ]
    assert table == {
        "name": "a-b",
        "version": "1",
        "requires-dist": [],
        "requires-python": ">=3.8",
        "provides-extra": ["a", "z"],
    }
