"""Build the package of the tutorial in docs/indexes.md, install it, and follow an index with it."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.components import catalog_from, crawler_from, index_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.kind_names import added_kinds
from pypi_assets.settings import load_settings
from pypi_assets_tests.served_index import live, shared_readers
from pypi_assets_tests.served_pages import Answer, ServedPages, served_pages

PAGE = (Path(__file__).parents[2] / "docs" / "indexes.md").read_text(encoding="utf-8")
TUTORIAL = PAGE.partition("\n## Add a kind of index\n")[2].partition("\n## ")[0]


def code(language: str) -> str:
    """Return the tutorial's only block of code in a language."""
    [block] = re.findall(rf"```{language}\n(.*?)```", TUTORIAL, re.DOTALL)
    return str(block)


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    source, target = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    (source / "pyproject.toml").write_text(code("toml"))
    (source / "shelf_index.py").write_text(code("python"))
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", target, source], check=True)
    monkeypatch.syspath_prepend(str(target))
    added_kinds.cache_clear()
    yield
    added_kinds.cache_clear()


def on_a_shelf(index: ServedPages) -> None:
    """Make the index answer as the tutorial describes."""

    def answers(path: str) -> Answer | None:
        if path == "/shelf/":
            return 200, {"Content-Type": "application/json"}, json.dumps({"boxes": sorted(index.projects)}).encode()
        parts = path.strip("/").split("/")
        files = index.projects.get(parts[1]) if len(parts) > 1 else None
        if files is None or parts[0] != "shelf":
            return None
        if len(parts) == 3:
            return 200, {"Content-Type": "application/octet-stream"}, files[parts[2]].content
        items = [
            {"file": name, "sum": hashlib.sha256(file.content).hexdigest(), "pulled": file.yanked}
            for name, file in files.items()
        ]
        return 200, {"Content-Type": "application/json"}, json.dumps({"items": items}).encode()

    index.answers = answers


def test_the_tutorial_is_short() -> None:
    assert len(code("python").splitlines()) < 60


@pytest.mark.nightly
@pytest.mark.usefixtures("_installed")
def test_the_tutorial_follows_a_shelf(tmp_path: Path) -> None:
    with served_pages(tmp_path / "served") as index:
        on_a_shelf(index)
        index.wheel("demo", "1.0")
        index.sdist("other", "1.0")
        url = index.url.replace("/simple/", "/shelf/")
        settings = load_settings(
            lister="shelf", index_url=url, home=tmp_path / "home", poll_shortest_s=0, poll_confirm_s=0
        )
        catalog = catalog_from(settings)
        with index_from(settings, catalog) as opened:
            crawler = crawler_from(settings, opened, catalog, storage_from(settings), shared_readers())
            assert crawl_full(crawler).reads.data == 2
            assert live(catalog) == index.shown()
            name = index.wheel("demo", "2.0")
            index.projects["demo"][name].yanked = "broken"
            [ranged] = crawl_incremental(crawler)
            assert (ranged.lister, ranged.reads.data) == ("shelf", 1)
            assert live(catalog) == index.shown()
        catalog.close()
