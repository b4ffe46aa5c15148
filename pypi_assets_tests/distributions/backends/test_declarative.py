"""What the backends with a table of their own in pyproject.toml install: poetry, flit, hatchling, pdm and uv_build."""

import pytest

from pypi_assets.distributions.backends import flit, hatchling, pdm, poetry, uv_build
from pypi_assets_tests.distributions.backends.projects import files, modules_by

FLAT = ("demo/__init__.py", "demo/core.py", "demo/data/x.py", "demo/tests/test_x.py", "tests/test_core.py", "other.py")
SRC = tuple(f"src/{path}" for path in FLAT[:4])
WHOLE = ["demo", "demo.core", "demo.data", "demo.data.x", "demo.tests", "demo.tests.test_x"]
NAME = '[project]\nname = "demo"\n'


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
    ],
)
def test_flit(contents, expected):
    assert modules_by(flit.installed, contents)[1] == expected


WHEEL = "[tool.hatch.build.targets.wheel]\n"


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        pytest.param(files(*FLAT, pyproject=NAME), WHOLE, "hatch name", id="by name"),
        pytest.param(files(*SRC, pyproject=NAME), WHOLE, "hatch name", id="by name in src"),
        pytest.param(files("demo.py", "x.py", pyproject=NAME), ["demo"], "hatch name", id="single module"),
        pytest.param(
            files("ns/demo/__init__.py", "ns/more.py", "x.py", pyproject=NAME),
            ["ns", "ns.demo", "ns.more"],
            "hatch name",
            id="namespace",
        ),
        pytest.param(
            files(
                *SRC,
                "src/b.py",
                pyproject=WHEEL + 'packages = ["src/demo", "src/b.py"]\nexclude = ["tests/", "/src/demo/data"]\n',
            ),
            ["b", "demo", "demo.core"],
            "hatch settings",
            id="packages and exclude",
        ),
        pytest.param(
            files(*FLAT, pyproject=WHEEL + 'packages = ["demo", "other.py"]\nonly-packages = true\n'),
            ["demo", "demo.core", "other"],
            "hatch settings",
            id="only-packages",
        ),
        pytest.param(
            files(*FLAT, "__init__.py", pyproject=WHEEL + 'include = ["*.py"]\nonly-packages = true\n'),
            ["demo", "demo.core", "other"],
            "hatch settings",
            id="only-packages where the top is one",
        ),
        pytest.param(
            files(*FLAT, pyproject=WHEEL + 'include = ["/demo/*.py", "other.py", "!core.py"]\n'),
            ["demo", "other"],
            "hatch settings",
            id="include",
        ),
        pytest.param(
            files(
                *FLAT,
                pyproject='[tool.hatch.build]\ninclude = ["demo"]\n'
                + WHEEL
                + 'only-include = ["demo/core.py", "tests"]\n',
            ),
            ["demo", "demo.core", "tests", "tests.test_core"],
            "hatch settings",
            id="only-include, next to which include counts for nothing",
        ),
        pytest.param(
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
            id="sources",
        ),
        pytest.param(
            files(
                *FLAT,
                "lib/x.py",
                pyproject=NAME + WHEEL + 'exclude = ["demo/*/"]\n'
                '[tool.hatch.build.targets.wheel.force-include]\n"lib" = "demo/lib"\n'
                '"other.py" = "demo/o.py"\n',
            ),
            ["demo", "demo.core", "demo.lib", "demo.lib.x", "demo.o"],
            "hatch name",
            id="force-include",
        ),
        pytest.param(files("y.py", pyproject=NAME), [], None, id="nothing of that name"),
    ],
)
def test_hatchling(contents, expected, by):
    assert modules_by(hatchling.installed, contents) == (by, expected)


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
