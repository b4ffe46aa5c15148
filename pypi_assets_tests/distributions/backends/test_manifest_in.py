"""Package data are the files that MANIFEST.in and SOURCES.txt name."""

import pytest

from pypi_assets.distributions.backends import setuptools
from pypi_assets.distributions.backends.manifest_in import condense_sources, manifest_files
from pypi_assets.distributions.members import folders_of
from pypi_assets.distributions.reader import make_record, read_distribution
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets_tests.builders import make_sdist
from pypi_assets_tests.distributions.backends.projects import NAME, files, grade_of, modules_by, source_tree

PACKAGE = f'{NAME}[tool.setuptools]\npackages = ["demo"]\n'
TREE = ("demo/__init__.py", "demo/a.py", "demo/data/x.py", "demo/sub/__init__.py", "demo/sub/y.py")
DATA, SUB = ["demo.data", "demo.data.x"], ["demo.sub", "demo.sub.y"]
SOURCES = "demo.egg-info/SOURCES.txt"
TOP_LEVEL = {"demo.egg-info/top_level.txt": "demo\n"}


def test_modules_included_by_manifest_in_are_data(subtests: pytest.Subtests):
    cases = [
        ("", []),
        ("recursive-include demo *.py", [*DATA, *SUB]),
        ("include demo/data/*.py demo/sub/y.py", [*DATA, *SUB]),
        ("graft demo\nprune demo/data", SUB),
        ("graft demo\nglobal-exclude x.py", SUB),
        ("graft d*", [*DATA, *SUB]),
        ("graft ./demo\nrecursive-exclude demo/sub *", DATA),
        ("graft demo\nexclude demo/sub/*.py demo/data/*", []),
        ("global-include y.py\n# graft demo", SUB),
        ("recursive-include demo \\\n  x.py  # more", DATA),
        ("recursive-include demo *.txt\nrecursive-include . *.py", []),
        ("include demo/**/*.py", [*DATA, *SUB]),
        ("include **/x.py", []),
        ("graft **/data", DATA),
        ("recursive-include **/sub *.py", SUB),
        ("graft demo\nexclude **/x.py", SUB),
        ("\ufeffgraft demo\ninclude demo/sub/y.py", SUB),
    ]
    for manifest, more in cases:
        with subtests.test(manifest=manifest):
            contents = files(*TREE, pyproject=PACKAGE) | {"MANIFEST.in": manifest}
            assert modules_by(setuptools.installed, contents)[1] == ["demo", "demo.a", *more]
            assert grade_of(setuptools.installed, contents) == "exact"


def test_modules_named_by_sources_txt_are_data(subtests: pytest.Subtests):
    cases = [
        (None, "", []),
        ("demo/__init__.py\n", "", []),
        ("./demo/data/x.py\r\n", "", DATA),
        ("\ufeffdemo/data/x.py\ndemo/sub/y.py\n", "", SUB),
        ("demo/data/x.py\ndemo/sub/y.py\n", "prune demo/data\n", SUB),
    ]
    for sources, manifest, more in cases:
        with subtests.test(sources=sources, manifest=manifest):
            egg_info = TOP_LEVEL | ({} if sources is None else {SOURCES: sources})
            contents = files(*TREE, pyproject=PACKAGE) | egg_info | {"MANIFEST.in": manifest}
            assert modules_by(setuptools.installed, contents)[1] == ["demo", "demo.a", *more]


def test_data_are_installed_depending_on_settings(subtests: pytest.Subtests):
    setup = "from setuptools import setup\n"
    cases = [
        ({"setup_py": f"{setup}setup(packages=['demo'])\n"}, [], "exact"),
        ({"setup_py": f"{setup}setup(packages=['demo'], include_package_data=True)\n"}, DATA, "exact"),
        ({"setup_py": f"{setup}setup(packages=['demo'], include_package_data=False)\n"}, [], "exact"),
        ({"setup_py": f"{setup}ALL = True\nsetup(packages=['demo'], include_package_data=ALL)\n"}, DATA, "derived"),
        ({"setup_cfg": "[options]\npackages = demo\ninclude_package_data = yes\n"}, DATA, "exact"),
        ({"pyproject": f"{PACKAGE}include-package-data = false\n"}, [], "exact"),
        (
            {
                "setup_cfg": "[options]\npackages = demo\ninclude_package_data = yes\n"
                "[options.exclude_package_data]\n* = data/*\n"
            },
            [],
            "exact",
        ),
    ]
    for settings, more, grade in cases:
        with subtests.test(settings=settings):
            contents = files("demo/__init__.py", "demo/data/x.py", **settings) | {"MANIFEST.in": "graft demo\n"}
            assert modules_by(setuptools.installed, contents)[1] == ["demo", *more]
            assert grade_of(setuptools.installed, contents) == grade


