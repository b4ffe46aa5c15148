"""Wheels: records describe the contents of the archive."""

import hashlib
import importlib.metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.reader import read_distribution, read_path
from pypi_assets.distributions.record import START_UP_CODE, DistributionKind, ErrorKind
from pypi_assets.distributions.record_building import MAX_NOTES, record_to_json
from pypi_assets.distributions.wheels import MAX_START_UP_FILES, installed_entry_points
from pypi_assets_tests.builders import core_metadata, make_wheel, zip_bytes
from pypi_assets_tests.naming import mentions

LONG = "a" * 256
LINES = st.sampled_from(
    ["[g]", "[ g ]", "[[h]]", "a = b:c", "a=d:e", "# x", "f = g # h", " i = j", "", "\ufeff[k]", "=", "[", "l="]
)


@given(st.lists(LINES, max_size=8).map("\n".join))
def test_entry_points_match_importlib(text):
    groups, problems, doubts = installed_entry_points(text.encode())
    try:
        parsed = list(importlib.metadata.EntryPoints._from_text(text))
    except TypeError:
        assert problems
        return
    expected: dict[str, dict[str, str]] = {}
    for each in parsed:
        if each.name and each.value:
            expected.setdefault(each.group, {})[each.name] = each.value
    assert groups == expected
    values = {(each.group, each.name, each.value) for each in parsed if each.name and each.value}
    assert any("there twice" in doubt for doubt in doubts) == (
        len({(group, name) for group, name, _ in values}) < len(values)
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[console_scripts]\na = b\n", "the script a has no function"),
        ("[gui_scripts]\na = b [c:d]\n", "the script a has no function"),
        ("[console_scripts]\n../a = b:c\n", "the script ../a leads out of its folder, where old versions write it"),
        ("[g]\na\n", "entry_points.txt has a line without ="),
        ("[g]\na\0 = b\n", "entry_points.txt has NUL bytes"),
        (
            "[gui_scripts]\n" + "a" * 256 + " = b:c\n",
            f"the name of the script {'a' * 40} is too long for usual file systems",
        ),
        ("[g]\na = b\n", None),
        ("[console_scripts]\na = b:c [d]\n", None),
    ],
)
def test_entry_points_rejected_by_pip(text, problem):
    assert installed_entry_points(text.encode()).problems == ([problem] if problem else [])


@pytest.mark.parametrize(
    "line",
    ["a = b:c", "a-b.c=b.d:e.f", "a = b:c [x]", "a = b:c [x-y,z=1]", "a.exe = b:c", "\u00e9 = b:c"],
)
def test_lines_with_the_expected_script(line):
    assert installed_entry_points(f"[console_scripts]\n{line}\n".encode()).doubts == []


@pytest.mark.parametrize(
    "line", ["a b = b:c", "[a = b:c", "a = b : c", "a = b:c:d", "a = b:c()", "a = b:c [", "a = b:c [x y]", "a = :c"]
)
def test_lines_with_another_script_or_none(line):
    name = line.partition(" =")[0]
    assert installed_entry_points(f"[console_scripts]\n{line}\n".encode()).doubts == [
        f"pip refuses 1 scripts, or makes others of their lines: {name}"
    ]


def test_other_groups_allow_any_reference():
    assert installed_entry_points(b"[g]\na b = c d\n").doubts == []


def test_replaced_or_omitted_entry_points_are_named():
    entry_points = installed_entry_points(b"[g]\na = b  c\nd =\n= e\n")
    assert entry_points.groups == {"g": {"a": "b c"}}
    assert entry_points.doubts == [
        "characters or blanks in 1 entry points are replaced: a",
        "2 entry points without a name or a reference are left out",
    ]


def test_scripts_that_pip_also_writes_with_a_version_suffix():
    content = b"[console_scripts]\npip = a:b\n"
    assert len(installed_entry_points(content, "demo").doubts) == 1
    assert installed_entry_points(content, "pip").doubts == []


REFUSED = "ambiguous archive: pip refuses it:"
OF_ANOTHER = "METADATA is of another project than the file"


