"""The modules that hatchling installs."""

import pytest

from pypi_assets.distributions.backends import hatchling
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

WHEEL = "[tool.hatch.build.targets.wheel]\n"


def test_hatchling(subtests: pytest.Subtests):
    cases = [
        ("by name", files(*FLAT, pyproject=NAME), WHOLE, "hatch name"),
        ("by name in src", files(*SRC, pyproject=NAME), WHOLE, "hatch name"),
        ("single module", files("demo.py", "x.py", pyproject=NAME), ["demo"], "hatch name"),
        (
            "namespace",
            files("ns/demo/__init__.py", "ns/more.py", "x.py", pyproject=NAME),
            ["ns", "ns.demo", "ns.more"],
            "hatch name",
        ),
        (
            "packages and exclude",
            files(
                *SRC,
                "src/b.py",
                pyproject=WHEEL + 'packages = ["src/demo", "src/b.py"]\nexclude = ["tests/", "/src/demo/data"]\n',
            ),
            ["b", "demo", "demo.core"],
            "hatch settings",
        ),
        (
            "only-packages",
            files(*FLAT, pyproject=WHEEL + 'packages = ["demo", "other.py"]\nonly-packages = true\n'),
            ["demo", "demo.core", "other"],
            "hatch settings",
        ),
        (
            "only-packages where the top is one",
            files(*FLAT, "__init__.py", pyproject=WHEEL + 'include = ["*.py"]\nonly-packages = true\n'),
            ["demo", "demo.core", "other"],
            "hatch settings",
        ),
        (
            "include",
            files(*FLAT, pyproject=WHEEL + 'include = ["/demo/*.py", "other.py", "!core.py"]\n'),
            ["demo", "other"],
            "hatch settings",
        ),
        (
            "only-include, next to which include counts for nothing",
            files(
                *FLAT,
                pyproject='[tool.hatch.build]\ninclude = ["demo"]\n'
                + WHEEL
                + 'only-include = ["demo/core.py", "tests"]\n',
            ),
            ["demo", "demo.core", "tests", "tests.test_core"],
            "hatch settings",
        ),
        (
            "sources",
            files(
                *SRC,
                pyproject=WHEEL + 'only-include = ["src"]\n[tool.hatch.build.targets.wheel.sources]\n'
                '"src/demo" = "new/place"\n',
            ),
            [
                "new",
                "new.place",
                "new.place.core",
                "new.place.data",
                "new.place.data.x",
                "new.place.tests",
                "new.place.tests.test_x",
            ],
            "hatch settings",
        ),
        (
            "force-include",
            files(
                *FLAT,
                "lib/x.py",
                pyproject=NAME + WHEEL + 'exclude = ["demo/*/"]\n'
                '[tool.hatch.build.targets.wheel.force-include]\n"lib" = "demo/lib"\n'
                '"other.py" = "demo/o.py"\n',
            ),
            ["demo", "demo.core", "demo.lib", "demo.lib.x", "demo.o"],
            "hatch name",
        ),
        ("nothing of that name", files("y.py", pyproject=NAME), [], None),
    ]
    for case, contents, expected, by in cases:
        with subtests.test(case):
            assert modules_by(hatchling.installed, contents) == (by, expected)


def test_artifacts_override_exclusions():
    settings = '[tool.hatch.build.targets.wheel]\npackages = ["demo"]\nexclude = ["*.py"]\n'
    settings += 'artifacts = ["demo/core.py", "other.py"]\n'
    assert modules_by(hatchling.installed, files(*FLAT, pyproject=settings))[1] == ["demo", "demo.core"]


def test_wheel_without_modules_has_an_empty_list():
    settings = "[tool.hatch.build.targets.wheel]\nbypass-selection = true\n"
    assert modules_by(hatchling.installed, files("other.py", pyproject=settings)) == ("hatch name", [])


def found(contents: dict[str, str]) -> tuple[list[str], str | None]:
    return modules_by(hatchling.installed, contents)[1], grade_of(hatchling.installed, contents)


