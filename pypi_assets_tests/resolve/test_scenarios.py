"""Choices of real pip and uv in one small case per kind, modelled on their own test suites."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.resolve.questions import ResolutionQuestion, Semantics, parse_wanted
from pypi_assets.resolve.releases import past_index
from pypi_assets.resolve.resolving import UnsolvableError, resolve
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.installers import resolve_by_pip, resolve_by_uv
from pypi_assets_tests.resolve.graph_index import Place
from pypi_assets_tests.served_index import ServedIndex, served_index
from pypi_assets_tests.service.forked_pip import ForkedPip, forked_pip

SCENARIOS = {
    "local versions": """
        a 1.2.3, a 1.2.3+foo: a==1.2.3 | a | a!=1.2.3+foo | a==1.2.3+bar
        a 1.2.3+foo: a==1.2.3 | a>1.2.3 | a<=1.2.3 | a>=1.2.3 | a===1.2.3+foo | a==1.2.*
        a 1.2.3+foo, a 1.2.2: a<1.2.3 | a!=1.2.3 | a~=1.2.2
        a 1.2.3+foo, a 1.2.3.post1, a 1.2.2: a>1.2.3
        a 1.2.3, a 1.2.3+foo, b 1.0 needs a==1.2.3+foo: a==1.2.3, b
        a 1.2.3, a 1.2.3+foo, a 1.2.3+bar, b 2.0 needs a==1.2.3+bar, b 1.0 needs a==1.2.3+foo: a==1.2.3+foo, b
        a 1.2.3+foo, a 1.2.3+bar.2, a 1.2.3+bar.10: a
        a 1.2.3+foo, b 1 needs a<=1.2.3: b""",
    "pre-releases": """
        a 1.0a1: a
        a 0.1.0, a 1.0.0a1: a | a>0.1.0 | a>=0.1.0a1 | a==1.0.0a1
        a 0.1.0, a 1.0.0a1, b 1 needs a>0.1: b
        a 0.1.0, a 1.0.0a1, b 1 needs a>=1.0.0a1: b | a, b
        a 0.1.0, a 0.2.0a1, a 0.2.0a2: a<0.2.0 | a<0.2.0rc1 | a<0.2.0a2 | a>=0.1.0a0,<0.2.0 | a>=0.1.0a0,<=0.2.0
        a 0.2.0a1: a<0.2.0 | a==0.2.*
        a 0.1.0, a 0.2.0a1, a 0.2.0b1: a!=0.2.0b1
        a 1.0a1, a 1.0b1, a 1.1a1: a~=1.0a1
        a 1.0.dev1, a 0.9: a | a<1.0
        a 1.0.dev1, a 1.0a1, a 1.0a1.post1, a 1.0a1.dev2: a
        a 1.0.post1.dev1, a 1.0: a>1.0
        a 1.0 yanked, a 2.0b1: a
        a 1.0, a 2.0b1 yanked: a>=2.0b1
        a 1.0 python >=3.99, a 2.0b1: a
        a 1.0 tag py3-none-win32, a 2.0b1: a
        a 1.0b1, b 2 needs a, b 1: b
        a 1.0, a 1.1b1, b 2 needs a>1.0, b 1: b""",
    "yanked": """
        a 1.0 yanked: a | a==1.0 | a==1.0.* | a===1.0 | a>=1.0,<=1.0
        a 1.0 yanked, a 1.1 yanked, a 0.9: a>=1.0 | a==1.1 | a
        a 1.0 yanked, b 1 needs a==1.0: b
        a 1.0+foo yanked, a 0.9: a==1.0
        a 2.0 yanked, a 1.0, b 1 needs a==2.0: a, b""",
    "Requires-Python": "\n".join(
        f"a 2.0 python {text}, a 1.0: a"
        for text in (
            *(">=3.99", "<3.12", "!=3.12.*", "~=3.12", "==3.12.*", ">3.12", ">=3.12;!=3.12.1", "<=3.12", ">=3"),
            *("<4", "==3.12", "===3.12.1", ">=3.12.99", "~=3.12.0", "<3.12.1", ">=3.12a1", "==3.*", ">=3.8;<3.13"),
        )
    ),
    "backtracking over Requires-Python": """
        a 2.0 python >=3.99: a
        a 2.0 python >=3.99, b 2 needs a, b 1: b""",
    "tags": """
        a 1.0 tag py3-none-win32: a
        a 2.0 tag py3-none-win32, a 1.0: a
        a 2.0 tag cp310-cp310-manylinux_2_17_x86_64, a 1.0: a
        a 2.0 tag cp310-abi3-manylinux_2_17_x86_64, a 1.0: a
        a 2.0 tag py2.py3-none-any, a 2.1 tag py2-none-any: a
        a 2.0 tag py312-none-any, a 2.2 tag py39-none-any: a""",
    "equally good files": """
        a 1.0 tag py3-none-any needs b, a 1.0 tag py2.py3-none-any needs c, b 1, c 1: a
        a 1.0 build 2 needs b, a 1.0 build 10 needs c, b 1, c 1: a
        a 1.0 build 1a needs b, a 1.0 build 1b needs c, b 1, c 1: a
        a 1.0 build 1ab needs b, a 1.0 build 1a needs c, b 1, c 1: a
        a 1.0 build 1 needs b, a 1.0 needs c, b 1, c 1: a""",
    "extras": """
        a 1.0: a[nope]
        a 1.0 extra x:b==1.0 extra y:b==2.0, b 1.0, b 2.0: a[x,y] | a[x] | a
        a 1.0 extra x:b extra y:c, b 1.0, c 1.0: a[x,y]
        a 2.0, a 1.0 extra x:b, b 1.0: a[x]
        a 1.0 extra A_b.C:b, b 1.0: a[a-B-c]
        a 1.0 extra all:a[x] extra x:b, b 1.0: a[all]
        a 2.0 extra x:b==2.0, a 1.0 extra x:b==1.0, b 1.0, b 2.0: a[x], b<2""",
    "versions": """
        a 1.0, a 1.1, a 2.0: a==1.* | a!=2.* | a~=1.0 | a>1.0,<1.1 | a==1.0, a==2.0
        a 1.0, a 1.0.post1: a>1.0 | a==1.0.* | a<=1.0 | a==1.0
        a 1.0.post1, a 1.0.post2: a>1.0.post1
        a 1!1.0, a 2.0: a | a<1!0
        a 1.0, a 1.0.1: a==1.0.0
        a 2024.1, a 1.0: a>=1,<2024
        a 1.10, a 1.9: a""",
    "graphs": """
        a 1.0 needs a>=1: a
        a 1.0 needs b, b 1.0 needs a: a
        a 2.0 needs c==2.0, a 1.0 needs c==1.0, b 2.0 needs c==1.0, b 1.0 needs c==1.0, c 1.0, c 2.0: a, b
        a 2.0 needs nope, a 1.0: a
        a 2.0 needs b>=x.y, a 1.0, b 1.0: a
        a 3.0 needs b>=2 needs c<2, a 2.0 needs b>=1, a 1.0, b 2.0 needs c>=2, b 1.0 needs c, c 1.0, c 2.0: a, c<2
        a 1.0 needs b, b 2.0 needs d==2, b 1.0 needs d==1, d 1, d 2, e 1.0 needs d==1: a, e""",
}
"""By kind, one index per line with questions: `a 2.0 needs b>=1, b 1.0: QUESTION | QUESTION`. `;` is a comma."""


@dataclass(frozen=True)
class Asked:
    """A question about an index. Its requirements name projects of this index only."""

    text: str
    requirements: tuple[str, ...]


def fill(index: ServedIndex) -> list[Asked]:
    """Upload the releases of all scenarios, and return the questions."""
    lines = [line.strip() for text in SCENARIOS.values() for line in text.strip().splitlines()]
    asked = []
    for number, line in enumerate(lines):
        made, _, questions = line.partition(": ")
        for release in made.split(", "):
            name, version, *further = release.split(" ")
            upload(index, f"{name}-{number}", version, dict_of(further), number)
        asked += [
            Asked(f"{made}: {question}", tuple(own(requirement, number) for requirement in question.split(", ")))
            for question in questions.split(" | ")
        ]
    return asked


def upload(index: ServedIndex, name: str, version: str, has: Mapping[str, Sequence[str]], number: int) -> None:
    extras = dict(extra.split(":") for extra in has.get("extra", ()))
    requires = [own(requirement, number) for requirement in has.get("needs", ())]
    requires += [f"{own(requirement, number)}; extra == '{extra}'" for extra, requirement in extras.items()]
    python = ",".join(has.get("python", ())).replace(";", ",") or None
    [tag], [build] = has.get("tag", ["py3-none-any"]), has.get("build", [None])
    options = {"requires_python": python, "tag": tag, "build": build, "files": {}}
    index.wheel(name, version, requires_dist=requires, provides_extra=extras, **options)
    if "yanked" in has:
        index.history.yank(name, version)


def dict_of(words: Sequence[str]) -> Mapping[str, list[str]]:
    values: dict[str, list[str]] = {}
    waiting = list(words)
    while waiting:
        key = waiting.pop(0)
        values.setdefault(key, []).extend([] if key == "yanked" else [waiting.pop(0)])
    return values


def own(requirement: str, number: int) -> str:
    """Return the requirement with its project's name in this scenario."""
    return re.sub(r"^\w+", lambda name: f"{name[0]}-{number}", requirement)