def test_bytecode_without_source_is_data(subtests: pytest.Subtests):
    paths = ("demo/__init__.py", "demo/x.pyc", "demo/data/y.pyc", "demo/__pycache__/z.cpython-312.pyc", "top.pyc")
    no_data = "include-package-data = false\n"
    cases = [
        ("", {}, []),
        ("", {"MANIFEST.in": "graft demo\n"}, ["demo.data", "demo.data.y", "demo.x"]),
        ("", {"MANIFEST.in": "graft demo\nglobal-exclude *.py[cod]\n"}, []),
        (no_data, {"MANIFEST.in": "graft demo\n"}, []),
        ("", TOP_LEVEL | {SOURCES: "demo/x.pyc\n"}, ["demo.x"]),
        ("", TOP_LEVEL | {SOURCES: "\0absent \n"}, []),
        (f'{no_data}[tool.setuptools.package-data]\ndemo = ["*.pyc"]\n', {}, ["demo.x"]),
        (
            '[tool.setuptools.exclude-package-data]\n"*" = ["x.*"]\n',
            {"MANIFEST.in": "graft demo\n"},
            ["demo.data", "demo.data.y"],
        ),
    ]
    for settings, more, expected in cases:
        with subtests.test(settings=settings, more=more):
            contents = files(*paths, pyproject=PACKAGE + settings) | more
            assert modules_by(setuptools.installed, contents)[1] == ["demo", *expected]
            assert grade_of(setuptools.installed, contents) == "exact"


def test_condensed_sources_txt_names_the_same_files(subtests: pytest.Subtests):
    members = folders_of(f"demo-1.0/{path}" for path in (*TREE, "setup.py", "demo/old.pyc"))
    name = f"demo-1.0/{SOURCES}"
    for listed in ([*TREE, "setup.py", "README"], ["setup.py"], []):
        with subtests.test(listed=listed):
            content = "\n".join(listed).encode()
            condensed = condense_sources(name, content, members)
            assert len(condensed) <= len(content)
            tree = source_tree(files(*TREE) | TOP_LEVEL | {SOURCES: ""})
            tree.files[SOURCES] = condensed.replace(b"not named demo-1.0/", b"not named ")
            assert manifest_files(tree, [*TREE, "demo/old.pyc"]) == ({*listed} & {*TREE}, True)


def test_missing_manifest_files_lower_the_grade(tmp_path, subtests: pytest.Subtests):
    contents = (
        files(*TREE, pyproject=PACKAGE) | TOP_LEVEL | {SOURCES: "\n".join(TREE), "MANIFEST.in": "prune demo/data\n"}
    )
    contents["demo.egg-info/PKG-INFO"] = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
    path = make_sdist(tmp_path, "demo", "1.0", files=contents)
    cases = [
        ((), ("demo", "demo.a", "demo.sub", "demo.sub.y"), ModulesGrade.EXACT),
        (("MANIFEST.in",), ("demo", "demo.a", *DATA, *SUB), ModulesGrade.DERIVED),
        ((SOURCES, "MANIFEST.in"), ("demo", "demo.a", *DATA, *SUB), ModulesGrade.DERIVED),
    ]
    for lost, modules, grade in cases:
        with subtests.test(lost=lost):
            with path.open("rb") as file:
                extract = read_distribution(file, path.name).extract
            for name in lost:
                del extract.files[f"demo-1.0/{name}"]
            record = make_record(extract, path.name)
            assert (record.modules, record.modules_grade) == (modules, grade)
