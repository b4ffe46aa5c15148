"""All formats are made from one answer: the distribution of each module, missing facts, and spellings."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.export.formats import FORMATS, remarks
from pypi_assets.export.module_owners import (
    described_modules,
    module_owners,
    nearest,
    stub_only,
    toml_lines,
    top_level_names,
    topmost,
)
from pypi_assets.export.summaries import SUMMARIES
from pypi_assets.locks.pins import RemarkKind
from pypi_assets_tests.export.pinned import USUAL, answer, of_modules, release, with_parents


def test_each_format_has_a_description() -> None:
    assert list(SUMMARIES) == list(FORMATS)
    assert all(summary.endswith(".") for summary in SUMMARIES.values())


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_deterministic(name: str) -> None:
    reordered = answer(*reversed(USUAL.releases))
    text = FORMATS[name].render(USUAL)
    assert text == FORMATS[name].render(USUAL)
    assert sorted(text.splitlines()) == sorted(FORMATS[name].render(reordered).splitlines())
    assert text.startswith(f"# Made by `pypi-assets export {name} --lock uv.lock`.\n")


@pytest.mark.parametrize(("name", "count"), [("gazelle", 1), ("pants", 1), ("deptry", 0), ("uv-metadata", 0)])
def test_collisions_are_named_by_single_owner_formats(name: str, count: int) -> None:
    remarked = list(remarks(name, of_modules({"one": ["a"], "two": ["a"]})))
    assert [remark.kind for remark in remarked] == [RemarkKind.COLLISION] * count


def test_requirements_known_only_to_a_build_are_named() -> None:
    [remark] = remarks("uv-metadata", answer(release("a", ["a"], filename="a-1.zip", requires=None)))
    assert (remark.kind, remark.project) == (RemarkKind.NO_REQUIREMENTS, "a")


modules = st.sets(st.sampled_from(["a", "a.b", "a.b.c", "a.d", "e", "e.f", "e.f.g", "h.b.c"]), max_size=5)
locks = st.dictionaries(st.sampled_from(["one", "two", "three", "a"]), modules, max_size=4)


@given(locks)
def test_module_of_one_distribution_belongs_to_it(lock: dict[str, set[str]]) -> None:
    lock = {project: with_parents(names) for project, names in lock.items()}
    owners = module_owners(of_modules(lock))
    mapping = owners.simplified()
    for project, names in lock.items():
        for module in names:
            if not any(module in others for other, others in lock.items() if other != project):
                assert owners.owners[module] == nearest(mapping, module) == project
    for module, owner in owners.owners.items():
        assert nearest(mapping, module) == owner
        assert module in lock[owner]


@given(locks)
def test_simplified_mapping_is_minimal(lock: dict[str, set[str]]) -> None:
    mapping = module_owners(of_modules(lock)).simplified()
    for module, project in mapping.items():
        assert nearest({name: owner for name, owner in mapping.items() if name != module}, module) != project


def test_shared_module_belongs_to_the_last_installed_distribution() -> None:
    owners = module_owners(of_modules({"opencv-python": ["cv2.cv2"], "opencv-python-headless": ["cv2.cv2"]}))
    assert owners.owners == {"cv2": "opencv-python", "cv2.cv2": "opencv-python"}
    after = answer(release("a", ["x"], requires=("b",)), release("b", ["x"]))
    assert module_owners(after).owners == {"x": "a"}


def test_shared_package_belongs_to_the_common_dependency() -> None:
    mapping = module_owners(
        answer(
            release("apache-airflow", ["airflow", "airflow.models"]),
            release("provider-a", ["airflow", "airflow.a"], requires=("apache-airflow>=2",)),
            release("provider-b", ["airflow", "airflow.b"], requires=("apache_airflow",)),
        )
    )
    assert mapping.simplified() == {
        "airflow": "apache-airflow",
        "airflow.a": "provider-a",
        "airflow.b": "provider-b",
    }


def test_shared_package_belongs_to_its_namesake_or_none() -> None:
    assert module_owners(of_modules({"a": ["a.x"], "b": ["a.y"]})).owners["a"] == "a"
    assert "n" not in module_owners(of_modules({"a": ["n.x"], "b": ["n.y"]})).owners


def test_package_with_one_init_file_belongs_to_its_distribution() -> None:
    assert module_owners(of_modules({"core": ["n"], "other": ["n.y"]})).owners == {"n": "core", "n.y": "other"}


@given(modules)
def test_topmost_modules_contain_all_others(names: set[str]) -> None:
    tops = topmost(names)
    assert all(any(f"{name}.".startswith(f"{top}.") for top in tops) for name in names)
    assert topmost(tops) == tops


def test_stub_only_distribution_describes_modules() -> None:
    assert stub_only(USUAL) == {"types-pyyaml": ["yaml"]}
    assert described_modules(release("types-x", [], stubs=["google.cloud.x", "google.cloud.x.y"])) == ["google.cloud.x"]


def test_distribution_with_modules_is_not_stub_only() -> None:
    assert described_modules(release("a", ["a"], stubs=["a._c"])) == []
    assert described_modules(release("a", None)) == []


NAMES = {
    "PyYAML": ["_yaml", "yaml"],
    "google-auth": ["google"],
    "google-cloud-storage": ["google"],
    "old": ["no", "null"],
    "protobuf": ["google"],
    "pyyaml": ["_yaml", "yaml"],
    "types-PyYAML": ["yaml-stubs"],
    "types-pyyaml": ["yaml-stubs"],
    "zope-interface": ["zope"],
    "zope.interface": ["zope"],
}


def test_each_spelling_has_the_top_level_names() -> None:
    assert top_level_names(USUAL) == NAMES
    assert list(top_level_names(USUAL)) == sorted(NAMES)


def test_toml_has_the_same_names() -> None:
    assert tomllib.loads(toml_lines(USUAL)) == NAMES
