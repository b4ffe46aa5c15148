"""The modules that PDM installs."""

import pytest

from pypi_assets.distributions.backends import pdm
from pypi_assets.distributions.module_names import find_modules
from pypi_assets_tests.distributions.backends.projects import (
    FLAT,
    NAME,
    SRC,
    WHOLE,
    files,
    grade_of,
    modules_by,
    source_tree,
)

BUILD = "[tool.pdm.build]\n"


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        pytest.param(
            files(*FLAT, "b/__init__.py", pyproject=NAME), ["b", *WHOLE], "pdm packages", id="packages at the top"
        ),
        pytest.param(files(*SRC, *FLAT[4:], pyproject=NAME), WHOLE, "pdm packages", id="packages in src"),
        pytest.param(
            files("a.py", "b.py", "tests/x.py", pyproject=NAME), ["a", "b"], "pdm packages", id="single modules"
        ),
        pytest.param(
            files("lib/demo/__init__.py", "lib/x.py", pyproject=BUILD + 'package-dir = "lib"\n'),
            ["demo"],
            "pdm packages",
            id="package-dir",
        ),
        pytest.param(
            files(
                *FLAT,
                pyproject=BUILD + 'includes = ["demo", "other.py"]\nexcludes = ["demo/tests", "demo/data/*.py"]\n',
            ),
            ["demo", "demo.core", "other"],
            "pdm includes",
            id="includes and excludes",
        ),
        pytest.param(
            files(*FLAT, pyproject=BUILD + 'source-includes = ["demo/tests", "demo/data"]\n'),
            ["demo", "demo.core"],
            "pdm packages",
            id="source-includes are not in wheels",
        ),
        pytest.param(
            files(
                *SRC,
                pyproject='[build-system]\nrequires = []\nbuild-backend = "pdm.pep517.api"\n'
                '[tool.pdm]\nincludes = ["src/demo/core.py"]\n',
            ),
            ["demo", "demo.core"],
            "pdm includes",
            id="the old table, and includes in src",
        ),
    ],
)
def test_pdm(contents, expected, by):
    assert modules_by(pdm.installed, contents) == (by, expected)


@pytest.mark.parametrize(
    ("includes", "excludes", "expected"),
    [
        (["demo"], ["demo"], []),
        (["demo/core.py"], ["demo"], ["demo", "demo.core"]),
        (["demo", "demo/core.py"], ["demo/*.py"], ["demo", "demo.core", "demo.data", "demo.data.x", "demo.tests"]),
        (["*"], ["demo"], ["other"]),
        (["demo/*"], ["demo/tests"], ["demo", "demo.core", "demo.data", "demo.data.x"]),
        (["demo"], ["."], []),
    ],
)
def test_deeper_and_plainer_pattern_wins(includes, excludes, expected):
    contents = files(*FLAT, pyproject=f"{BUILD}includes = {includes}\nexcludes = {excludes}\n")
    modules = modules_by(pdm.installed, contents)[1]
    assert [name for name in modules if name not in {"tests", "tests.test_core", "demo.tests.test_x"}] == expected


def test_patterns_from_the_root_match_nothing(subtests: pytest.Subtests):
    cases = [
        ('includes = ["/demo"]', []),
        ('includes = ["/demo", "./other"]', ["other"]),
        ('includes = ["demo/*.py"]\nexcludes = ["/demo/core.py"]', ["demo", "demo.core"]),
        ('source-includes = ["/demo"]', [*WHOLE, "other"]),
    ]
    for settings, expected in cases:
        with subtests.test(settings=settings):
            contents = files(*FLAT, "other/__init__.py", pyproject=f"{BUILD}{settings}\n")
            assert modules_by(pdm.installed, contents)[1] == expected


