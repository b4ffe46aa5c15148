"""What whey, trampolim, py-build-cmake, enscons and sphinx-theme-builder install."""

import pytest

from pypi_assets.distributions.backends import named_package
from pypi_assets_tests.distributions.backends.projects import NAME, files, grade_of, modules_by

TREE = ("demo/__init__.py", "demo/a.py", "other/b.py", "src/demo/__init__.py", "src/demo/c.py", "src/one.py")

IN_SRC = ["demo", "demo.c"]
ONE_AND_DEMO = ["demo", "demo.a", "one"]


def test_the_package_of_the_settings_or_of_the_projects_name(subtests: pytest.Subtests):
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


def test_local_settings_of_py_build_cmake_leave_a_doubt():
    plain = files("demo/__init__.py", pyproject='[project]\nname = "demo"\n')
    assert grade_of(named_package.py_build_cmake, plain) == "exact"
    assert grade_of(named_package.py_build_cmake, plain | {"py-build-cmake.local.toml": ""}) == "guessed"
