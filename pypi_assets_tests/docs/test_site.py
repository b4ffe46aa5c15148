"""The site of docs/ is built without broken links, loads nothing from other hosts, and has current pictures."""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
"""The attributes by which elements load resources."""
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch", "manifest"}


class Loads(HTMLParser):
    """A parser that collects the URLs that a page loads, and the IDs and links of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.ids.update(named[name] for name in ("id", "name") if name in named)
        if tag in LOADED and LOADED[tag] in named:
            self.loaded.append(named[LOADED[tag]])
        if tag == "link" and LOADED_LINKS & set(named.get("rel", "").split()):
            self.loaded.append(named.get("href", ""))
        if tag == "a" and "href" in named:
            self.links.append(named["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="`make docs` installs it")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages(site: Path) -> Iterator[tuple[Path, Loads]]:
    for path in sorted(site.rglob("*.html")):
        yield path, Loads(path.read_text(encoding="utf-8"))


def test_site_has_every_page(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / page.with_suffix(".html").name).is_file()


def test_site_loads_nothing_from_another_host(site: Path) -> None:
    for path, page in pages(site):
        assert [address for address in page.loaded if re.match(r"(?:\w+:)?//", address)] == [], path
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]*", path.read_text()) == [], path


def test_links_lead_to_existing_files_and_anchors(site: Path) -> None:
    known = dict(pages(site))
    for path, page in known.items():
        if path.name == "404.html":
            continue
        for link in (*page.links, *page.loaded):
            if re.match(r"\w+:|/", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name}: {link}"
            assert not anchor or anchor in known[target].ids, f"{path.name}: {link}"


def test_site_has_a_search_and_dark_colours(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    assert any("serial" in entry["text"] for entry in index["docs"])
    home = (site / "index.html").read_text()
    assert "Switch to dark mode" in home
    assert 'data-md-color-scheme="slate"' in home


def test_navigation_has_every_page_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    nav = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    listed = list(names(nav))
    assert len(listed) == len(set(listed))
    assert set(listed) == {path.name for path in (ROOT / "docs").glob("*.md")}


def names(item: object) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    elif isinstance(item, dict):
        for value in item.values():
            yield from names(value)
    elif isinstance(item, list):
        for value in item:
            yield from names(value)


def test_pictures_match_the_script(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "demo" / "concept_pictures.py"))
    drawn = script["draw_all"](tmp_path)
    folder = ROOT / "docs" / "pictures"
    assert {path.name for path in drawn} == {path.name for path in folder.iterdir()}
    for path in drawn:
        assert path.read_bytes() == (folder / path.name).read_bytes(), "run python demo/concept_pictures.py"