def test_hatch_toml_replaces_pyproject_tables(subtests: pytest.Subtests):
    build = '[tool.hatch.build]\nexclude = ["core.py"]\n' + WHEEL + 'packages = ["demo"]\n'
    cases = [
        ('[build.targets.wheel]\npackages = ["tests"]\n', ["tests", "tests.test_core"], "exact"),
        ('[build.targets.sdist]\nexclude = ["demo"]\n', WHOLE, "exact"),
        ("[envs.default]\n", [name for name in WHOLE if name != "demo.core"], "exact"),
        ('[build]\nhooks.custom = {}\n[build.targets.wheel]\npackages = ["other.py"]\n', ["other"], "derived"),
        ("[build\n", [name for name in WHOLE if name != "demo.core"], "guessed"),
    ]
    for hatch, expected, grade in cases:
        with subtests.test(hatch=hatch):
            contents = files(*FLAT, pyproject=NAME + build) | {"hatch.toml": hatch}
            assert found(contents) == (expected, grade)


def test_ignored_files_are_not_installed(subtests: pytest.Subtests):
    without_core = [name for name in WHOLE if name != "demo.core"]
    without_data = [name for name in WHOLE if name not in {"demo.data", "demo.data.x"}]
    cases = [
        (".gitignore", "# core.py\n\ncore.py\n", "", without_core, "exact"),
        (".gitignore", "/core.py\n*.log\n!x\n", "", WHOLE, "exact"),
        (".gitignore", "demo/**/x.py\r\n", "", without_data, "exact"),
        (".gitignore", "data/\n!x.py\n", "", WHOLE, "exact"),
        (".gitignore", "/demo/*\n!/demo/__init__.py\n!core.py\n", "", ["demo", "demo.core"], "exact"),
        (".gitignore", "*.py\n!demo/\n", "", [], "exact"),
        (".gitignore", "core.py\n", "ignore-vcs = true\n", WHOLE, "exact"),
        (".gitignore", "core.py\n", 'exclude = ["!core.py"]\n', WHOLE, "exact"),
        (".gitignore", "core.py\n", 'artifacts = ["core.py"]\n', WHOLE, "exact"),
        (".gitignore", "core.py\n", 'only-include = ["demo/core.py"]\n', ["demo", "demo.core"], "exact"),
        (".gitignore", "core.py\n", 'include = ["/demo/*.py"]\n', ["demo"], "exact"),
        (".gitignore", "*\n", "", WHOLE, "exact"),  # matches the build folder too, so no pattern counts
        (".gitignore", "tmp/\ncore.py\n", "", WHOLE, "derived"),  # a build below tmp/ would ignore these patterns
        (".gitignore", "tmp/\n", "", WHOLE, "exact"),
        (".hgignore", "core.py\n", "", WHOLE, "exact"),  # regular expressions are not read
        (".hgignore", "syntax: glob\ncore.py\nsyntax: regexp\ntests\n", "", without_core, "exact"),
    ]
    for name, ignored, settings, expected, grade in cases:
        with subtests.test(ignored=ignored, settings=settings):
            contents = files(*FLAT, pyproject=NAME + WHEEL + settings) | {name: ignored}
            assert found(contents) == (expected, grade)