def test_wheel(tmp_path):
    path = make_wheel(
        tmp_path,
        "Demo.Pkg",
        "1.0",
        files={"demo/__init__.py": "", "demo/_native.abi3.so": b"\x7fELF", "demo_pkg-1.0.data/purelib/extra.py": ""}
        | {"start.pth": "import demo", "demo_pkg-1.0.data/platlib/other.pth": "", "demo/inner.pth": ""}
        | {"demo_pkg-1.0.data/scripts/run.py": "", "demo_pkg-1.0.data/platlib/plat/__init__.py": ""},
        requires_dist=["a>=1", 'b; extra == "x"'],
        requires_python=">=3.11",
        provides_extra=["x"],
        summary="A demo",
        entry_points="[console_scripts]\ndemo = demo:main\n",
        top_level=["demo"],
        extra_headers=[
            ("Import-Name", "demo"),
            ("Import-Name", "extra ; private"),
            ("License-Expression", "MIT OR Apache-2.0"),
            ("License", "MIT"),
            ("Classifier", "License :: OSI Approved :: MIT License"),
            ("Classifier", "Programming Language :: Python :: 3"),
            ("Home-page", "https://example.org"),
            ("Project-URL", "Source, https://example.org/source"),
        ],
    )
    record = read_path(path)
    assert record.error is None
    shown = record_to_json(record, yanked=True)
    assert shown == shown | {
        "filename": "demo_pkg-1.0-py3-none-any.whl",
        "project": "Demo.Pkg",
        "version": "1.0",
        "kind": "wheel",
        "variant": None,
        "installable": True,
        "refusals": [],
        "installed_metadata": None,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "size": path.stat().st_size,
        "yanked": True,
        "summary": "A demo",
        "requires_python": ">=3.11",
        "requires_dist": ["a>=1", 'b; extra == "x"'],
        "provides_extra": ["x"],
        "entry_points": {"console_scripts": {"demo": "demo:main"}},
        "modules": ["demo", "demo._native", "extra", "plat"],
        "modules_by": "archive",
        "modules_grade": "exact",
        "requires_by": "METADATA",
        "stubs": [],
        "left_out": 0,
        "declared": ["demo", "extra"],
        "license_expression": "MIT OR Apache-2.0",
        "license": "MIT",
        "license_classifiers": ["License :: OSI Approved :: MIT License"],
        "project_urls": ["Homepage, https://example.org", "Source, https://example.org/source"],
        "import_names": ["demo", "extra ; private"],
        "start_up_paths": ["other.pth", "start.pth"],
        "notes": ["installs scripts: run.py", "start-up code: start.pth"],
        "error": None,
    }


def test_wheel_without_requirements(tmp_path):
    assert read_path(make_wheel(tmp_path, "demo", "1.0")).requires_dist == ()


def test_wheel_without_metadata_keeps_its_modules(tmp_path):
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(zip_bytes({"demo.py": "", "demo-1.0.dist-info/WHEEL": ""}))
    record = read_path(path)
    assert record.error is not None
    assert record.error.kind is ErrorKind.NO_METADATA
    assert mentions(record.error.text, "demo-1.0.dist-info/METADATA")
    assert (record.project, record.version, record.modules) == ("demo", "1.0", ("demo",))
    assert record.requires_dist is None


@pytest.mark.parametrize(
    ("folders", "kind", "version"),
    [
        (["demo-1.0.dist-info", "vendored-2.dist-info"], ErrorKind.BAD_METADATA, "1.0"),
        (["Demo-1.0.0.dist-info", "vendored-2.dist-info"], ErrorKind.BAD_METADATA, "1.0.0"),
        (["demo-1.0.dist-info"], None, "1.0"),
        (["demo-1.0.dist-info", "Demo-1.0.dist-info"], ErrorKind.BAD_METADATA, "1.0"),
        (["Demo-1.0.dist-info", "DEMO-1.0.dist-info"], ErrorKind.BAD_METADATA, "1.0"),
        (["a-1.dist-info", "b-1.dist-info"], ErrorKind.BAD_METADATA, "1.0"),
        (["x/demo-1.0.dist-info"], ErrorKind.NO_METADATA, "1.0"),
        ([], ErrorKind.NO_METADATA, "1.0"),
    ],
)
def test_matching_dist_info_is_used(tmp_path, folders, kind, version):
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    members = {f"{folder}/METADATA": core_metadata(*folder.removesuffix(".dist-info").split("-")) for folder in folders}
    path.write_bytes(zip_bytes({"demo.py": ""} | members))
    record = read_path(path)
    assert (record.error and record.error.kind) == kind
    assert record.version == version
    assert record.kind is DistributionKind.WHEEL
    is_noted = "further .dist-info folders, with which pip refuses it: vendored-2.dist-info" in record.notes
    assert is_noted == ("vendored-2.dist-info" in folders)


