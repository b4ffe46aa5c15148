"""The modules that flit, Poetry, uv's build backend and smaller backends install."""

from textwrap import dedent

import pytest

from pypi_assets.distributions.backends import flit, named_package, poetry, uv_build
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

TREE = ("demo/__init__.py", "demo/a.py", "other/b.py", "src/demo/__init__.py", "src/demo/c.py", "src/one.py")

IN_SRC = ["demo", "demo.c"]
ONE_AND_DEMO = ["demo", "demo.a", "one"]


def test_package_from_settings_or_project_name(subtests: pytest.Subtests):
    cases = [
        (named_package.whey, "", ["demo", "demo.a"], "exact"),
        (named_package.whey, '[tool.whey]\nsource-dir = "src"\n', ["demo", "demo.c"], "exact"),
        (named_package.whey, '[tool.whey]\npackage = "other"\n', ["other", "other.b"], "exact"),
        (
            named_package.whey,
            '[tool.whey]\nadditional-files = ["include other/b.py", "recursive-exclude demo a.*"]\n',
            ["demo", "other", "other.b"],
            "exact",
        ),
        (named_package.trampolim, "", ["demo", "demo.a"], "exact"),
        (named_package.trampolim, '[tool.trampolim]\ntop-level-modules = ["one", "demo"]\n', ONE_AND_DEMO, "exact"),
        (named_package.py_build_cmake, '[tool.py-build-cmake.module]\ndirectory = "src"\n', IN_SRC, "exact"),
        (
            named_package.py_build_cmake,
            '[tool.py-build-cmake.module]\nname = "one"\n[tool.py-build-cmake.cmake]\nsource_path = "cpp"\n',
            ["one", "one_c"],
            "derived",
        ),
        (named_package.enscons, '[tool.enscons]\nsrc_root = "src"\npackages = ["demo"]\n', IN_SRC, "guessed"),
        (named_package.sphinx_theme_builder, "", ["demo", "demo.c"], "derived"),
    ]
    for rule, settings, expected, grade in cases:
        with subtests.test(rule=rule, settings=settings):
            cmake = (
                "pybind11_add_module(${PY_BUILD_CMAKE_MODULE_NAME}_c a.c)\n"
                "install(TARGETS one_c LIBRARY DESTINATION .)\n"
            )
            contents = files(*TREE, pyproject=NAME + settings) | {"cpp/CMakeLists.txt": cmake}
            assert modules_by(rule, contents)[1] == expected
            assert grade_of(rule, contents) == grade


def test_py_build_cmake_local_settings_lower_the_grade():
    plain = files("demo/__init__.py", pyproject='[project]\nname = "demo"\n')
    assert grade_of(named_package.py_build_cmake, plain) == "exact"
    assert grade_of(named_package.py_build_cmake, plain | {"py-build-cmake.local.toml": ""}) == "guessed"


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        pytest.param(files(*FLAT, pyproject=NAME), WHOLE, id="by name"),
        pytest.param(files(*SRC, pyproject=NAME), WHOLE, id="by name in src"),
        pytest.param(files(*FLAT, pyproject='[tool.flit.module]\nname = "other"\n'), ["other"], id="module"),
        pytest.param(files("a_b.py", pyproject='[tool.flit.metadata]\nmodule = "a_b"\n'), ["a_b"], id="metadata"),
        pytest.param(files("x.py") | {"flit.ini": "[metadata]\nmodule = x\n"}, ["x"], id="flit.ini"),
        pytest.param(
            files("src/ns/demo/__init__.py", "src/ns/other/y.py", pyproject='[tool.flit.module]\nname = "ns.demo"\n'),
            ["ns", "ns.demo"],
            id="namespace",
        ),
        pytest.param(files("y.py", pyproject=NAME), [], id="nothing of that name"),
        pytest.param(files("Demo/x.py", "src/demo/y.py", pyproject=NAME), ["demo", "demo.y"], id="its case first"),
    ],
)
def test_flit(contents, expected):
    assert modules_by(flit.installed, contents)[1] == expected


@pytest.mark.parametrize("settings", ['[project]\nname = "a-b-stubs"\n', '[tool.flit.module]\nname = "a_b-stubs"\n'])
def test_stub_packages_keep_their_suffix(settings):
    installed = flit.installed(source_tree(files("a_b-stubs/__init__.pyi", pyproject=settings)))
    assert installed is not None
    assert find_modules(installed.files).stubs == ("a_b",)


