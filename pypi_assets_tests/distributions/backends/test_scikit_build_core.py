"""The modules that scikit-build-core installs."""

import pytest

from pypi_assets.distributions.backends import scikit_build_core
from pypi_assets_tests.distributions.backends.projects import CMAKE_FILES, files, grade_of, modules_by

CMAKE = "project(${SKBUILD_PROJECT_NAME})\nset(NAME _core)\npybind11_add_module(${NAME} a.cpp)\n"


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        pytest.param(
            files("src/demo/__init__.py", "src/demo/x.py", "tests/t.py", pyproject='[project]\nname = "demo"\n'),
            ["demo", "demo.x"],
            "scikit-build name",
            id="by name",
        ),
        pytest.param(
            files(
                "a/__init__.py",
                "lib/b/__init__.py",
                "lib/b/t.py",
                pyproject='[tool.scikit-build.wheel]\npackages = ["a", "lib/b"]\nexclude = ["t.py"]\n',
            ),
            ["a", "b"],
            "scikit-build packages",
            id="packages and exclude",
        ),
        pytest.param(
            files("lib/x.py", pyproject='[tool.scikit-build.wheel.packages]\n"ns/demo" = "lib"\n'),
            ["ns", "ns.demo", "ns.demo.x"],
            "scikit-build packages",
            id="packages as a table",
        ),
        pytest.param(
            files("demo/__init__.py")
            | {"CMakeLists.txt": CMAKE + "install(TARGETS ${NAME} LIBRARY DESTINATION demo/sub)\n"},
            ["demo", "demo.sub", "demo.sub._core"],
            "scikit-build name",
            id="a module that CMake installs",
        ),
        pytest.param(
            files(
                "src/demo/__init__.py",
                pyproject='[tool.scikit-build]\ncmake.source-dir = "native"\nwheel.install-dir = "demo/sub"\n'
                'cmake.define = {BACKEND = "_fast", LEVEL = {env = "LEVEL"}, DEBUG = false}\n',
            )
            | {
                "native/CMakeLists.txt": "pybind11_add_module(${BACKEND} a.c)\n"
                "install(TARGETS ${BACKEND} DESTINATION .)\n"
            },
            ["demo", "demo.sub", "demo.sub._fast"],
            "scikit-build name",
            id="settings of CMake's source, of definitions and of the folder to install to",
        ),
        pytest.param(
            files("demo/__init__.py", pyproject='[[tool.scikit-build.generate]]\npath = "demo/_version.py"\n'),
            ["demo", "demo._version"],
            "scikit-build name",
            id="a generated module",
        ),
        pytest.param(files("x.py"), [], None, id="nothing of that name"),
        pytest.param(
            files(
                "a/x.py",
                "a/t.py",
                "b.py",
                pyproject='[tool.scikit-build.wheel]\npackages = ["a", "b.py"]\nexclude = ["/t.py"]\n',
            ),
            ["a", "a.x", "b"],
            "scikit-build packages",
            id="a single module, and a path in a package",
        ),
        pytest.param(
            files(
                "src/x.py",
                "src/y.py",
                pyproject='[project]\nname = "demo"\n[tool.scikit-build]\nwheel.exclude = ["y.py"]\n',
            )
            | {"CMakeLists.txt": "install(DIRECTORY src/ DESTINATION ${SKBUILD_PROJECT_NAME})\n"},
            ["demo", "demo.x"],
            "scikit-build name",
            id="what CMake copies",
        ),
    ],
)
def test_scikit_build_core(contents, expected, by):
    assert modules_by(scikit_build_core.installed, contents) == (by, expected)


def test_cmake_is_followed_into_folders_and_functions():
    contents = files("demo/__init__.py") | CMAKE_FILES
    expected = ["demo", "demo._more", "demo.inner", "demo.inner._fast"]
    assert modules_by(scikit_build_core.installed, contents)[1] == expected


