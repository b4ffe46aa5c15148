"""The file of an sdist that declares its requirements, and when they are unknown, which differs from none."""

import pytest

from pypi_assets.distributions.backends.hatch_settings import with_own_extras
from pypi_assets.distributions.extract import decode_extract, encode_extract
from pypi_assets.distributions.reader import make_record, read_distribution, read_path
from pypi_assets.distributions.record import AMBIGUOUS, DistributionRecord, ModulesGrade
from pypi_assets_tests.builders import core_metadata, make_sdist

PROJECT = '[project]\nname = "demo"\nversion = "1.0"\n'
OPTIONAL = "[project.optional-dependencies]\nX_y = [\"b; os_name == 'nt' or os_name == 'posix'\"]\n"
EGG_INFO = {"demo.egg-info/PKG-INFO": core_metadata("demo", "1.0"), "demo.egg-info/requires.txt": "c\n[e]\nd\n"}
NO_REQUIRES = {"demo.egg-info/PKG-INFO": core_metadata("demo", "1.0")}
OPTIONAL_FIELD = "optional-dependencies"
SETUP = "from setuptools import setup\n"
SETUPTOOLS = "[tool.setuptools.dynamic]\ndependencies = "
INSTALLS_A = f"{SETUP}setup(install_requires=['a'])"
FROM_FILE = "[options]\ninstall_requires = file: requirements.txt\n"
FROM_CFG = "[options]\ninstall_requires = a\n"


def dynamic(*fields: str) -> str:
    return f"{PROJECT}dynamic = {list(fields)}\n"


def read(folder, files: dict[str, str], **arguments) -> DistributionRecord:
    record = read_path(make_sdist(folder, "demo", "1.0", files={"demo.py": "", **files}, **arguments))
    assert record.error is None
    return record


def test_first_file_with_requirements_wins(tmp_path, subtests: pytest.Subtests):
    cases = [
        # PKG-INFO since 2.2 comes first, unless it declares them as dynamic
        (
            {"metadata_version": "2.2", "requires_dist": ["p"]},
            {"pyproject.toml": f'{PROJECT}dependencies = ["p"]'},
            ("p",),
            "static PKG-INFO",
        ),
        ({"metadata_version": "2.4"}, EGG_INFO, (), "static PKG-INFO"),
        ({"metadata_version": "2.10", "requires_dist": ["p"]}, {}, ("p",), "static PKG-INFO"),
        (
            {"metadata_version": "2.2", "requires_dist": ["p"], "extra_headers": [("Dynamic", "Requires-Dist")]},
            EGG_INFO,
            ("c", 'd; extra == "e"'),
            "requires.txt",
        ),
        (
            {"metadata_version": "2.3", "requires_dist": ["p"], "extra_headers": [("Dynamic", "requires-dist")]},
            {},
            ("p",),
            "PKG-INFO",
        ),
        # [project]
        (
            {"requires_dist": ["p"]},
            {"pyproject.toml": f'{PROJECT}dependencies = ["a >= 1"]\n{OPTIONAL}', **EGG_INFO},
            ("a >= 1", "b; (os_name == 'nt' or os_name == 'posix') and extra == \"x-y\""),
            "pyproject.toml",
        ),
        ({}, {"pyproject.toml": PROJECT}, (), "pyproject.toml"),
        ({}, {"pyproject.toml": dynamic("version"), "setup.py": INSTALLS_A}, (), "pyproject.toml"),
        ({}, {"pyproject.toml": dynamic("dependencies"), **EGG_INFO}, ("c", 'd; extra == "e"'), "requires.txt"),
        ({}, {"pyproject.toml": dynamic(OPTIONAL_FIELD), **EGG_INFO}, ("c", 'd; extra == "e"'), "requires.txt"),
        ({}, {"pyproject.toml": "[project]\ndependencies = ['no-name']"}, None, None),
        ({}, {"pyproject.toml": "[project\n"}, None, None),
        # the build backends' own tables
        (
            {"requires_dist": ["p"]},
            {"pyproject.toml": '[tool.poetry]\nname = "demo"\n[tool.poetry.dependencies]\npython = "^3"\na = "^1.2"'},
            ("a>=1.2,<2.0",),
            "pyproject.toml (poetry)",
        ),
        (
            {},
            {"pyproject.toml": f'{dynamic("dependencies")}[tool.poetry.dependencies]\na = "1"'},
            ("a==1",),
            "pyproject.toml (poetry)",
        ),
        (
            {"requires_dist": ["p"]},
            {"pyproject.toml": '[tool.poetry]\nname = "demo"\n[tool.poetry.dependencies]\na = {path = "../a"}'},
            ("p",),
            "PKG-INFO",
        ),
        (
            {},
            {
                "pyproject.toml": '[tool.flit.metadata]\nmodule = "demo"\nrequires = ["a"]\ndev-requires = ["b"]\n'
                '[tool.flit.metadata.requires-extra]\nx = ["c"]'
            },
            ("a", 'c; extra == "x"', 'b; extra == "dev"'),
            "pyproject.toml (flit)",
        ),
        ({}, {"pyproject.toml": '[tool.flit.metadata]\nmodule = "demo"'}, (), "pyproject.toml (flit)"),
        # the .egg-info
        ({"requires_dist": ["p"]}, EGG_INFO, ("c", 'd; extra == "e"'), "requires.txt"),
        ({}, NO_REQUIRES, (), ".egg-info without requires.txt"),
        ({}, {**NO_REQUIRES, "setup.py": f"{SETUP}setup(install_requires=r)"}, (), ".egg-info without requires.txt"),
        ({"requires_dist": ["p"]}, NO_REQUIRES, ("p",), "PKG-INFO"),
        ({}, {"demo.egg-info/SOURCES.txt": ""}, None, None),
        # PKG-INFO before 2.2, alone
        ({"requires_dist": ["p"]}, {}, ("p",), "PKG-INFO"),
        ({"requires_dist": ["p"]}, {"setup.py": f"{SETUP}setup(name='demo')"}, ("p",), "PKG-INFO"),
        ({"requires_dist": ["p"]}, {"setup.py": f"{SETUP}setup(install_requires=[])"}, (), "setup.py"),
        ({"metadata_version": "1.0"}, {}, None, None),
        ({"metadata_version": "two"}, {}, None, None),
    ]
    for arguments, files, requires_dist, rule in cases:
        with subtests.test(arguments=arguments, files=files):
            record = read(tmp_path, files, **arguments)
            assert (record.requires_dist, record.requires_by) == (requires_dist, rule)


