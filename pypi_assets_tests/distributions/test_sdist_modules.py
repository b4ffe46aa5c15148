"""The rule that finds an sdist's modules: its backend's rule, the declared import names, or the layout."""

import json

import pytest

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.path_patterns import MAX_STEPS
from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import AMBIGUOUS, ModulesGrade
from pypi_assets.distributions.sdist_modules import SdistModules, find_sdist_modules
from pypi_assets_tests.builders import make_sdist
from pypi_assets_tests.distributions.backends.projects import NAME, files, source_tree
from pypi_assets_tests.distributions.named_backends import backend


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        (files("src/a/b.py", "c.py", pyproject=backend("unknown")), ("a", "a.b"), "src layout"),
        (files("other.py", "setup.py", "docs/conf.py", pyproject=backend("unknown")), ("other",), "flat layout"),
        (files("ns/a/b.py", "docs/conf.py", pyproject=backend("unknown")), ("ns", "ns.a", "ns.a.b"), "flat layout"),
        (files("a/__init__.py", "one.py", pyproject=backend("unknown")), ("a",), "flat layout"),
        (files("lib/x.py", setup_py="setup(packages=some())"), ("x",), "lib layout"),
        (files("lib/x.py", "demo/__init__.py", pyproject=backend("unknown")), ("demo",), "project's name"),
        (files("lib/demo/x.py", "demo/__init__.py", pyproject=backend("unknown")), ("demo", "demo.x"), "lib layout"),
    ],
)
def test_layout_of_unknown_or_missing_backend(contents, expected, by):
    modules = find_sdist_modules(source_tree(contents))
    assert (modules.names, modules.by, modules.grade) == (expected, by, "guessed")


def test_declared_import_names_come_before_the_layout():
    contents = files("src/a/b/__init__.py", "src/a/c.py", "src/d.py", pyproject=backend("unknown"))
    assert find_sdist_modules(source_tree(contents, declared=("a.b", "d"))).names == ("a", "a.b", "d")


MESON = {"x.py": "", "meson.build": "py.install_sources('x.py')"}


FLAT = "setuptools flat layout"


DEMO = ("demo/__init__.py", "demo/a.py", "tests/test_a.py")


def test_each_backend_has_its_rule(subtests: pytest.Subtests):
    cases = [
        (files(*DEMO, pyproject=backend("flit_core.buildapi")), ("demo", "demo.a"), "flit module"),
        (files(*DEMO, pyproject=backend("flit_scm:buildapi")), ("demo", "demo.a"), "flit module"),
        (files(*DEMO, pyproject=backend("hatchling.build")), ("demo", "demo.a"), "hatch name"),
        (files(*DEMO, pyproject=backend("poetry.masonry.api")), ("demo", "demo.a"), "poetry name"),
        (files(*DEMO, pyproject=backend("poetry_dynamic_versioning.backend")), ("demo", "demo.a"), "poetry name"),
        (files(*DEMO, pyproject=backend("pdm.pep517.api")), ("demo", "demo.a"), "pdm packages"),
        (files("src/demo/x.py", pyproject=backend("uv_build")), ("demo", "demo.x"), "uv module"),
        (files(*DEMO, pyproject=backend("maturin")), ("demo", "demo.a", "demo.demo"), "maturin"),
        (files(*DEMO, pyproject=backend("scikit_build_core.build")), ("demo", "demo.a"), "scikit-build name"),
        (files(*DEMO, pyproject=backend("scikit_build_core.setuptools.build_meta")), ("demo", "demo.a"), FLAT),
        (files(pyproject=backend("mesonpy")) | MESON, ("x",), "meson.build"),
        (files(*DEMO, "setup.py"), ("demo", "demo.a"), FLAT),
        (files(*DEMO, pyproject=backend("setuptools.build_meta:__legacy__")), ("demo", "demo.a"), FLAT),
        (files("py3/a.py", "b.py", setup_cfg="[options]\npackage_dir = = py3\n"), ("a",), "setuptools src layout"),
        (files("odd/place.py", "setup.py") | {"demo.egg-info/top_level.txt": "place\n"}, ("place",), "top_level.txt"),
    ]
    for contents, expected, by in cases:
        with subtests.test(contents=contents):
            modules = find_sdist_modules(source_tree(contents))
            assert (modules.names, modules.by) == (expected, by)


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        (
            files("_build/backend.py", *DEMO, pyproject=backend("backend", 'backend-path = ["_build"]\n')),
            ("demo", "demo.a"),
            "project's name",
        ),
        (
            files("b.py", "x/a.py", pyproject=backend("b", 'backend-path = ["."]\n[tool.flit.module]\nname = "x"\n')),
            ("x", "x.a"),
            "flit module",
        ),
        (
            files("b.py", "x/__init__.py", "y/__init__.py", pyproject=backend("b", 'backend-path = ["."]\n'))
            | {"x.egg-info/top_level.txt": "x\n"},
            ("x",),
            "top_level.txt",
        ),
    ],
)
def test_in_tree_and_unknown_backends(contents, expected, by):
    modules = find_sdist_modules(source_tree(contents))
    assert (modules.names, modules.by) == (expected, by)