def test_bytecode_needs_a_pattern_for_itself(subtests: pytest.Subtests):
    cases = [
        ('includes = ["demo"]', ["demo"]),
        ('includes = ["demo/*"]', ["demo", "demo.a"]),
        ('includes = ["demo/**/*"]', ["demo", "demo.a", "demo.sub", "demo.sub.b"]),
        ('includes = ["demo/*.pyc"]\nexcludes = ["demo/a.pyc"]', []),
        ('includes = ["demo/a.pyc"]\nexcludes = ["demo"]', ["demo", "demo.a"]),
        ("", ["demo"]),
    ]
    for settings, expected in cases:
        with subtests.test(settings=settings):
            contents = files("demo/__init__.py", "demo/a.pyc", "demo/sub/b.pyc", pyproject=f"{BUILD}{settings}\n")
            assert modules_by(pdm.installed, contents)[1] == expected


def test_stub_packages():
    installed = pdm.installed(source_tree(files("demo-stubs/__init__.pyi", "x.py", pyproject=NAME)))
    assert find_modules(installed.files).stubs == ("demo",)


def test_wheel_data_adds_modules(subtests: pytest.Subtests):
    cases = [
        ("purelib", '{path = "hid/evil.py", relative-to = "hid"}', ["evil"], "exact"),
        ("platlib", '{path = "hid/**/*.py", relative-to = "hid"}', ["evil", "sub", "sub.deep"], "exact"),
        ("purelib", '"hid/**/*.py"', ["deep", "evil"], "exact"),
        ("purelib", '"./hid/*.py"', ["evil"], "exact"),
        ("purelib", '{path = "hid/evil.py", relative-to = "."}', ["hid", "hid.evil"], "exact"),
        ("purelib", '{path = "hid/evil.py", relative-to = ""}', ["evil"], "exact"),
        ("purelib", '{path = "hid/sub/**", relative-to = "hid"}', ["sub", "sub.deep"], "derived"),
        ("purelib", '"${BUILD_DIR}/evil.py"', [], "derived"),
        ("scripts", '"hid/evil.py"', [], "exact"),
        ("data", '"hid/evil.py"', [], "exact"),
        ("purelib", "1", [], "exact"),
    ]
    for scheme, item, expected, grade in cases:
        with subtests.test(scheme=scheme, item=item):
            settings = f"{NAME}{BUILD}[tool.pdm.build.wheel-data]\n{scheme} = [{item}]\n"
            contents = files(*FLAT, "hid/evil.py", "hid/sub/deep.py", "hid/n.txt", pyproject=settings)
            assert modules_by(pdm.installed, contents)[1] == sorted([*WHOLE, *expected])
            assert grade_of(pdm.installed, contents) == grade


def test_files_added_by_builds_and_plugins(subtests: pytest.Subtests):
    dynamic = '[project]\nname = "demo"\ndynamic = ["version"]\n'
    written = '[tool.pdm.version]\nsource = "scm"\nwrite_to = "demo/_version.py"\n'
    cases = [
        (dynamic + written, [*WHOLE, "demo._version"], "exact"),
        (NAME + 'version = "1"\n' + written, WHOLE, "exact"),
        (dynamic + '[tool.pdm.version]\nsource = "call"\ngetter = "demo:version"\n', WHOLE, "derived"),
        (NAME + '[build-system]\nrequires = ["pdm-backend>=2", "pdm-build-mypyc"]\n', WHOLE, "derived"),
        (NAME + '[build-system]\nrequires = ["pdm_backend"]\n', WHOLE, "exact"),
        (NAME + BUILD + "run-setuptools = true\n", WHOLE, "derived"),
    ]
    for pyproject, expected, grade in cases:
        with subtests.test(pyproject=pyproject):
            contents = files(*FLAT, pyproject=pyproject)
            assert modules_by(pdm.installed, contents)[1] == sorted(expected)
            assert grade_of(pdm.installed, contents) == grade


def test_excluded_src_is_not_a_package_folder():
    settings = f'{NAME}{BUILD}includes = ["src/demo/core.py", "other.py"]\nexcludes = ["src/"]\n'
    contents = files(*FLAT, *SRC, pyproject=settings)
    assert modules_by(pdm.installed, contents)[1] == ["other", "src", "src.demo", "src.demo.core"]
