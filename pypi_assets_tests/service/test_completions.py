"""A text of the search box is completed, by the projects that many require first."""

import pytest

from pypi_assets_tests.service.published import Client

COMPLETED = [
    ("p", [("project", "pyyaml")]),
    ("py", [("project", "pyyaml")]),
    ("PyYAML", [("project", "pyyaml")]),
    ("import ya", [("import", "yaml")]),
    ("yaml.", [("project", "yaml-copy"), ("import", "yaml.nodes")]),
    ("yaml.no", [("import", "yaml.nodes")]),
    ("uvx de", [("command", "demo")]),
    ("pip install de", [("project", "demo")]),
    ("de", [("project", "demo"), ("import", "demo"), ("command", "demo")]),
    ("demo==1", []),
    ("nothing-like-it", []),
    ("", []),
    (".", []),
    ("a b", []),
    ("\0", []),
    ("\ud7ff\U0010ffff", []),
]


def test_a_text_is_completed(client: Client, subtests: pytest.Subtests) -> None:
    for text, expected in COMPLETED:
        with subtests.test(text=text):
            answer = client.get("/v1/completions", params={"q": text})
            if "\0" in text:
                assert answer.status_code == 400
                continue
            found = answer.json()["results"]
            assert [(one["kind"], one["name"]) for one in found] == expected
            assert all(client.get(one["page"]).status_code == 200 for one in found)


def test_completions_are_remembered_and_bounded(client: Client) -> None:
    first, again = (client.get("/v1/completions?q=d") for _ in range(2))
    assert (first.headers["etag"], first.json()) == (again.headers["etag"], again.json())
    assert client.get("/v1/completions", params={"q": "x" * 201}).json()["parameter"] == "q"
    assert client.get("/v1/completions").json()["parameter"] == "q"
