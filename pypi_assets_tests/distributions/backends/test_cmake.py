"""The modules that CMakeLists.txt files build."""

import time

import pytest

from pypi_assets.distributions.backends.cmake import cmake_modules
from pypi_assets.distributions.members import paths_of
from pypi_assets_tests.distributions.backends.projects import CMAKE_FILES, source_tree


@pytest.mark.parametrize(
    ("package", "expected"), [("demo", ("demo.inner._fast", "demo._more")), (None, ("demo.inner._fast",))]
)
def test_folders_and_functions_are_followed(package, expected):
    assert cmake_modules(source_tree(CMAKE_FILES), package, {}).extensions == expected


def test_names_can_have_variables():
    text = "set(NAME _core)\nPython_Extension_Module(${NAME})\ninstall(TARGETS ${NAME} LIBRARY DESTINATION ${WHERE})\n"
    assert cmake_modules(source_tree({"CMakeLists.txt": text}), None, {"WHERE": "demo"}).extensions == ("demo._core",)
    assert cmake_modules(source_tree({"CMakeLists.txt": text}), None, {}).extensions == ()


def test_the_output_name_of_a_target_names_its_module():
    text = (
        "pybind11_add_module(target a.c)\nset_target_properties(\n  target other PROPERTIES\n  OUTPUT_NAME _core\n)\n"
    )
    contents = {"native/CMakeLists.txt": text + "install(TARGETS target LIBRARY DESTINATION .)\n"}
    assert cmake_modules(source_tree(contents), None, {}, source="native").extensions == ("_core",)
    assert cmake_modules(source_tree(contents), None, {}, source="native", inside="demo/sub").extensions == (
        "demo.sub._core",
    )


def test_long_files_take_no_time_without_end(subtests: pytest.Subtests):
    cases = [
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
    ]
    for part in cases:
        with subtests.test(part=part):
            contents = {
                f"{'a/' * depth}CMakeLists.txt": "pybind11_add_module(x)\n" + part * 20_000 for depth in range(3)
            }
            assert "demo.x" in cmake_modules(source_tree(contents), "demo", {}).extensions


def built(text, package="demo", paths=(), **more):
    tree = source_tree(dict.fromkeys(paths, "") | {"CMakeLists.txt": text})
    return cmake_modules(tree, package, {"SKBUILD": "2"}, **more).extensions


def test_what_cmake_follows(subtests: pytest.Subtests):
    cases = [
        ("a known condition", "if(NOT SKBUILD)\nmake(a)\nelse()\nmake(b)\nendif()", ["b"]),
        ("an unknown condition", "if(WIN32)\nmake(a)\nelse()\nmake(b)\nendif()", ["a", "b"]),
        (
            "options have their defaults",
            "option(TESTS t OFF)\nif(TESTS)\nmake(a)\nelseif(ON)\nmake(b)\nendif()",
            ["b"],
        ),
        (
            "what an unknown condition sets is not known",
            "set(X OFF)\nif(WIN32)\nset(X ON)\nendif()\nif(X)\nmake(a)\nendif()",
            ["a"],
        ),
        (
            "loops",
            "set(N a b)\nlist(APPEND N c)\nforeach(n IN LISTS N ITEMS d)\nmake(_${n})\nendforeach()",
            ["_a", "_b", "_c", "_d"],
        ),
        (
            "keywords of functions",
            (
                'function(mk)\ncmake_parse_arguments(P "" "NAME" "SRC" ${ARGN})\nmake(${P_NAME} ${P_SRC})\n'
                "endfunction()\nmk(NAME x SRC a.c b.c)\nmk(SRC a.c NAME y)"
            ),
            ["x", "y"],
        ),
        ("macro", "macro(mk n)\nset(${n}_made ${n})\nendmacro()\nmk(a)\nmake(${a_made})", ["a"]),
        ("return", "make(a)\nreturn()\nmake(b)", ["a"]),
        ("a return that may not be", "if(WIN32)\nreturn()\nendif()\nmake(b)", ["b"]),
        (
            "a module for each source",
            (
                "file(GLOB S src/*.cpp)\nforeach(f ${S})\nget_filename_component(n ${f} NAME_WE)\n"
                "Python_add_library(${n} MODULE ${f})\nendforeach()"
            ),
            ["x", "y"],
        ),
        ("no modules", "python_add_library(a STATIC a.c)\nadd_library(b SHARED b.c)", []),
        ("a function calls itself", "function(f)\nf()\nendfunction()\nf()\nmake(a)", ["a"]),
    ]
    for case, text, expected in cases:
        with subtests.test(case):
            text = text.replace("make(", "pybind11_add_module(")
            assert built(text, "", ["src/x.cpp", "src/y.cpp", "src/z.h"]) == tuple(expected)


def test_libraries_count_where_they_are_installed():
    text = "add_library(m SHARED a.c)\nadd_library(n SHARED a.c)\ninstall(TARGETS m LIBRARY DESTINATION demo/lib)\n"
    assert built(text) == ("demo.lib.libm",)


def test_names_are_those_on_linux():
    text = (
        "set(N a)\nif(MSVC)\nset(N b)\nendif()\npybind11_add_module(${N})\n"
        "if(WIN32 AND NOT X)\nset_target_properties(a PROPERTIES OUTPUT_NAME c)\nendif()\n"
    )
    assert built(text, "demo") == ("demo.a",)
    assert built(text.replace("WIN32 AND NOT X", "UNIX"), "demo") == ("demo.c",)


def test_files_come_from_the_sdist_and_from_the_build():
    text = "install(FILES x.py ${CMAKE_CURRENT_BINARY_DIR}/y.py none.py DESTINATION demo)\n"
    found = cmake_modules(source_tree({"x.py": "", "CMakeLists.txt": text}), None, {})
    assert paths_of(found.files) == ["demo/x.py", "demo/y.py"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "text",
    [
        "foreach(a 1 2 3 4 5 6 7 8 9 10)\n" * 12 + "set(x y)\n" + "endforeach()\n" * 12,
        "set(A ${A}${A}x)\n" * 5_000,
        "list(APPEND A a b c d e f)\n" * 20_000,
        "if(EXISTS x)\nendif()\n" * 20_000,
        "file(GLOB A *.c)\n" * 10_000,
        "if(A)\n" * 40_000,
        "".join(f"function(f{n})\nf{n + 1}()\nf{n + 1}()\nendfunction()\n" for n in range(200)) + "f0()\n",
        "set(" * 50_000,
        '"' * 100_001,
        "[" * 200_000,
        "".join(f"set(A{n} x)\nadd_subdirectory(d{n})\n" for n in range(4_000)),
    ],
)
def test_hostile_files_end(text):
    before = time.process_time()
    built(text, paths=[f"d{n}/a.c" for n in range(2_000)])
    assert time.process_time() - before < 5
