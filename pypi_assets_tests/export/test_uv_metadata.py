"""uv gets the metadata of distributions that it would have to build, resolves with them, and builds nothing."""

import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

from uv import find_uv_bin

from pypi_assets.export.formats import built_sdist, render_uv_metadata
from pypi_assets.questions.locks import PinnedRelease
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.export.pinned import USUAL, answer, release


def test_only_releases_without_a_wheel_are_listed() -> None:
    assert tomllib.loads(render_uv_metadata(USUAL)) == {
        "dependency-metadata": [{"name": "old", "version": "1", "requires-dist": ["PyYAML>5; python_version<'4'"]}]
    }


def sdist(**fields: object) -> PinnedRelease:
    unbuilt = release("A.b", ["a"], filename="a-1.tar.gz")
    file = replace(unbuilt.chosen[0], **fields)  # type: ignore[arg-type]
    return replace(unbuilt, files=(file,), chosen=(file,))


def test_unknown_requirements_are_left_to_uv() -> None:
    assert tomllib.loads(render_uv_metadata(answer(sdist(requires_dist=None)))) == {}
    assert built_sdist(sdist()) is not None


def test_known_requires_python_and_extras_are_listed() -> None:
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


FAILS = "raise SystemExit('it was built')"


def compiled(folder: Path, required: str) -> "subprocess.CompletedProcess[str]":
    (folder / "requirements.in").write_text(required)
    command = [find_uv_bin(), "pip", "compile", "--no-index", "--offline", "--find-links", "files", "--no-header"]
    options = ["--no-annotate", "--cache-dir", "cache", "--config-file", "uv.toml", "--python", sys.executable]
    return subprocess.run(
        [*command, *options, "requirements.in"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_uv_resolves_without_building(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    make_sdist(files, "old", "1", files={"setup.py": FAILS, "old.py": ""})
    for name in ("demo", "fast"):
        make_wheel(files, name, "2")
    (tmp_path / "uv.toml").write_text("")
    assert "Failed to resolve requirements from `setup.py` build" in compiled(tmp_path, "old").stderr
    unbuilt = release(
        "old", ["old"], filename="old-1.tar.gz", requires=("demo>1 ; python_version < '4'", "fast; extra == 'x'")
    )
    sdist = replace(unbuilt.chosen[0], provides_extra=("x",), requires_python=">=3.8")
    (tmp_path / "uv.toml").write_text(render_uv_metadata(answer(replace(unbuilt, files=(sdist,), chosen=(sdist,)))))
    for required, expected in (("old", "demo==2\nold==1\n"), ("old[x]", "demo==2\nfast==2\nold==1\n")):
        done = compiled(tmp_path, required)
        assert done.returncode == 0, done.stderr
        assert (done.stdout, "warning" in done.stderr) == (expected, False)