def test_setuptools_without_egg_info(tmp_path, subtests: pytest.Subtests):
    cases = [
        ({"setup.cfg": "[options]\ninstall_requires =\n    a>1\n    # no\n    b\n"}, ("a>1", "b"), "setup.cfg"),
        ({"setup.cfg": "[options]\ninstall_requires = a>1; b\n"}, ("a>1", "b"), "setup.cfg"),
        (
            {"setup.cfg": "[options]\ninstall_requires =\n a; os_name=='nt'\n[options.extras_require]\nX_y =\n b\n"},
            ("a; os_name=='nt'", 'b; extra == "x-y"'),
            "setup.cfg",
        ),
        ({"setup.cfg": "[options.extras_require]\nx = b\n"}, ('b; extra == "x"',), "setup.cfg"),
        ({"setup.cfg": "[options]\nzip_safe = no\n"}, (), "setup.py"),
        ({"setup.cfg": "[bdist_wheel]\nuniversal = 1\n"}, None, None),
        (
            {"setup.cfg": FROM_FILE, "requirements.txt": "a # b\n#\n\nc\n"},
            ("a", "c"),
            "setup.cfg",
        ),
        ({"setup.cfg": "[options]\ninstall_requires = file: other.txt\n"}, None, None),
        ({"setup.cfg": FROM_FILE, "requirements.txt": "-r x\n"}, None, None),
        (
            {"setup.cfg": FROM_CFG, "setup.py": f"{SETUP}setup(install_requires=['b'])"},
            ("b",),
            "setup.py",
        ),
        ({"setup.cfg": FROM_CFG, "setup.py": f"{SETUP}setup()"}, ("a",), "setup.cfg"),
        ({"setup.cfg": FROM_CFG, "setup.py": f"{SETUP}setup(install_requires=[])"}, ("a",), "setup.cfg"),
        ({"setup.cfg": FROM_CFG, "setup.py": f"{SETUP}setup(install_requires=[], **unknown)"}, None, None),
        (
            {"setup.cfg": "[options.extras_require]\nx = b\n", "setup.py": f"{SETUP}setup(extras_require={{}})"},
            ('b; extra == "x"',),
            "setup.cfg",
        ),
        ({"setup.cfg": "[options]\ninstall_requires =\n    a>1 # why\n    b#c\n"}, ("a>1", "b#c"), "setup.cfg"),
        ({"setup.py": f"{SETUP}setup(install_requires='a\\n# c\\nb  # d')"}, ("a", "b"), "setup.py"),
        (
            {"setup.cfg": "[options.extras_require]\nt =\n    a\n    b\nall =\n    %(t)s\n    c\n"},
            (*(f'{name}; extra == "t"' for name in "ab"), *(f'{name}; extra == "all"' for name in "abc")),
            "setup.cfg",
        ),
        ({"setup.cfg": "[options]\ninstall_requires =\n    a\n    %(unknown)s\n"}, None, None),
        ({"setup.cfg": FROM_CFG, "setup.py": f"{SETUP}setup(**unknown)"}, None, None),
        (
            {"setup.cfg": "[options.extras_require]\nx = b\n", "setup.py": f"{SETUP}setup(install_requires=['a'])"},
            ("a", 'b; extra == "x"'),
            "setup.py",
        ),
        (
            {
                "setup.py": f"{SETUP}extras = {{'x': ['b'], ':os_name==\"nt\"': 'c'}}\n"
                "setup(install_requires=['a  >1'], extras_require=extras)"
            },
            ("a >1", 'b; extra == "x"', 'c; os_name=="nt"'),
            "setup.py",
        ),
        ({"setup.py": f"{SETUP}setup(name='demo')"}, (), "setup.py"),
        ({"setup.py": "from distutils.core import setup\nsetup(name='demo', requires=['a'])"}, (), "setup.py"),
        ({"setup.py": f"{SETUP}setup(install_requires=open('r').read())"}, None, None),
        ({"setup.py": f"{SETUP}setup(install_requires=['a'], extras_require=unknown)"}, None, None),
        ({"setup.py": f"{SETUP}setup(name='demo', **unknown)"}, None, None),
        ({"setup.py": f"{SETUP}if x: setup(install_requires=['a'])\nelse: setup()"}, None, None),
        ({"setup.py": "print(1)\n"}, None, None),
        ({"setup.py": f"{SETUP}setup(", "setup.cfg": FROM_CFG}, None, None),
        (
            {"setup.py": f"{SETUP}setup()", "pyproject.toml": '[build-system]\nbuild-backend = "other"'},
            None,
            None,
        ),
        (
            {
                "pyproject.toml": f'{dynamic("dependencies")}{SETUPTOOLS}{{file = "requirements.txt"}}',
                "requirements.txt": "a\n",
            },
            ("a",),
            "pyproject.toml",
        ),
        (
            {"pyproject.toml": f'{dynamic("dependencies")}{SETUPTOOLS}{{file = ["other.txt"]}}'},
            None,
            None,
        ),
        (
            {"pyproject.toml": dynamic("dependencies") + OPTIONAL, "setup.py": f"{SETUP}setup(install_requires=['a'])"},
            ("a", "b; (os_name == 'nt' or os_name == 'posix') and extra == \"x-y\""),
            "setup.py",
        ),
        # pbr
        ({"setup.cfg": "[files]\npackages = demo\n", "requirements.txt": "a>1\n"}, ("a>1",), "requirements.txt (pbr)"),
        (
            {"setup.py": f"{SETUP}setup(setup_requires=['pbr'], pbr=True)", "requirements.txt": "a>1\n"},
            ("a>1",),
            "requirements.txt (pbr)",
        ),
        ({"setup.py": f"{SETUP}setup(setup_requires=['pbr'], pbr=True)"}, None, None),
        ({"setup.py": f"{SETUP}setup(name='demo')", "requirements.txt": "a\n"}, (), "setup.py"),
    ]
    for files, requires_dist, rule in cases:
        with subtests.test(files=files):
            record = read(tmp_path, files, metadata_version="1.0")
            assert (record.requires_dist, record.requires_by) == (requires_dist, rule)


