"""What uv's build backend installs."""

import pytest

from pypi_assets.distributions.backends import uv_build
from pypi_assets_tests.distributions.backends.projects import FLAT, NAME, SRC, WHOLE, files, grade_of, modules_by

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


def test_data_of_the_schemes_of_modules_are_installed(subtests: pytest.Subtests):
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
