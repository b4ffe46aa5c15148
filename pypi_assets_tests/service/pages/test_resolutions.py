from urllib.parse import urlencode

import pytest

from pypi_assets.service.pages import resolutions
from pypi_assets.service.pages.resolutions import differences, tree
from pypi_assets_tests.named import in_order
from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client, Published

WHERE = {"python": "3.12", "platform": "linux-x86_64"}


def path(*requirements: str, at: str = "", **fields: str) -> str:
    return f"{at}/resolve/?{urlencode({'requirements': chr(10).join(requirements), **WHERE, **fields})}"


def test_page_without_requirements_shows_a_form(client: Client):
    document = page(client, "/resolve/")
    assert "releases" not in document.text


def test_solution_is_shown_as_a_tree(client: Client):
    document = page(client, path("demo", "other.app"))
    assert "3 releases" in document.text
    assert document.links["PyYAML"].startswith("/release/pyyaml/6.0/")
    assert "demo==2.1" in document.text


def test_missing_solution_is_explained(client: Client):
    document = page(client, path("demo", "pyyaml>7"))
    assert in_order(document.text, "pyyaml", ">7", "6.0")


def test_comparison_shows_differences_between_two_times(client: Client, published: Published):
    document = page(client, path("demo", than="2026-03-05"))
    assert in_order(document.text, "demo", "1.0", "2.1")
    same = page(client, path("demo", than=str(published.index.serial)))
    assert not in_order(same.text, "demo", "1.0", "2.1")


def test_resolution_at_a_serial_uses_past_state(client: Client, published: Published):
    serial = published.index.serial
    at = f"/at/{serial}.{serial}"
    assert "demo==2.1" in page(client, path("demo", at=at)).text
    data = client.get(path("demo", at=at).replace("/resolve/", "/resolve.json"))
    assert [one["version"] for one in data.json()["resolution"]["releases"]] == ["2.1", "6.0"]
    assert "immutable" in data.headers["cache-control"]
    compared = client.get(path("demo", at=at, than="2026-03-05").replace("/resolve/", "/resolve.json"))
    assert "immutable" not in compared.headers["cache-control"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"than": "soon"}, "neither a serial nor a time"),
        ({"than": "9999999"}, "no answer for serial 9999999"),
        ({"python": "2"}, "3.12.4"),
        ({"platform": "x"}, "windows-x86_64"),
    ],
)
def test_invalid_requirements_are_named(client: Client, fields: dict[str, str], text: str):
    answer = client.get(path("demo", **fields))
    assert answer.status_code in {400, 409}
    assert text in answer.text


def test_too_many_requirements_are_rejected(client: Client):
    assert client.get(path(*["a"] * 201)).status_code == 400


def release(name: str, version: str, *requires: str) -> dict[str, object]:
    return {
        "project": name,
        "normalized": name,
        "version": version,
        "requires": [{"normalized": requirement, "version": "1"} for requirement in requires],
        "required_by": [{"normalized": None, "requirement": f"{name}>0"}],
    }


def test_tree_opens_each_release_once_and_stops_at_cycles():
    found = {"roots": ["a", "b"], "releases": [release("a", "1", "b", "c"), release("b", "1", "a"), release("c", "1")]}
    lines = tree(found)  # type: ignore[arg-type]
    shown = [(line.depth, line.release["normalized"], line.is_above, line.is_open, line.ends) for line in lines]
    assert shown == [
        (0, "a", False, True, 0),
        (1, "b", False, True, 0),
        (2, "a", True, False, 1),
        (1, "c", False, False, 1),
        (0, "b", True, False, 0),
    ]
    assert lines[0].requirement == "a>0"


def test_long_chain_is_rendered(client: Client, monkeypatch: pytest.MonkeyPatch):
    count = 5_000
    chain = [release(f"c{one}", "1", *([f"c{one + 1}"] if one < count - 1 else [])) for one in range(count)]
    for one in chain:
        one |= {"extras": [], "yanked": False, "requirements_known": True}
    found = {"roots": ["c0"], "releases": chain, "proof": None, "remarks": []}
    monkeypatch.setattr(resolutions, "_resolved", lambda *_: found)
    answer = client.get(path("c0"), timeout=60)
    assert answer.status_code == 200
    assert answer.text.count("<details open>") == answer.text.count("</ul></details></li>") == count - 1
    data = client.get(path("c0").replace("/resolve/", "/resolve.json"), timeout=60)
    assert len(data.json()["resolution"]["releases"]) == count


def test_differences_compare_versions():
    before = {"releases": [release("a", "1"), release("b", "1"), release("c", "1")]}
    after = {"releases": [release("a", "1"), release("b", "2"), release("d", "1")]}
    changed = differences(before, after)  # type: ignore[arg-type]
    assert [(one.normalized, one.before, one.after) for one in changed] == [
        ("b", "1", "2"),
        ("c", "1", None),
        ("d", None, "1"),
    ]
    assert differences({"releases": None}, after)[0].before is None  # type: ignore[arg-type]
