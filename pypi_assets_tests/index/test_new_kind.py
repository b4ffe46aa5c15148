"""`pypi-assets index new` writes a package that works at once: install it, run its tests, and follow an index by it."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import pytest

from pypi_assets.components import catalog_from, crawler_from, index_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.conformance import World, WorldFile, serving
from pypi_assets.index.kind_names import BUILT_IN, added_kinds
from pypi_assets.index.new_kind import NewKindError, write_package
from pypi_assets.settings import load_settings
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.index.shelf_package import MODULES
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import live, shared_readers

ROOT = Path(__file__).parents[2]
COMMAND = "from pypi_assets.cli import main; main()"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    source, target = tmp_path / "source", tmp_path / "site"
    write_package("shelf", source)
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", target, source], check=True)
    monkeypatch.syspath_prepend(str(target))
    monkeypatch.syspath_prepend(str(source / "tests"))
    added_kinds.cache_clear()
    yield import_module("shelf_server")
    added_kinds.cache_clear()
    for name in MODULES:
        sys.modules.pop(name, None)


def put(world: World, path: Path, name: str, version: str, yanked: str | None = None) -> None:
    world.put(name, WorldFile(path.name, version, path.read_bytes(), yanked))


@pytest.mark.nightly
def test_installed_example_follows_a_shelf(installed: ModuleType, tmp_path: Path) -> None:
    world = World()
    with serving(lambda request: installed.answer(world, request), lambda: 0.0) as site:
        put(world, make_wheel(tmp_path, "demo", "1.0"), "demo", "1.0")
        put(world, make_sdist(tmp_path, "other", "1.0"), "other", "1.0")
        settings = load_settings(
            lister="shelf", index_url=f"{site.url}/shelf/", home=tmp_path / "home", poll_shortest_s=0, poll_confirm_s=0
        )
        catalog = catalog_from(settings)
        with index_from(settings, catalog) as opened:
            crawler = crawler_from(settings, opened, catalog, storage_from(settings), shared_readers())
            assert crawl_full(crawler).reads.data == 2
            put(world, make_wheel(tmp_path, "demo", "2.0"), "demo", "2.0", yanked="broken")
            [ranged] = crawl_incremental(crawler)
            assert (ranged.lister, ranged.reads.data) == ("shelf", 1)
            files = [file for project in world.projects.values() for file in project.values()]
            assert live(catalog) == {(file.filename, file.yanked is not None) for file in files}
        catalog.close()


@pytest.mark.nightly
def test_new_package_passes_its_tests_and_serves_every_stage(tmp_path: Path) -> None:
    """Install the package into an environment of its own, run its tests, and crawl, dump, build and look up by it."""
    folder, environment, served = tmp_path / "shelf-index", tmp_path / "venv", tmp_path / "served"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    [site_packages] = (environment / "lib").glob("python3*/site-packages")
    own = {sysconfig.get_paths()["purelib"], *(path for path in sys.path if path.endswith("site-packages"))}
    (site_packages / "ours.pth").write_text("\n".join(sorted(own)))
    python = environment / "bin" / "python"
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYPI_ASSETS_LISTER": "shelf"}

    def run(*arguments: object, **more: str) -> str:
        done = subprocess.run(
            [python, *map(str, arguments)],
            env={**variables, **more},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "pyproject.toml" in run("-c", COMMAND, "index", "new", "shelf", "--into", folder)
    options = ["--quiet", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    run("-m", "pip", "install", *options, "-e", folder)
    assert " passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder)
    served.mkdir()
    make_wheel(served, "demo", "1.0", files={"demo_module/__init__.py": ""})
    program = [python, folder / "tests" / "shelf_server.py", served, "--port", "0"]
    with subprocess.Popen(program, env=variables, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            index = {"PYPI_ASSETS_INDEX_URL": url, "PYPI_ASSETS_HOME": str(tmp_path / "home")}
            for words in (["crawl", "full"], ["dump", "full", "--shards", "1"], ["leveldb", "update"]):
                run("-c", COMMAND, *words, **index)
            answer = json.loads(run("-c", COMMAND, "lookup", "module", "demo_module", "--json", **index))
            assert "demo" in json.dumps(answer)
        finally:
            server.terminate()


def test_package_has_an_entry_point_and_modules_of_its_name(tmp_path: Path) -> None:
    written = write_package("rack-2", tmp_path / "mine")
    assert sorted(path.relative_to(tmp_path / "mine").as_posix() for path in written) == [
        "README.md",
        "pyproject.toml",
        "rack_2_index.py",
        "tests/rack_2_server.py",
        "tests/test_rack_2_index.py",
    ]
    assert 'rack-2 = "rack_2_index:KIND"' in (tmp_path / "mine" / "pyproject.toml").read_text()
    for path in written:
        text = path.read_text()
        assert "shelf" not in text.lower()
        if path.suffix == ".py":
            compile(text, path, "exec")
    assert list(tmp_path.iterdir()) == [tmp_path / "mine"]


def test_written_code_meets_our_rules(tmp_path: Path) -> None:
    write_package("shelf", tmp_path / "mine")
    for words in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--config", ROOT / "pyproject.toml", "--no-cache"]
        ignored = ["--ignore", "T201,INP001,ARG002,D,ANN401,S,I001"] if words == ["check"] else []
        done = subprocess.run([*ruff, *ignored, tmp_path / "mine"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    write_package("shelf", folder)  # an empty folder will do
    (folder / "README.md").write_text("my own")
    with pytest.raises(NewKindError, match=naming(str(folder))):
        write_package("shelf", folder)
    assert (folder / "README.md").read_text() == "my own"
    file = tmp_path / "file"
    file.write_text("my own")
    with pytest.raises(NewKindError, match=naming(str(file))):
        write_package("shelf", file)
    assert file.read_text() == "my own"


def test_invalid_names_are_rejected_and_nothing_is_written(tmp_path: Path) -> None:
    installed = [point.name for point in entry_points(group="pypi_assets.indexes")]
    wrong = [
        "",
        "Shelf",
        "9lives",
        "a b",
        "a--b",
        "-a",
        "a-",
        "a_b",
        "a.b",
        "../a",
        "a/b",
        "é",
        "a" * 41,
        "a\n",
        "class",
    ]
    for name in [*wrong, *BUILT_IN, *installed]:
        with pytest.raises(NewKindError, match=naming(repr(name)[:50])):
            write_package(name, tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []
