from typing import Any

from pypi_assets.lookup.release_comparison import compare_releases, form_of, is_same


def version(text: str, **fields: Any) -> dict[str, Any]:
    empty = {"requires_dist": [], "extras": [], "modules": [], "commands": [], "files": []}
    return {"project": "Demo", "normalized": "demo", "version": text, **empty, **fields}


def file(filename: str, kind: str = "wheel", requires_python: str | None = None) -> dict[str, Any]:
    return {"filename": filename, "kind": kind, "requires_python": requires_python}


def test_equal_versions_differ_in_nothing():
    one = version("1.0", requires_dist=["a"], modules=["demo"], files=[file("demo-1.0-py3-none-any.whl")])
    other = one | {"version": "2.0", "files": [file("demo-2.0-py3-none-any.whl")]}
    found = compare_releases(one, other)
    assert (found["before"], found["after"]) == ("1.0", "2.0")
    nothing = {"added": [], "removed": []}
    assert [found[name] for name in ("requires_python", "extras", "modules", "commands", "files")] == [nothing] * 5
    assert found["requirements"] == {"is_known": True, "added": [], "removed": [], "changed": []}
    assert is_same(found)


def test_it_shows_what_came_what_went_and_what_changed():
    before = version(
        "1.0",
        requires_dist=["six>=1", "idna<3", "gone", "a; extra=='x'"],
        modules=["demo", "demo.old"],
        extras=["x"],
        files=[file("demo-1.0.tar.gz", "sdist", ">=3.6")],
    )
    after = version(
        "2.0",
        requires_dist=["six>=1", "Idna<4", "new"],
        modules=["demo", "demo.new"],
        commands=["demo"],
        files=[file("demo-2.0-cp312-cp312-win_amd64.whl", requires_python=">=3.9")],
    )
    found = compare_releases(before, after)
    assert not is_same(found)
    assert found == {
        "project": "Demo",
        "normalized": "demo",
        "before": "1.0",
        "after": "2.0",
        "requires_python": {"added": [">=3.9"], "removed": [">=3.6"]},
        "requirements": {
            "is_known": True,
            "added": ["new"],
            "removed": ["gone", "a; extra=='x'"],
            "changed": [{"project": "idna", "before": ["idna<3"], "after": ["Idna<4"]}],
        },
        "extras": {"added": [], "removed": ["x"]},
        "modules": {"added": ["demo.new"], "removed": ["demo.old"]},
        "commands": {"added": ["demo"], "removed": []},
        "files": {"added": ["wheel cp312-cp312-win_amd64"], "removed": ["sdist"]},
    }


def test_other_spellings_of_requirements_and_extras_are_the_same():
    before = version("1.0", requires_dist=["certifi (>=2017.4.17)", "A_b<4,>=2 ; extra == 'use_x'"], extras=["use_x"])
    after = version("2.0", requires_dist=["certifi>=2017.4.17", 'a-b>=2,<4; extra == "use-x"'], extras=["use-x"])
    assert is_same(compare_releases(before, after))
    assert not is_same(compare_releases(before, after | {"requires_dist": ["certifi>=2018", *after["requires_dist"]]}))


def test_what_could_not_be_read_is_not_compared():
    found = compare_releases(version("1.0", requires_dist=None), version("2.0", requires_dist=["a"]))
    assert found["requirements"] == {"is_known": False, "added": [], "removed": [], "changed": []}
    assert not is_same(found)


def test_requirements_that_name_no_project_are_not_paired():
    found = compare_releases(version("1.0", requires_dist=["!a"]), version("2.0", requires_dist=["!b"]))
    assert found["requirements"] == {"is_known": True, "added": ["!b"], "removed": ["!a"], "changed": []}


def test_a_filename_of_no_wheel_has_no_tags():
    assert form_of("odd.whl", "wheel") == "wheel"
    assert form_of("demo-1.0.egg", "egg") == "egg"
