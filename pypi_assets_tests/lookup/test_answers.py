"""Answers as tables, breadth-first searches, links and package URLs."""

from collections.abc import Container, Iterator
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup import Distribution, ModuleResult, open_latest
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.lookup.newest_requirements import breadth_first
from pypi_assets.lookup.package_urls import PackageUrl, parse_purl, purl_result, wrong_purl
from pypi_assets.lookup.project_answers import MOST_LINKS, license_of, project_links
from pypi_assets.lookup.published_sets import PublishedSets
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets_tests.lookup.publisher import Publisher


def test_answers_convert_to_frames(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as modules, open_latest("depgraph", publisher.storage) as depgraph:
        frame = modules.module("demo").frame()
        assert list(frame.columns) == list(ModuleResult.__annotations__)
        assert frame.to_dict("records") == list(modules.module("demo").results)
        assert frame.attrs == {"version": 1, "serial": 100}
        assert len(modules.modules("d").frame()) == 2
        nothing = depgraph.project("nope").frame()
        assert (len(nothing), list(nothing.columns)) == (0, list(Distribution.__annotations__))
        assert set(nothing.columns) == set(depgraph.project("demo").results[0])
        assert set(depgraph.dependents("nope").frame().columns) == set(depgraph.dependents("base").results[0])


NAMES = "abcdef"


@given(
    edges=st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4)),
    depth=st.none() | st.integers(0, 4),
    leaves_out=st.booleans(),
)
def test_each_name_is_found_once_at_its_minimum_depth(edges: dict[str, list[str]], depth: int | None, leaves_out: bool):
    def direct(name: str, reached: Container[str]) -> Iterator[tuple[str, str]]:
        return ((one, one.upper()) for one in edges.get(name, []) if not (leaves_out and one in reached))

    reached = list(breadth_first(direct, "a", depth))
    depths = {"a": 0}
    for _ in NAMES:  # relaxed until nothing changes
        for name, others in edges.items():
            for one in others:
                if name in depths:
                    depths[one] = min(depths.get(one, len(NAMES)), depths[name] + 1)
    expected = {one.upper(): steps for one, steps in depths.items() if steps and (depth is None or steps <= depth)}
    assert {name: steps for steps, name in reached} == expected
    assert len(reached) == len(expected)
    assert [steps for steps, _ in reached] == sorted(steps for steps, _ in reached)


FILES = [
    {"project": "Demo", "filename": "demo-1.tar.gz", "yanked": True},
    {"project": "Demo", "filename": "demo-1.whl", "yanked": False},
]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("pkg:pypi/demo", PackageUrl("demo", None, None)),
        ("PKG:PyPI/Demo_Pkg@1.0", PackageUrl("demo-pkg", "1.0", None)),
        ("pkg://pypi/demo@1.0%2Blocal", PackageUrl("demo", "1.0+local", None)),
        (" pkg:pypi/demo@1?file_name=demo-1.tar.gz&x=1#sub/path ", PackageUrl("demo", "1", "demo-1.tar.gz")),
        ("pkg:pypi/demo@", PackageUrl("demo", None, None)),
    ],
)
def test_package_url_is_split(text: str, parsed: PackageUrl):
    assert parse_purl(text) == parsed


@pytest.mark.parametrize(
    "text", ["", "demo", "pkg:npm/demo", "pkg:pypi/", "pkg:pypi/a/b", "pkg:pypi/-x-", "pkg:pypi/%00"]
)
def test_invalid_package_url_is_rejected(text: str):
    with pytest.raises(LookupNameError):
        parse_purl(text)


def test_result_has_only_the_named_files():
    result = purl_result("p", PackageUrl("demo", "1", None), FILES)
    assert (result["exists"], result["yanked"], len(result["files"])) == (True, False, 2)
    result = purl_result("p", PackageUrl("demo", "1", "demo-1.tar.gz"), FILES)
    assert (result["yanked"], result["files"], result["project"]) == (True, ["demo-1.tar.gz"], "Demo")
    assert purl_result("p", PackageUrl("demo", "1", "other"), FILES)["exists"] is False
    assert wrong_purl("p", LookupNameError("why"))["error"] == "why"