def test_single_dist_info_of_another_name_is_used_and_noted(tmp_path):
    path = make_wheel(tmp_path, "other", "2.0", filename="demo-1.0-py3-none-any.whl")
    record = read_path(path)
    assert record.error is None
    assert (record.project, record.version) == ("other", "2.0")
    assert record.notes == (
        "the .dist-info folder does not fit the filename: other-2.0.dist-info",
        f"{REFUSED} other-2.0.dist-info is of another project than the file; {OF_ANOTHER}",
        "the metadata are of another project than the filename: other",
        "the metadata are of another version than the filename: 2.0",
    )


def test_metadata_without_name_and_version_fall_back_to_the_filename(tmp_path):
    record = read_path(
        make_wheel(tmp_path, "demo", "1.0", metadata="Metadata-Version: 2.1\nRequires-Dist: foo (>=1)\n")
    )
    assert record.error is None
    assert (record.project, record.version, record.requires_dist) == ("demo", "1.0", ("foo (>=1)",))
    assert len(record.notes) == 3


def test_invalid_metadata_are_an_error(tmp_path):
    record = read_path(make_wheel(tmp_path, "demo", "1.0", metadata=b"\x80\x00garbage"))
    assert record.error is not None
    assert record.error.kind is ErrorKind.BAD_METADATA
    assert record.modules == ("demo",)
    assert record.requires_dist is None


def test_invalid_requirements_are_kept_and_noted(tmp_path):
    record = read_path(make_wheel(tmp_path, "demo", "1.0", requires_dist=["good", "bad >= x.y"], requires_python="3.x"))
    assert record.error is None
    assert record.requires_dist == ("good", "bad >= x.y")
    assert record.notes[0].startswith(REFUSED)
    assert record.notes[1:] == (
        "not a requirement: bad >= x.y",
        "not a version specifier: Requires-Python: 3.x",
    )


def test_stubs_and_unimportable_files_are_recorded(tmp_path):
    files = dict.fromkeys(["foo-stubs/__init__.pyi", "foo-stubs/x.pyi", "2to3.py", "lib.libs/libz-1a2b.so"], "")
    files |= dict.fromkeys(["demo-1.0.data/purelib/pure-stubs/a.pyi", "demo-1.0.data/scripts/b.py", "ok.py"], "")
    record = read_path(make_wheel(tmp_path, "demo", "1.0", files=files))
    assert (record.modules, record.modules_by) == (("ok",), "archive")
    assert record.stubs == ("foo", "foo.x", "pure.a")
    assert record.left_out == 2
    assert record.notes == ("installs scripts: b.py",)


def test_names_declared_by_top_level_and_import_fields(tmp_path):
    headers = [("Import-Name", "a.b"), ("Import-Name", "_c; private"), ("Import-Namespace", "space")]
    record = read_path(make_wheel(tmp_path, "demo", "1.0", top_level=["demo", "a"], extra_headers=headers))
    assert record.declared == ("_c", "a", "a.b", "demo", "space")
    assert record.modules == ("demo",)


def test_extract_omits_the_description(tmp_path):
    path = make_wheel(tmp_path, "demo", "1.0", metadata=core_metadata("demo", "1.0", description="x" * 10_000))
    with path.open("rb") as source:
        extract = read_distribution(source, path.name).extract
    assert extract.files == {"demo-1.0.dist-info/METADATA": core_metadata("demo", "1.0").encode()}


def test_startup_files_are_those_at_the_top_of_site_packages(tmp_path):
    files = dict.fromkeys(["a.pth", "sub/b.pth", "demo-1.0.data/purelib/c.pth", "demo-1.0.data/platlib/a.pth"], "")
    files |= dict.fromkeys(
        ["demo-1.0.data/data/d.pth", "demo-1.0.dist-info/e.pth", "x.pth.txt", "demo.py", ".f.pth"], ""
    )
    record = read_path(make_wheel(tmp_path, "demo", "1.0", files=files))
    assert record.start_up_paths == (".f.pth", "a.pth", "c.pth")