@pytest.mark.parametrize(
    ("files", "extras"),
    [
        ({"pyproject.toml": PROJECT + OPTIONAL}, ("x-y",)),
        (EGG_INFO, ("e",)),
        ({"setup.py": f"{SETUP}setup(extras_require={{'T_t': []}})"}, ("t-t",)),
    ],
)
def test_extras_come_from_the_same_rule(tmp_path, files, extras):
    assert read(tmp_path, files).provides_extra == extras


def test_extras_of_pkg_info(tmp_path):
    assert read(tmp_path, {}, metadata_version="2.2", provides_extra=["A_b"]).provides_extra == ("A_b",)


def test_control_characters_are_replaced(tmp_path):
    files = {
        "setup.py": f"{SETUP}extras = {{':os_name==\"\\0\"': ['b']}}\n"
        "setup(install_requires=['a\\0>1\\x1b'], extras_require=extras)"
    }
    assert read(tmp_path, files).requires_dist == ("a >1", 'b; os_name==" "')
    assert read(tmp_path, {"pyproject.toml": f'{PROJECT}dependencies = ["a\\u0000"]'}).requires_dist == ("a",)


def test_stored_extract_gives_the_same_record(tmp_path):
    files = {"pyproject.toml": f'{PROJECT}dependencies = ["é"]\ndate = 2020-01-01\n[tool.x]\n"a.b" = [1.5, nan]\n'}
    path = make_sdist(tmp_path, "demo", "1.0", files=files)
    with path.open("rb") as source:
        reading = read_distribution(source, path.name, hash_content=False)
    assert reading.record.requires_dist == ("é",)
    assert make_record(decode_extract(encode_extract(reading.extract)), path.name) == reading.record