UNSAFE = [
    "x, javascript:alert(1)",
    "x, JaVaScRiPt:alert(1)",
    "x, data:text/html,<script>alert(1)</script>",
    "x, vbscript:x",
    "x, file:///etc/passwd",
    "x, //elsewhere.invalid/",
    "x, /relative",
    "x, https://known.example@elsewhere.invalid/",
    "x, https://user:password@host.example/",
    "x, https://host.example\\@elsewhere.invalid/",
    "x, https://host.example/a\nb",
    "x, https://host.example/a b",
    "x, https:///",
    "x, https://host .example/",
    "x, https://h\u00f6st.example/",
    "x, https://host.example/" + "a" * 2_000,
    ", https://host.example/",
    "no comma",
    "",
]


def test_links_are_read_and_ordered() -> None:
    links = project_links(
        [
            "Other, https://other.example/?a=1,2#b",
            "Bug Tracker, http://bugs.example:8080/",
            "Source Code, HTTPS://Code.example/a",
            "Homepage, https://home.example",
            "Docs, https://docs.example/",
            "again, https://docs.example/",
        ]
    )
    assert [(link["label"], link["host"]) for link in links] == [
        ("Homepage", "home.example"),
        ("Docs", "docs.example"),
        ("Source Code", "code.example"),
        ("Bug Tracker", "bugs.example:8080"),
        ("Other", "other.example"),
    ]
    assert links[-1]["url"] == "https://other.example/?a=1,2#b"


def test_only_web_links_are_kept(subtests: pytest.Subtests) -> None:
    for text in UNSAFE:
        with subtests.test(text=text):
            assert project_links([text]) == []


def test_labels_are_inert_and_number_of_links_is_bounded() -> None:
    [link] = project_links(["a\x1b[31m\u202eb\n" + "c" * 1_000 + ", https://host.example/"])
    assert link["label"].isprintable()
    assert len(link["label"]) <= 60
    assert len(project_links(f"x, https://host.example/{number}" for number in range(100))) == MOST_LINKS


def test_licence_is_shortened(subtests: pytest.Subtests) -> None:
    osi = ["License :: OSI Approved :: MIT License", "License :: OSI Approved :: BSD License"]
    for expression, text, classifiers, expected in (
        ("MIT OR Apache-2.0", "MIT", osi, "MIT OR Apache-2.0"),
        (None, "BSD", osi, "BSD"),
        (None, "Permission is hereby granted " * 20, osi, "MIT License, BSD License"),
        (None, None, osi[:1] * 2, "MIT License"),
        (None, "x" * 200, None, "x" * 200),
        (None, None, None, None),
        (None, "", [], None),
    ):
        with subtests.test(expected=expected):
            row = {"license_expression": expression, "license": text, "license_classifiers": classifiers}
            assert license_of(row) == expected


def test_sources_agree_except_on_catalog_only_values(publisher: Publisher):
    for dataset in ("commands", "hashes"):
        build_version(dataset, storage=publisher.storage, catalog=publisher.small.catalog)
    datasets = PublishedSets(publisher.storage).open_newest()
    assert datasets is not None
    published = PublishedSnapshot(datasets.reader, nullcontext)
    past = CatalogSnapshot(publisher.small.catalog, 100)
    known, of_catalog = published.project("Demo"), past.project("demo")
    assert known is not None
    assert of_catalog is not None
    assert of_catalog["first_serial"] == of_catalog["last_serial"] == 1
    only_catalog = ("first_serial", "last_serial", "links", "status")
    assert known == of_catalog | dict.fromkeys(only_catalog)
    version = published.version("demo", "1")
    assert version is not None
    assert version == past.version("demo", "1.0")
    assert [file["filename"] for file in version["files"]] == ["demo-1.0.tar.gz"]
    for snapshot in (published, past):
        assert snapshot.version("none", "1") is snapshot.version("demo", "2") is None
        assert snapshot.project("none") is None