@pytest.mark.parametrize(
    ("contents", "expected", "by"),
    [
        (files("src/ns/demo/x.py", pyproject=backend("pdm.backend")), (), "pdm packages"),
        (files("src/ns/demo/x.py", pyproject=backend("hatchling.build")), None, None),
        (files("lib/x.py", pyproject=backend("hatchling.build")), None, None),
        (files("src/other/x.py", pyproject=backend("flit_core.buildapi")), None, None),
        (files("src/other/x.py", pyproject=backend("poetry.core.masonry.api")), None, None),
        (files("src/other/x.py", pyproject=backend("uv_build")), None, None),
        (files("other/x.py", pyproject=backend("scikit_build_core.build")), None, None),
        (files("src/other/x.py", pyproject=backend("mesonpy")), None, None),
        (files("x.py", "a.py", pyproject=backend("maturin", '[tool.maturin]\nbindings = "bin"\n')), (), "maturin"),
    ],
)
def test_backend_without_result_adds_no_modules(contents, expected, by):
    modules = find_sdist_modules(source_tree(contents))
    assert (modules.names, modules.by) == (expected, by)
    declared = find_sdist_modules(source_tree(contents, declared=("x",)))
    assert declared.by in {by, "Import-Name"}


def test_missing_modules_are_unknown():
    assert find_sdist_modules(source_tree(files("README"))) == SdistModules()
    assert find_sdist_modules(source_tree(files("README", pyproject=backend("hatchling.build")))).names is None


def test_empty_package_list_means_no_modules():
    modules = find_sdist_modules(source_tree(files("demo.py", pyproject="[tool.setuptools]\npackages = []\n")))
    assert (modules.names, modules.by) == ((), "pyproject.toml packages")


def test_record_of_sdist_names_the_rule(tmp_path):
    contents = files("src/demo-stubs/__init__.pyi", "src/demo-stubs/x.pyi", pyproject=backend("uv_build"))
    record = read_path(make_sdist(tmp_path, "demo-stubs", "1.0", files=contents))
    assert (record.modules, record.modules_by, record.stubs) == ((), "uv module", ("demo", "demo.x"))


def test_backend_name_with_known_prefix_has_no_rule(tmp_path, subtests: pytest.Subtests):
    names = (
        "flit_evil.build",
        "flit_core.buildapi2",
        "setuptools_evil.build_meta",
        "setuptools.build_meta.evil",
        "hatchling.builder",
        "poetry_evil",
        "pdm.backend.evil",
        "maturin_evil:build",
        "uv_build_evil",
        "scikit_build_core.build2",
        "mesonpy_evil",
        "pbr.build.evil",
        "whey2",
    )
    for name in names:
        with subtests.test(name=name):
            pyproject = backend(
                name, '[project]\nname = "demo"\nversion = "1.0"\ndynamic = ["dependencies", "scripts"]\n'
            )
            path = make_sdist(tmp_path, "demo", "1.0", files=files(*DEMO, "setup.py", pyproject=pyproject))
            record = read_path(path)
            assert (record.modules_by, record.modules_grade) == ("project's name", ModulesGrade.GUESSED)
            assert (record.requires_dist, record.entry_points) == (None, None)
            assert [note for note in record.notes if note.startswith(AMBIGUOUS)]
            with_settings = files(*DEMO, pyproject=pyproject + '[tool.flit.module]\nname = "demo"\n')
            assert find_sdist_modules(source_tree(with_settings)).grade is ModulesGrade.GUESSED


