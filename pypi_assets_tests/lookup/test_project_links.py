"""Links of projects: those that a browser can follow safely, in an order that people expect."""

import pytest

from pypi_assets.lookup.project_answers import MOST_LINKS, license_of, project_links

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
    found = project_links(
        [
            "Other, https://other.example/?a=1,2#b",
            "Bug Tracker, http://bugs.example:8080/",
            "Source Code, HTTPS://Code.example/a",
            "Homepage, https://home.example",
            "Docs, https://docs.example/",
            "again, https://docs.example/",
        ]
    )
    assert [(one["label"], one["host"]) for one in found] == [
        ("Homepage", "home.example"),
        ("Docs", "docs.example"),
        ("Source Code", "code.example"),
        ("Bug Tracker", "bugs.example:8080"),
        ("Other", "other.example"),
    ]
    assert found[-1]["url"] == "https://other.example/?a=1,2#b"


def test_no_link_leads_to_more_than_a_web_page(subtests: pytest.Subtests) -> None:
    for text in UNSAFE:
        with subtests.test(text=text):
            assert project_links([text]) == []


def test_labels_are_inert_and_links_are_bounded() -> None:
    [link] = project_links(["a\x1b[31m\u202eb\n" + "c" * 1_000 + ", https://host.example/"])
    assert link["label"].isprintable()
    assert len(link["label"]) <= 60
    assert len(project_links(f"x, https://host.example/{number}" for number in range(100))) == MOST_LINKS


def test_a_licence_is_told_in_a_few_words(subtests: pytest.Subtests) -> None:
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