BACKEND = "[tool.uv.build-backend]\n"


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        pytest.param(files(*SRC, *FLAT, pyproject=NAME), WHOLE, id="by name in src"),
        pytest.param(files(*FLAT, pyproject=BACKEND + 'module-root = ""\n'), WHOLE, id="module-root"),
        pytest.param(
            files(
                "src/ns/a/__init__.py",
                "src/ns/b/__init__.py",
                "src/ns/c/__init__.py",
                pyproject=BACKEND + 'module-name = ["ns.a", "ns.b"]\n',
            ),
            ["ns", "ns.a", "ns.b"],
            id="several in a namespace",
        ),
        pytest.param(
            files(
                *SRC,
                pyproject=BACKEND + 'wheel-exclude = ["tests"]\nsource-exclude = ["/src/demo/data/**", "/src/demo"]\n',
            ),
            ["demo", "demo.core"],
            id="excludes",
        ),
        pytest.param(files(*FLAT, pyproject=NAME), [], id="nothing of that name"),
    ],
)
def test_uv_build(contents, expected):
    assert modules_by(uv_build.installed, contents)[1] == expected


def test_data_of_module_schemes_are_installed(subtests: pytest.Subtests):
    paths = ("src/demo/__init__.py", "src/demo/old.pyc", "more/extra.py", "more/sub/deep.py")
    cases = [
        ('data.purelib = "more"\n', ["demo", "extra", "sub", "sub.deep"]),
        ('data.platlib = "./more/sub/"\n', ["deep", "demo"]),
        ('data.data = "more"\ndata.scripts = "more"\n', ["demo"]),
        ("default-excludes = false\n", ["demo", "demo.old"]),
    ]
    for settings, expected in cases:
        with subtests.test(settings=settings):
            contents = files(*paths, pyproject=f"{NAME}[tool.uv.build-backend]\n{settings}")
            assert modules_by(uv_build.installed, contents) == ("uv module", expected)
            assert grade_of(uv_build.installed, contents) == "exact"


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        pytest.param(files(*FLAT, pyproject="[tool.poetry]\n"), WHOLE, "poetry name", id="by name"),
        pytest.param(files(*SRC, pyproject="[tool.poetry]\n"), WHOLE, "poetry name", id="by name in src"),
        pytest.param(
            files("demo.py", pyproject='[tool.poetry]\nname = "Demo"\n'), ["demo"], "poetry name", id="single module"
        ),
        pytest.param(
            files(
                "a/__init__.py",
                "from/b/x.py",
                "from/c/y.py",
                pyproject="[tool.poetry]\n"
                'packages = [{include = "a"}, {include = "b/**/*.py", from = "from"},'
                '{include = "c", from = "from", to = "to"}]\n',
            ),
            ["a", "b", "b.x", "to", "to.c", "to.c.y"],
            "poetry packages",
            id="include, from and to",
        ),
        pytest.param(
            files(
                *FLAT,
                pyproject="[tool.poetry]\n"
                'packages = [{include = "demo"}, {include = "tests", format = "sdist"}]\n'
                'include = [{path = "other.py", format = ["wheel"]}, "tests"]\n'
                'exclude = ["demo/data", "demo/tests/**/*.py"]\n'
                '[build-system]\nrequires = ["poetry-core>=2"]\n',
            ),
            ["demo", "demo.core", "other"],
            "poetry packages",
            id="formats, include and exclude",
        ),
        pytest.param(
            files(
                "demo.py",
                "tests/a.py",
                pyproject='[tool.poetry]\ninclude = ["tests"]\n[build-system]\nrequires = ["poetry-core<2"]\n',
            ),
            ["demo", "tests", "tests.a"],
            "poetry name",
            id="before version 2 an include went into wheels too",
        ),
        pytest.param(files("x.py", pyproject="[tool.poetry]\n"), [], None, id="nothing of that name"),
    ],
)
def test_poetry(contents, expected, by):
    assert modules_by(poetry.installed, contents) == (by, expected)


def test_poetry_first_matching_entry_decides():
    settings = """
        [build-system]
        requires = ["poetry-core>=2"]
        [tool.poetry]
        packages = [{include = "demo", to = "a"}, {include = "demo", to = "b"}]
        include = [{path = "demo/core.py", format = "wheel"}]
        exclude = ["demo/core.py", "demo/data"]
        """
    modules = modules_by(poetry.installed, files(*FLAT, pyproject=dedent(settings)))[1]
    assert modules == ["a", "a.demo", "a.demo.core", "a.demo.tests", "a.demo.tests.test_x"]


def test_sdist_only_packages_are_not_in_the_wheel():
    settings = '[tool.poetry]\nname = "demo"\npackages = [{include = "other.py", format = "sdist"}]\n'
    assert modules_by(poetry.installed, files(*FLAT, pyproject=settings)) == ("poetry name", WHOLE)