@pytest.mark.parametrize("content", ['{"project": {"name": "x", "dependencies": ["a"]}}', "a = [", "n = " + "9" * 40])
def test_invalid_pyproject_is_ignored(tmp_path, content):
    record = read(tmp_path, {"pyproject.toml": content})
    assert record.requires_dist is None
    assert any("pyproject.toml is broken" in note for note in record.notes) is not content.startswith("n")


def test_build_settings_override_different_metadata(tmp_path, subtests: pytest.Subtests):
    static = {"metadata_version": "2.2", "requires_dist": ["benign"]}
    setup_py = {"setup.py": f"{SETUP}setup(install_requires=['evil'])"}
    requires_txt = {**NO_REQUIRES, "demo.egg-info/requires.txt": "benign\n"}
    project = {"pyproject.toml": f'{PROJECT}dependencies = ["evil"]'}
    cases = [
        (static, project, ("evil",), "pyproject.toml"),
        (static, setup_py, ("evil",), "setup.py"),
        (
            static,
            {"setup.cfg": FROM_CFG.replace("= a", "= evil"), "setup.py": f"{SETUP}setup()"},
            ("evil",),
            "setup.cfg",
        ),
        ({}, requires_txt | setup_py, ("evil",), "setup.py"),
        ({}, NO_REQUIRES | setup_py, ("evil",), "setup.py"),
        (static, {"pyproject.toml": f'{PROJECT}dependencies = ["benign>=2"]'}, ("benign>=2",), "pyproject.toml"),
    ]
    for arguments, files, expected, by in cases:
        with subtests.test(arguments=arguments, files=files):
            record = read(tmp_path, files, **arguments)
            assert (record.requires_dist, record.requires_by) == (expected, by)
            assert len([note for note in record.notes if note.startswith(AMBIGUOUS)]) == 1


def test_possible_plugin_output_is_not_a_difference(tmp_path):
    files = {**NO_REQUIRES, "demo.egg-info/requires.txt": "a\n", "setup.py": f"{SETUP}setup(name='demo')"}
    record = read(tmp_path, files)
    assert (record.requires_dist, record.requires_by) == (("a",), "requires.txt")
    assert not [note for note in record.notes if note.startswith(AMBIGUOUS)]


def test_equivalent_requirements_have_no_note(tmp_path, subtests: pytest.Subtests):
    written = ["Foo_bar (>=1.0,<2)", "b ; (python_version < '3')", 'c[y,X]; extra == "t"', "d @ https://example.org/d"]
    declared = ["foo-bar<2.0.0, >=1", 'b; python_version<"3"', "d@ https://example.org/d"]
    pyproject = f'{PROJECT}dependencies = {declared}\n[project.optional-dependencies]\nt = ["c[x, Y]"]\n'
    record = read(tmp_path, {"pyproject.toml": pyproject}, metadata_version="2.2", requires_dist=written)
    assert record.requires_by == "static PKG-INFO"
    assert not [note for note in record.notes if note.startswith(AMBIGUOUS)]