def test_thousands_of_startup_files_are_bounded_and_noted(tmp_path):
    record = read_path(make_wheel(tmp_path, "demo", "1.0", files={f"{n:04}\x1b.pth": "" for n in range(1200)}))
    assert record.start_up_paths[0] == "0000\ufffd.pth"
    assert len(record.start_up_paths) == 1000
    assert any(note.startswith(".pth files: 200 values are left out") for note in record.notes)


def test_each_file_with_startup_code_is_noted(tmp_path, subtests: pytest.Subtests):
    harmless = {f"a{number:03}.pth": "x\n" for number in range(100)}
    cases = [
        ({f"a{number:02}.pth": "x\n" for number in range(20)} | {"z.pth": "import os\n"}, {"z.pth"}),
        (harmless | {"z.pth": "import os\n"}, {"z.pth"}),
        ({"demo.start": "# one\n\ndemo:main\n other.part:run\n"}, {"demo.start", "demo:main", "other.part:run"}),
        ({"demo.start": "# none\n"}, set()),
        ({"demo.start": "demo:main\n", "demo.pth": "import os\n"}, {"demo.start", "demo.pth", "demo:main"}),
        ({"demo-1.0.data/purelib/demo.start": "demo:main\n"}, {"demo.start", "demo:main"}),
        ({"demo/inner.start": "demo:main\n", "demo/inner.pth": "import os\n"}, set()),
    ]
    for files, named in cases:
        with subtests.test(files=list(files)[-2:]):
            record = read_path(make_wheel(tmp_path, "demo", "1.0", files={"demo.py": ""} | files))
            noted = " ".join(note for note in record.notes if note.startswith(START_UP_CODE))
            assert bool(noted) is bool(named)
            if len(files) <= MAX_START_UP_FILES:
                assert all(name in noted for name in named)
            at_root = {name.rpartition("/")[2] for name in files if not name.startswith("demo/")}
            assert set(record.start_up_paths) == at_root


def test_other_notes_do_not_hide_startup_code(tmp_path):
    files = {f"a{number:02}.pth": "x\ny\n" for number in range(30)} | {"z.start": "demo:main\n"}
    requirements = [("Requires-Dist", f"no requirement {number} !") for number in range(60)]
    record = read_path(make_wheel(tmp_path, "demo", "1.0", files=files, extra_headers=requirements))
    assert len(record.notes) == MAX_NOTES + 1
    assert [note for note in record.notes if note.startswith(START_UP_CODE) and "z.start" in note]


def test_requirements_and_names_rejected_by_pip_are_noted(tmp_path, subtests: pytest.Subtests):
    cases = [
        ("ev\u0456l", True),
        ("=?utf-8?q?evil?=", True),
        ("c[x] >= 1.0.*", True),
        ("c ~= 1", True),
        ("d ; extras == 'x'", True),
        ("d ; 'x' in dependency_groups", True),
        ("d ; 'x' == 'y'", True),
        ("d ; os_name == 'nt' and (flavour == 'x' or extra == 'y')", True),
        ("d ; python_version ~= '3'", True),
        ("lxml (>=3.3.4)", False),
        ("d ; python_version ~= '3.8' and os_name not in 'nt, java'", False),
        ("d ; 'linux' in sys_platform and extra == 'a b'", False),
        ("d @ https://example.org/d;x ; os.name == 'nt'", False),
        ("d === 1.0-foo", False),
    ]
    for requirement, is_refused in cases:
        with subtests.test(requirement=requirement):
            headers = [("Requires-Dist", requirement)]
            record = read_path(make_wheel(tmp_path, "demo", "1.0", extra_headers=headers))
            assert any(note.startswith(REFUSED) for note in record.notes) is is_refused
    for name, is_refused in (
        ("demo", False),
        ("Demo", False),
        ("demo\u00a0", True),
        ("\u2003demo", True),
        ("demo!", True),
    ):
        with subtests.test(name=name):
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
            record = read_path(make_wheel(tmp_path, "demo", "1.0", metadata=metadata.encode()))
            assert any(note.startswith(REFUSED) for note in record.notes) is is_refused
