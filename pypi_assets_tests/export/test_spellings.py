"""Names and texts survive a round trip through each tool's own reader."""

import ast
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.export.module_owners import (
    all_spellings,
    header,
    python_mapping,
    toml_array,
    toml_key,
    wheel_name,
    yaml_text,
)
from pypi_assets.locks.lock_content import toml_text
from pypi_assets_tests.export.pinned import release

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,5}[A-Za-z0-9])?", fullmatch=True)


@given(texts, st.lists(texts, max_size=3), names)
def test_toml_round_trip(text: str, items: list[str], name: str) -> None:
    written = f"text = {toml_text(text)}\nitems = {toml_array(items)}\n[table]\n{toml_key(name)} = 1\n"
    assert tomllib.loads(written) == {"text": text, "items": items, "table": {name: 1}}


modules = st.sampled_from(["no", "Yes", "null", "on.off", "y", "é.ü", "_x", "e1", "inf", "nan", "ªx"]) | st.from_regex(
    r"[a-z_][a-z0-9_]{0,4}(\.[a-z_][a-z0-9_]{0,3})?", fullmatch=True
)


@given(modules)
def test_yaml_round_trip(module: str) -> None:
    assert yaml.safe_load(f"{yaml_text(module)}: {yaml_text(module)}\n") == {module: module}


@given(st.dictionaries(names, st.lists(modules, max_size=3), max_size=3))
def test_python_round_trip(mapping: dict[str, list[str]]) -> None:
    assert ast.literal_eval(python_mapping(mapping, "    ")) == mapping


@pytest.mark.parametrize(
    ("filename", "name"),
    [
        ("PyYAML-6-py3-none-any.whl", "PyYAML"),
        ("zope.interface-1-py3-none-any.whl", "zope.interface"),
        ("a-1.zip", "a_b"),
    ],
)
def test_wheel_name_is_the_start_of_its_filename(filename: str, name: str) -> None:
    assert wheel_name(release("a-b", filename=filename)) == name


def test_spellings_of_a_project_are_unique() -> None:
    assert all_spellings(release("Zope.Interface", name="zope.interface")) == [
        "Zope.Interface",
        "zope-interface",
        "zope.interface",
    ]
    assert all_spellings(release("six")) == ["six"]


@pytest.mark.parametrize("lock", ["uv.lock", "my lock.txt", "a\nmanifest:\r\u2028x", "\x1b[31m"])
def test_header_is_one_line_for_any_lock_name(lock: str) -> None:
    assert header("gazelle", lock).startswith("# Made by `pypi-assets export gazelle --lock ")
    assert header("gazelle", lock).strip().isprintable()
    assert len(header("gazelle", lock).splitlines()) == 1