def test_egg_info_of_another_project_is_ignored(tmp_path, subtests: pytest.Subtests):
    for name, expected in (("demo", ("c",)), ("Other", None)):
        with subtests.test(name=name):
            files = {"x.egg-info/PKG-INFO": core_metadata(name, "1.0"), "x.egg-info/requires.txt": "c\n"}
            record = read(tmp_path, files | {"setup.py": f"{SETUP}setup(install_requires=unknown)"})
            assert record.requires_dist == expected
            assert bool([note for note in record.notes if note.startswith(AMBIGUOUS)]) is (name != "demo")


def test_in_tree_plugins_are_noted(tmp_path, subtests: pytest.Subtests):
    cases = [
        ("setuptools.finalize_distribution_options", "setuptools.build_meta", True),
        ("distutils.commands", "setuptools.build_meta", True),
        ("egg_info.writers", "setuptools.build_meta", True),
        ("console_scripts", "setuptools.build_meta", False),
        ("distutils.commands", "hatchling.build", False),
    ]
    for group, backend, has_note in cases:
        with subtests.test(group=group, backend=backend):
            declared = f'[project.entry-points."{group}"]\nz = "plug:f"\n'
            pyproject = f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n{PROJECT}{declared}'
            files = {"pyproject.toml": pyproject, "demo.egg-info/entry_points.txt": f"[{group}]\nz = plug:f\n"}
            record = read(tmp_path, files)
            assert bool([note for note in record.notes if note.startswith(AMBIGUOUS)]) is has_note
            assert (record.modules_grade is ModulesGrade.EXACT) is not has_note


def test_in_tree_hooks_are_noted(tmp_path, subtests: pytest.Subtests):
    custom = "[tool.hatch.metadata.hooks.custom]\n"
    cases = [
        ("pdm.backend", PROJECT, {"pdm_build.py": ""}, True),
        ("pdm.backend", f'{PROJECT}[tool.pdm.build]\ncustom-hook = "hook.py"\n', {}, True),
        ("pdm.backend", PROJECT, {"tools/pdm_build.py": ""}, False),
        ("hatchling.build", PROJECT, {"pdm_build.py": ""}, False),
        ("hatchling.build", dynamic("dependencies") + custom, {}, True),
        ("hatchling.build", dynamic(OPTIONAL_FIELD), {"hatch.toml": "[metadata.hooks.custom]\n"}, True),
        ("hatchling.build", dynamic("readme") + custom, {}, False),
        ("hatchling.build", dynamic("dependencies") + custom.replace("custom", "vcs"), {}, False),
    ]
    for backend, project, files, has_note in cases:
        with subtests.test(backend=backend, project=project, files=files):
            pyproject = f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n{project}'
            record = read(tmp_path, files | {"pyproject.toml": pyproject}, metadata_version="2.2", requires_dist=[])
            assert any(note.startswith(AMBIGUOUS) for note in record.notes) is has_note


def test_self_referencing_extras_are_expanded(tmp_path, subtests: pytest.Subtests):
    backend = '[build-system]\nrequires = []\nbuild-backend = "hatchling.build"\n'
    extras = 'A_b = ["b>1; os_name == \'nt\'", "c"]\nall = ["Demo[a-b, d]; python_version > \'3\'", "e"]\nd = ["f"]\n'
    written = ['b>1; os_name == "nt" and extra == "a-b"', 'c; extra == "a-b"', 'f; extra == "d"', 'e; extra == "all"']
    of_all = ['b>1; os_name == "nt" and extra == "all"', 'c; extra == "all"', 'f; extra == "all"']
    itself = ["demo[a-b,d]; python_version > '3' and extra == \"all\""]
    static: dict[str, object] = {"metadata_version": "2.2"}
    cases = [
        (extras, {}, {*written, *of_all}, False),
        (extras, static | {"requires_dist": [*written, *of_all]}, {*written, *of_all}, False),
        (extras, static | {"requires_dist": [*written, *itself]}, {*written, *itself}, False),
        (extras, static | {"requires_dist": ["x"]}, {*written, *of_all}, True),
        (
            'a = ["demo[b]"]\nb = ["demo[a]", "x"]\n',
            {},
            {'demo[b]; extra == "a"', 'demo[a]; extra == "b"', 'x; extra == "b"'},
            False,
        ),
        ('a = ["demo[none]"]\n', {}, {'demo[none]; extra == "a"'}, False),
        ('a = ["demo", "demos[b]"]\n', {}, {'demos[b]; extra == "a"'}, False),
    ]
    for optional, arguments, expected, has_note in cases:
        with subtests.test(optional=optional, arguments=arguments):
            pyproject = f"{backend}{PROJECT}[project.optional-dependencies]\n{optional}"
            record = read(tmp_path, {"pyproject.toml": pyproject}, **arguments)
            requirements = {each.replace("'", '"') for each in record.requires_dist or ()}
            assert requirements == {each.replace("'", '"') for each in expected}
            assert any(note.startswith(AMBIGUOUS) for note in record.notes) is has_note