def test_known_backend_has_no_doubt(tmp_path, subtests: pytest.Subtests):
    for name in (*BACKENDS.values(), "setuptools.build_meta:__legacy__"):
        with subtests.test(name=name):
            path = make_sdist(tmp_path, "demo", "1.0", files=files(*DEMO, pyproject=backend(name, NAME)))
            assert not [note for note in read_path(path).notes if note.startswith(AMBIGUOUS)]


BACKENDS = {
    "setuptools": "setuptools.build_meta",
    "poetry": "poetry.core.masonry.api",
    "flit": "flit_core.buildapi",
    "hatch": "hatchling.build",
    "pdm": "pdm.backend",
    "uv": "uv_build",
    "maturin": "maturin",
    "scikit-build": "scikit_build_core.build",
}


KEYS = (
    "packages packages.find packages.find.where package-dir py-modules ext-modules package-data exclude-package-data"
    " include exclude module module.name metadata.module build build.includes build.package-dir build.sources"
    " build.targets.wheel build.targets.wheel.packages build.targets.wheel.force-include build-backend.module-name"
    " build-backend.module-root module-name python-source python-packages manifest-path wheel.packages generate"
)


VALUES = ("1", '"x"', "[1]", "{a = 1}", '["x"]', "[{include = 1, path = 1}]", '{"" = "", x = ["y"]}', "true")


@pytest.mark.parametrize("tool", BACKENDS)
def test_settings_of_any_type_are_handled(tool):
    for key in KEYS.split():
        for value in VALUES:
            text = backend(BACKENDS[tool], f"[tool.{tool}]\n{key} = {value}\n[project]\nname = 1\n")
            modules = find_sdist_modules(source_tree(files(*DEMO, pyproject=text)))
            assert modules.names is None or modules.by is not None, (key, value)


MANY = tuple(f"d/m{number}.py" for number in range(3000))


LONG = "t" * 300


OFTEN = [f"t{number}" for number in range(1000)]


GLOBS = [f"**/m*{number}*x?" for number in range(1000)]


def tool_settings(tool: str, settings: object) -> str:
    """Return the pyproject.toml of a project that uses the tool. Inline tables and arrays are JSON with `=`."""
    return backend(BACKENDS[tool], "[tool]\n" + f"{tool} = {json.dumps(settings, separators=(',', '='))}\n")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("tool", "settings"),
    [
        ("maturin", {"module-name": "d", "python-packages": ["d"] * 1000}),
        ("uv", {"build-backend": {"module-root": "", "module-name": ["d"] * 1000}}),
        ("uv", {"build-backend": {"module-root": "", "module-name": "d", "wheel-exclude": GLOBS}}),
        ("scikit-build", {"wheel": {"packages": dict.fromkeys(OFTEN, "d")}}),
        ("scikit-build", {"wheel": {"packages": {LONG: "d"}}}),
        ("hatch", {"build": {"packages": ["d"], "force-include": {"d" + "/" * end: f"t{end}" for end in range(100)}}}),
        ("hatch", {"build": {"packages": ["d"], "sources": {"d": LONG}}}),
        ("hatch", {"build": {"include": [f"a{number}" for number in range(40_000)]}}),
        ("poetry", {"packages": [{"include": "d", "to": folder} for folder in OFTEN]}),
        ("poetry", {"packages": [{"include": glob} for glob in GLOBS]}),
        ("poetry", {"packages": [{"include": "d"}, {"include": "d", "to": LONG}]}),
        ("pdm", {"build": {"includes": ["d", *GLOBS], "excludes": GLOBS}}),
        ("setuptools", {"package-dir": dict.fromkeys(OFTEN, "d")}),
    ],
)  # fmt: skip
def test_settings_that_repeat_the_whole_tree_are_rejected(tool, settings):
    with pytest.raises(LimitExceededError):
        find_sdist_modules(source_tree(files(*MANY, pyproject=tool_settings(tool, settings))))


