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


def test_the_output_name_of_a_target_names_its_module():
    text = (
        "pybind11_add_module(target a.c)\nset_target_properties(\n  target other PROPERTIES\n  OUTPUT_NAME _core\n)\n"
    )
    contents = {"native/CMakeLists.txt": text + "install(TARGETS target LIBRARY DESTINATION .)\n"}
    assert cmake_modules(source_tree(contents), None, {}, source="native") == ("_core",)
    assert cmake_modules(source_tree(contents), None, {}, source="native", inside="demo/sub") == ("demo.sub._core",)


@pytest.mark.parametrize(
    "part",
    [
        "set_target_properties(x ",
        "set_target_properties(x PROPERTIES ",
        " PROPERTIES",
        "install(TARGETS x ",
        "set(a b",
        "${",
        "pybind11_add_module( ",
        "\t",
        "function(a b",
        "add_subdirectory(a)\n",
    ],
)
def test_long_files_take_no_time_without_end(part):
    contents = {f"{'a/' * depth}CMakeLists.txt": "pybind11_add_module(x)\n" + part * 20_000 for depth in range(3)}
    assert "demo.x" in cmake_modules(source_tree(contents), "demo", {})
