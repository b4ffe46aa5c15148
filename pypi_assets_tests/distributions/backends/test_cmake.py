"""The modules that CMakeLists.txt files build."""

import pytest

from pypi_assets.distributions.backends.cmake import cmake_modules
from pypi_assets_tests.distributions.backends.projects import CMAKE_FILES, source_tree


@pytest.mark.parametrize(
    ("package", "expected"), [("demo", ("demo.inner._fast", "demo._more")), (None, ("demo.inner._fast",))]
)
def test_folders_and_functions_are_followed(package, expected):
    assert cmake_modules(source_tree(CMAKE_FILES), package, {}) == expected


def test_names_can_have_variables():
    text = "set(NAME _core)\nPython_Extension_Module(${NAME})\ninstall(TARGETS ${NAME} LIBRARY DESTINATION ${WHERE})\n"
    assert cmake_modules(source_tree({"CMakeLists.txt": text}), None, {"WHERE": "demo"}) == ("demo._core",)
    assert cmake_modules(source_tree({"CMakeLists.txt": text}), None, {}) == ()


@pytest.mark.parametrize(
    "part",
    ["install(TARGETS x ", "set(a b", "${", "pybind11_add_module( ", "\t", "function(a b", "add_subdirectory(a)\n"],
)
def test_long_files_take_no_time_without_end(part):
    contents = {f"{'a/' * depth}CMakeLists.txt": "pybind11_add_module(x)\n" + part * 20_000 for depth in range(3)}
    assert "demo.x" in cmake_modules(source_tree(contents), "demo", {})