def test_many_self_referencing_extras_are_not_expanded():
    chain = {f"e{number}": [f"demo[e{number + 1}]", f"x{number}"] for number in range(400)} | {"e400": []}
    assert with_own_extras("demo", chain) == chain
    many = {f"e{number}": ["demo[e0]"] for number in range(501)}
    assert with_own_extras("demo", many) == many


def test_poetry_table_is_used_if_project_has_no_requirements(tmp_path, subtests: pytest.Subtests):
    own = '[tool.poetry.dependencies]\npython = ">=3.9"\nevil = "*"\n'
    optional = '[project.optional-dependencies]\nx = ["b"]\n'
    cases = [
        ("", own, ("evil",)),
        ("dependencies = []\n", own, ("evil",)),
        ("dependencies = ['a']\n", own, ("a",)),
        ("", optional + own, ('b; extra == "x"',)),
        ("", '[tool.poetry.dependencies]\npython = ">=3.9"\n', ()),
        ("", '[tool.poetry.dependencies]\nevil = {path = "evil"}\n', None),
        ("dynamic = ['dependencies']\n", own, ("evil",)),
        ("dynamic = ['dependencies']\n", optional + own, None),
    ]
    for keys, tables, expected in cases:
        with subtests.test(keys=keys, tables=tables):
            system = '[build-system]\nrequires = ["poetry-core>=2"]\nbuild-backend = "poetry.core.masonry.api"\n'
            assert read(tmp_path, {"pyproject.toml": system + PROJECT + keys + tables}).requires_dist == expected
    old = '[build-system]\nrequires = ["poetry-core>=1.0,<2.0"]\nbuild-backend = "poetry.core.masonry.api"\n'
    tables = f"dependencies = ['a']\n[tool.poetry]\nname = 'demo'\n{own}"
    assert read(tmp_path, {"pyproject.toml": old + PROJECT + tables}).requires_dist == ("evil",)


def test_backend_placeholders_are_resolved_or_unknown(tmp_path, subtests: pytest.Subtests):
    cases = [
        ("a; python_version > '3'", "hatchling.build", ("a; python_version > '3'",)),
        ("a{{x}}", "hatchling.build", ("a{x}",)),
        ("a @ file:{/}x", "hatchling.build", ("a @ file:/x",)),
        ("a @ {root:uri}/a", "hatchling.build", None),
        ("a @ {root:parent:uri}/a", "hatchling.build", None),
        ("a=={env:VERSION:1.0}", "hatchling.build", ("a==1.0",)),
        ("{env:FIRST:a}{env:SECOND:}>=1{{", "hatchling.build", ("a>=1{",)),
        ("a=={env:VERSION}", "hatchling.build", None),
        ("a=={env:VERSION:1.0}", "flit_core.buildapi", ("a=={env:VERSION:1.0}",)),
        ("a @ {home}", "hatchling.build:build", None),
        ("a{", "hatchling.build", None),
        ("a @ {root:uri}/a", "flit_core.buildapi", ("a @ {root:uri}/a",)),
        ("a @ file:///${PROJECT_ROOT}/a", "pdm.backend", None),
        ("a @ https://${TOKEN}@example.org/a", "pdm.backend", None),
        ("a @ https://example.org/a$b", "pdm.backend", ("a @ https://example.org/a$b",)),
    ]
    for written, backend, expected in cases:
        for extra in ("", '\n[project.optional-dependencies]\nx = ["b"]'):
            with subtests.test(written=written, extra=extra):
                system = f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n'
                pyproject = f'{system}{PROJECT}dependencies = ["{written}"]{extra}'
                record = read(tmp_path, {"pyproject.toml": pyproject}, metadata_version="1.0")
                listed = None if expected is None else (*expected, *(['b; extra == "x"'] if extra else []))
                assert record.requires_dist == listed
                is_noted = "{env:" in written and expected is not None and backend.startswith("hatchling")
                assert any(note.startswith(AMBIGUOUS) for note in record.notes) is is_noted