def test_force_include_adds_files_and_folders(subtests: pytest.Subtests):
    place = "[tool.hatch.build.targets.wheel.force-include]\n"
    without_core = [name for name in WHOLE if name != "demo.core"]
    below_new = ["new", "new.core", "new.data", "new.data.x", "new.tests", "new.tests.test_x", "other"]
    cases = [
        ("a text that becomes a module", place + '"notes.txt" = "late.py"\n', [*WHOLE, "late"], "exact"),
        ("a module that becomes a text", place + '"demo/core.py" = "demo/core.txt"\n', without_core, "exact"),
        ("a module that moves", place + '"demo/core.py" = "z.py"\n', [*without_core, "z"], "exact"),
        ("ignored files", place + '"tests" = "checks"\n', ["checks", "checks.test_core", *WHOLE], "exact"),
        ("what is outside", place + '"../x.py" = "x.py"\n', WHOLE, "derived"),
        ("what is not there", place + '"x.py" = "y.py"\n', WHOLE, "derived"),
        ("where all files are walked", 'include = ["*.py"]\n' + place + '"demo" = "new"\n', below_new, "exact"),
    ]
    for case, settings, expected, grade in cases:
        with subtests.test(case):
            contents = files(*FLAT, "notes.txt", pyproject=NAME + WHEEL + settings) | {".gitignore": "test_core.py"}
            assert found(contents) == (expected, grade)


def test_empty_package_list_selects_everything():
    contents = files(*FLAT, pyproject=NAME + WHEEL + "packages = []\n")
    assert found(contents)[0] == [*WHOLE, "other", "tests", "tests.test_core"]


def test_windows_extensions_are_skipped_unless_artifacts(subtests: pytest.Subtests):
    for settings, expected in (("", ()), ('artifacts = ["*.pyd"]\n', ("demo.fast",))):
        with subtests.test(settings=settings):
            tree = source_tree(files("demo/__init__.py", "demo/fast.pyd", pyproject=NAME + WHEEL + settings))
            installed = hatchling.installed(tree)
            assert find_modules(installed.files).names == ("demo", *expected)


def test_files_written_by_hooks_are_installed(subtests: pytest.Subtests):
    cases = [
        ("vcs", 'version-file = "demo/_version.py"\n', [*WHOLE, "demo._version"], "derived"),
        ("version", 'path = "demo/core.py"\n', WHOLE, "exact"),
        ("version", 'path = "late.py"\n', WHOLE, "exact"),
        ("vcs", "version-file = 1\n", WHOLE, "exact"),
    ]
    for hook, settings, expected, grade in cases:
        with subtests.test(hook=hook, settings=settings):
            contents = files(*FLAT, pyproject=f"{NAME}[tool.hatch.build.hooks.{hook}]\n{settings}")
            assert found(contents) == (sorted(expected), grade)


def test_bytecode_is_installed_if_forced_or_artifact(subtests: pytest.Subtests):
    paths = ("demo/__init__.py", "demo/old.pyc", "x/y.pyc", "x/__pycache__/z.cpython-312.pyc")
    cases = [
        ("", ["demo"]),
        ('[tool.hatch.build.targets.wheel.force-include]\nx = "x"\n', ["demo", "x", "x.y"]),
        ('[tool.hatch.build.targets.wheel.force-include]\n"x/y.pyc" = "demo/y.pyc"\n', ["demo", "demo.y"]),
        ('[tool.hatch.build]\nartifacts = ["*.pyc"]\n', ["demo", "demo.old"]),
    ]
    for settings, expected in cases:
        with subtests.test(settings=settings):
            assert modules_by(hatchling.installed, files(*paths, pyproject=NAME + settings))[1] == expected


def test_ignore_patterns_match_as_in_hatchling(subtests: pytest.Subtests):
    cases = [
        ("\ufeffdemo/a.py\n", ["demo", "demo._x", "demo.a"]),
        ("\ufeff\ndemo/a.py\n", ["demo", "demo._x"]),
        ("demo/[^_]*.py\n", ["demo", "demo._x"]),
        ("demo/[!_]*.py\n", ["demo", "demo._x"]),
        ("demo/\\[^_]*.py\n", ["demo", "demo._x", "demo.a"]),
        ("demo/[_^]x.py\n", ["demo", "demo.a"]),
    ]
    for lines, expected in cases:
        with subtests.test(lines=lines):
            contents = files("demo/__init__.py", "demo/a.py", "demo/_x.py", pyproject=NAME) | {".gitignore": lines}
            assert modules_by(hatchling.installed, contents)[1] == expected