@pytest.mark.parametrize(
    ("tool", "settings"),
    [
        ("hatch", {"build": {"packages": ["d"] * 1000}}),
        ("hatch", {"build": {"packages": ["d"], "sources": dict.fromkeys(OFTEN, "d")}}),
        ("scikit-build", {"wheel": {"packages": ["d"] * 1000}}),
    ],
)
def test_repeated_settings_count_once(tool, settings):
    tree = source_tree(files(*MANY, pyproject=tool_settings(tool, settings)))
    assert len(find_sdist_modules(tree).names or ()) == len(MANY) + 1
    tree.effort.spend(MAX_STEPS // 2)


def test_many_sources_for_many_folders_are_rejected():
    settings = {"build": {"packages": ["d"], "sources": dict.fromkeys(OFTEN, "d")}}
    paths = [f"d/p{number}/m.py" for number in range(3000)]
    with pytest.raises(LimitExceededError):
        find_sdist_modules(source_tree(files(*paths, pyproject=tool_settings("hatch", settings))))


def test_large_projects_take_little_effort():
    """Use as many modules and folders as the largest real projects."""
    paths = [f"demo/p{package}/{name}.py" for package in range(700) for name in ("__init__", *"abcdefghi")]
    for tool in BACKENDS:
        text = backend(BACKENDS[tool], '[tool.uv.build-backend]\nmodule-root = ""\n')
        tree = source_tree(files("demo/__init__.py", *paths, pyproject=text))
        assert len(find_sdist_modules(tree).names or ()) >= 7001
        tree.effort.spend(MAX_STEPS * 9 // 10)


PROJECT = '[project]\nname = "demo"\nversion = "1"\n'
MODULE = ("demo/__init__.py", "demo/core.py")


def test_grade_depends_on_how_modules_were_found(subtests: pytest.Subtests):
    cases = [
        (files(*MODULE, pyproject=PROJECT + backend("flit_core.buildapi")), "exact"),
        (files(*MODULE, pyproject=PROJECT + backend("hatchling.build")), "exact"),
        (files(*MODULE, pyproject=PROJECT + backend("hatchling.build") + "[tool.hatch.build.hooks.vcs]\n"), "exact"),
        (
            files(*MODULE, pyproject=PROJECT + backend("hatchling.build") + "[tool.hatch.build.hooks.mypyc]\n"),
            "derived",
        ),
        (files(*MODULE, pyproject=PROJECT + backend("poetry.core.masonry.api")), "exact"),
        (files(*MODULE, pyproject=backend("poetry.core.masonry.api") + '[tool.poetry]\nbuild = "b.py"\n'), "derived"),
        (files(*MODULE, pyproject=PROJECT + backend("pdm.backend")), "exact"),
        (files(*MODULE, "pdm_build.py", pyproject=PROJECT + backend("pdm.backend")), "derived"),
        (files(*MODULE, pyproject=PROJECT + backend("maturin") + '[tool.maturin]\nmodule-name = "demo._x"\n'), "exact"),
        (files(*MODULE, pyproject=PROJECT + backend("maturin")), "derived"),
        (files(*MODULE, pyproject=PROJECT + backend("maturin") + "[tool.maturin]\nbindings = []\n"), "derived"),
        (files(*MODULE, pyproject=PROJECT + backend("scikit_build_core.build")), "exact"),
        (files(*MODULE, "CMakeLists.txt", pyproject=PROJECT + backend("scikit_build_core.build")), "derived"),
        (files(*MODULE, pyproject=PROJECT + backend("setuptools.build_meta")), "exact"),
        (files(*MODULE, pyproject=PROJECT + backend("own")), "guessed"),
        (files(*MODULE, "setup.py"), "guessed"),
        (
            files(*MODULE, pyproject=PROJECT + backend("hatchling.build") + "[tool.hatch.build]\nexclude = ['*']\n"),
            "guessed",
        ),
    ]
    for contents, expected in cases:
        with subtests.test(contents=contents):
            modules = find_sdist_modules(source_tree(contents))
            assert (None if modules.names is None else modules.grade.value) == expected


def test_in_tree_backend_lowers_the_grade():
    named = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    contents = files(*MODULE, setup_py="setup(packages=['demo'])", pyproject=named)
    modules = find_sdist_modules(source_tree(contents | {"demo.egg-info/top_level.txt": "demo\n"}))
    assert (modules.by, modules.grade) == ("setup.py packages", "derived")


def test_empty_declaration_next_to_packages_is_a_guess():
    contents = files(*MODULE, setup_py="setup(packages=[])")
    modules = find_sdist_modules(source_tree(contents))
    assert (modules.names, modules.grade) == ((), "guessed")
    assert find_sdist_modules(source_tree(files("setup.py", setup_py="setup(packages=[])"))).grade == "exact"