@pytest.mark.parametrize(
    ("overrides", "expected", "grade"),
    [
        ("", ["demo"], "exact"),
        (
            "[[tool.scikit-build.overrides]]\nif.any.env.FULL = true\nwheel.cmake = true\n",
            ["demo", "demo._more", "demo.inner", "demo.inner._fast"],
            "derived",
        ),
    ],
)
def test_disabled_cmake_builds_nothing_unless_overridden(overrides, expected, grade):
    contents = files("demo/__init__.py", pyproject="[tool.scikit-build]\nwheel.cmake = false\n" + overrides)
    assert modules_by(scikit_build_core.installed, contents | CMAKE_FILES)[1] == expected
    assert grade_of(scikit_build_core.installed, contents | CMAKE_FILES) == grade


@pytest.mark.nightly
@pytest.mark.parametrize("part", ["install(TARGETS x ", "set(a b", "${", "pybind11_add_module( ", "\t", "function(a b"])
def test_long_cmake_files_take_bounded_time(part):
    contents = files("demo/__init__.py") | {"CMakeLists.txt": "pybind11_add_module(x)\n" + part * 20_000}
    assert "demo" in modules_by(scikit_build_core.installed, contents)[1]


PLAIN = '[project]\nname = "demo"\n[tool.scikit-build]\nwheel.cmake = false\n'
OVERRIDE = "[[tool.scikit-build.overrides]]\n"


def test_overrides_add_modules(subtests: pytest.Subtests):
    version = f'{OVERRIDE}if.python-version = ">=3.8"\n'
    system = f'{OVERRIDE}if.any.platform-system = "linux"\n'
    cases = [
        (version + 'wheel.packages = ["other"]\n', ["demo", "demo.a", "other"], "derived"),
        (version + 'wheel.exclude = ["a.py"]\n', ["demo", "demo.a"], "derived"),
        (
            version + 'inherit.wheel.packages = "append"\nwheel.packages = ["other"]\n',
            ["demo", "demo.a", "other"],
            "derived",
        ),
        (version + 'wheel.packages = ["other"]\n' + system + 'wheel.packages = ["lib"]\n', 5, "derived"),
        (version + 'wheel.force-include = {"notes.txt" = "late.py"}\n', ["demo", "demo.a", "late"], "derived"),
        (version + 'logging.level = "INFO"\n', ["demo", "demo.a"], "exact"),
        (f'{OVERRIDE}if.state = "sdist"\nwheel.packages = ["other"]\n', ["demo", "demo.a"], "exact"),
        (f"{OVERRIDE}wheel = 1\nif = 2\n", ["demo", "demo.a"], "exact"),
    ]
    for overrides, expected, grade in cases:
        with subtests.test(overrides=overrides):
            paths = ("demo/__init__.py", "demo/a.py", "other/__init__.py", "lib/x.py", "notes.txt")
            contents = files(*paths, pyproject=PLAIN + overrides)
            modules = modules_by(scikit_build_core.installed, contents)[1]
            assert modules == expected or len(modules) == expected
            assert grade_of(scikit_build_core.installed, contents) == grade


def test_force_included_files_are_installed():
    settings = PLAIN + 'wheel.exclude = ["y.py"]\n[tool.scikit-build.wheel.force-include]\n"notes.txt" = "late.py"\n'
    settings += '"lib" = "demo/lib"\n"data.txt" = "${SKBUILD_DATA_DIR}/x.py"\n'
    contents = files("demo/__init__.py", "lib/x.py", "lib/y.py", "notes.txt", "data.txt", pyproject=settings)
    assert modules_by(scikit_build_core.installed, contents)[1] == ["demo", "demo.lib", "demo.lib.x", "late"]


def test_gitignored_files_lower_the_grade(subtests: pytest.Subtests):
    for path in (".gitignore", "demo/.gitignore"):
        with subtests.test(path=path):
            assert grade_of(scikit_build_core.installed, files("demo/__init__.py", path, pyproject=PLAIN)) == "derived"