@pytest.fixture(scope="module")
def pip() -> Iterator[ForkedPip]:
    with forked_pip() as found:
        yield found


@pytest.mark.nightly
def test_choices_match_pip_and_uv(tmp_path: Path, pip: ForkedPip) -> None:
    with served_index(tmp_path / "served") as index:
        questions = fill(index)
        catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
        crawl_full(index.crawler(catalog))
        differing = []
        for asked in questions:
            for semantics in Semantics:
                place = Place.named("running" if semantics is Semantics.PIP else "3.12 linux")
                ours = our_pins(catalog, index.serial, asked, semantics, place)
                if semantics is Semantics.PIP:
                    theirs = resolve_by_pip(pip, index.url, asked.requirements, tmp_path, ["--only-binary=:all:"])
                else:
                    options = [*place.uv_options, f"--cache-dir={tmp_path / 'uv'}"]
                    theirs = resolve_by_uv(index.url, asked.requirements, tmp_path, options)
                if ours != theirs.pins:
                    differing.append((semantics.value, asked.text, ours, theirs.pins))
        catalog.close()
    assert len(questions) > 100
    assert differing == []


def our_pins(
    catalog: Catalog, serial: int, asked: Asked, semantics: Semantics, place: Place
) -> Mapping[str, str] | None:
    wanted = tuple(map(parse_wanted, asked.requirements))
    question = ResolutionQuestion(
        requirements=wanted, environment=place.environment, semantics=semantics, only_binary=True
    )
    try:
        return resolve(past_index(catalog, serial), question).pins
    except UnsolvableError:
        return None
