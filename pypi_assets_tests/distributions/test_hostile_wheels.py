"""Records of the hostile wheels match the files that real pip installs."""

import io
import time
from collections import Counter

import pytest

from pypi_assets.distributions.extract import decode_extract, encode_extract
from pypi_assets.distributions.pip_comparison import differences_from, has_doubt
from pypi_assets.distributions.reader import make_record, read_distribution
from pypi_assets.distributions.wheel_tree import SCRIPTS
from pypi_assets_tests.distributions.hostile_wheel_files import FILE_CLASSES, WHEEL_FILES
from pypi_assets_tests.distributions.hostile_wheels import CLASSES, WHEEL, WHEELS
from pypi_assets_tests.distributions.pip_views import pip_views

REFUSED_HERE = {
    "names: by Unicode Path": "newer Pythons read the name",
    "names: by Unicode Path, into a scheme": "newer Pythons read the name",
    "metadata files: METADATA with a dot in front": "names are spelled in two ways",
    "metadata files: METADATA with a dot behind": "names are spelled in two ways",
    "metadata files: METADATA as a folder with content": "names are spelled in two ways",
    "metadata files: entry_points.txt with a dot in front": "names are spelled in two ways",
    "metadata files: entry_points.txt as a folder": "names are spelled in two ways",
    "metadata files: WHEEL with a dot in front": "names are spelled in two ways",
    "metadata files: PKG-INFO instead of METADATA": "no demo-1.0.dist-info/METADATA",
    "metadata files: PKG-INFO next to an empty METADATA": "METADATA has neither",
    "zip: two zip64 records": "older and newer Pythons find different directories",
    "zip: zip64 with extensible data, and a whole plain record": "older and newer Pythons find different directories",
    "zip: two directories": "and another before that record",
    "zip: an end record behind the limit of newer Pythons": "further than newer Pythons look for it",
    "zip: an end record in the comment": "two end records",
    "zip: a wheel in the comment of another": "two end records",
    "zip: an offset beyond the directory": "the directory does not lie where its end record puts it",
    "zip: another disk": "a part of a zip that is split",
    "zip: a member on another disk": "in another part of a zip that is split",
    "zip: METADATA on another disk": "in another part of a zip that is split",
    "zip: two members in one place": "overlap",
    "zip: a directory with a long last entry": "the last entry of the directory is cut off",
}
"""Wheels that some pip may install but that are an error here, with the reason: readers disagree on them."""


ALL_WHEELS = WHEELS | WHEEL_FILES


@pytest.fixture(scope="module")
def contents():
    return {name: build() for name, build in ALL_WHEELS.items()}


@pytest.fixture(scope="module")
def records(contents):
    readings = {}
    for name, content in contents.items():
        started = time.thread_time()
        readings[name] = read_distribution(io.BytesIO(content), WHEEL)
        assert time.thread_time() - started < 5
    return readings


def test_each_class_has_many_wheels():
    assert len(ALL_WHEELS) >= 225
    counted = Counter(name.partition(":")[0] for name in ALL_WHEELS)
    assert all(counted[kind] >= 10 for kind in (*CLASSES, *FILE_CLASSES))


@pytest.mark.nightly
def test_records_never_differ_silently_from_pip_installs(contents, records, tmp_path):
    views = pip_views(contents, tmp_path)
    silent = {}
    refused_here = set()
    for name, view in views.items():
        record = records[name].record
        differences = [view["refusal"]]
        if view["refusal"] is None:
            differences = [*differences_from(record, view), *unreported_scripts(record, view["outside"])]
        if differences and not has_doubt(record):
            silent[name] = (differences, record.notes)
        if view["refusal"] is None and record.error is not None:
            refused_here.add(name)
    assert silent == {}
    assert refused_here <= REFUSED_HERE.keys()


def test_distributions_in_notes_are_found_by_python_and_pip(contents, tmp_path):
    wanted = {name: content for name, content in contents.items() if "distribution" in name or "direct_url" in name}
    views = pip_views(wanted, tmp_path)
    by_name = {name.partition(": ")[2]: view["distributions"] for name, view in views.items()}
    assert by_name.pop("its own direct_url.json") == [["demo", "https://elsewhere/evil.zip"]]
    assert by_name.pop("another distribution in the prefix") == [["demo", None]]  # only Windows searches this folder
    assert len(by_name) >= 7
    for name, distributions in by_name.items():
        assert min(distributions, key=str) == ["demo", None], name
        assert len(distributions) == 2, name


def unreported_scripts(record, outside):
    """Return the scripts that pip or the entry points lack, unless a note reports that scripts differ."""
    if any(note.startswith(SCRIPTS) for note in record.notes):
        return []
    groups = record.entry_points or {}
    expected = {f"bin/{name}" for group in ("console_scripts", "gui_scripts") for name in groups.get(group, ())}
    return sorted(expected ^ {path for path in outside if path.startswith("bin/")})


def test_ambiguous_wheels_have_descriptive_errors(records, subtests: pytest.Subtests):
    for name in REFUSED_HERE:
        with subtests.test(name=name):
            error = records[name].record.error
            assert error is not None
            assert REFUSED_HERE[name] in error.text


def test_unambiguous_wheels_match_pip(records):
    expected = {
        "names: a parent in the middle": "evil",
        "names: a parent in a scheme": "evil",
        "names: parents into another scheme": "evil",
        "names: a dot in front": "evil",
        "names: two slashes": "pack.evil",
        "names: a dot at the end": "evil",
        "names: a NUL in the middle": "evil",
        "names: a .data folder of another name": "evil",
        "zip: repeated zip64 marks": "demo",
        "zip: METADATA by LZMA": "demo",
        "zip: METADATA by LZMA with a dictionary of 4 GiB": "demo",
        "zip: METADATA claims more": "demo",
        "zip: METADATA claims less, with the CRC of that": "demo",
        "zip: METADATA with the mode of a link": "demo",
        "zip: a module with the mode of a link": "evil",
        "claims: METADATA claims 4 GiB": "demo",
        "claims: an empty module that no reader opens": "empty",
        "trees: the settings of an environment": "demo",
    }
    for name, module in expected.items():
        record = records[name].record
        assert record.error is None, name
        assert module in (record.modules or ()), name
        assert record.requires_dist == (() if "claims less" in name else ("a>=1",)), name


def test_hidden_effects_are_noted(records, subtests: pytest.Subtests):
    cases = [
        ("importable: start-up code", "start-up code: evil.pth"),
        ("importable: start-up code in a scheme", "start-up code: evil.pth"),
        ("importable: start-up code by a parent", "start-up code: evil.pth"),
        ("importable: a further path", "further path: evil.pth: hidden, with the modules secret"),
        ("importable: a further path outside", "further path: evil.pth: /evil, outside of site-packages"),
        (
            "importable: site-packages by the data scheme",
            "ambiguous archive: modules with some Pythons alone, by the data scheme: evil",
        ),
        (
            "importable: site-packages by the data scheme, start-up code",
            "ambiguous archive: .pth files with some Pythons alone, by the data scheme: evil.pth",
        ),
        (
            "importable: another distribution",
            "ambiguous archive: metadata of further distributions are installed: evil-9.egg-info",
        ),
        (
            "importable: another distribution, a file",
            "ambiguous archive: metadata of further distributions are installed: evil-9.egg-info",
        ),
        (
            "importable: another distribution in capitals",
            "ambiguous archive: metadata of further distributions are installed: evil-9.DIST-INFO",
        ),
        (
            "importable: another distribution in a scheme",
            "ambiguous archive: metadata of further distributions are installed: evil-9.Egg-Info",
        ),
        (
            "importable: another distribution, a file in a scheme",
            "ambiguous archive: metadata are installed that pip does not resolve from: demo-1.0.data/purelib",
        ),
        (
            "importable: another distribution by the data scheme",
            (
                "ambiguous archive: metadata are installed that pip does not resolve from:"
                " demo-1.0.data/data/lib/python3.11/site-packages/evil-9.egg-info"
            ),
        ),
        (
            "importable: another distribution, a file by the data scheme",
            (
                "ambiguous archive: metadata are installed that pip does not resolve from:"
                " demo-1.0.data/data/lib/python3.11/site-packages"
            ),
        ),
        (
            "importable: another distribution in the prefix",
            "ambiguous archive: metadata are installed that pip does not resolve from: demo-1.0.data/data",
        ),
        (
            "importable: its own direct_url.json",
            "ambiguous archive: pip shows it as installed from the URL in its own direct_url.json",
        ),
        ("importable: a module that is imported at each start", "start-up code: sitecustomize"),
        ("importable: a package that is imported at each start", "start-up code: usercustomize"),
        ("importable: a module without a window", "ambiguous archive: modules on Windows alone: pack, pack.evil"),
        ("importable: scripts", "installs scripts: evil, evil.py"),
        ("importable: scripts by the data scheme", "installs scripts: evil"),
        (
            "trees: modules of the standard library in C",
            "ambiguous archive: modules with some Pythons alone, by the data scheme: evil",
        ),
        ("trees: a module in the prefix", "ambiguous archive: modules on Windows alone, by the data scheme: evil"),
        (
            "trees: start-up code in the prefix",
            "ambiguous archive: .pth files with some Pythons alone, by the data scheme: evil.pth",
        ),
        (
            "trees: the settings of an environment",
            "ambiguous archive: files that decide where some Pythons look for modules: pyvenv.cfg",
        ),
        (
            "trees: a package of forty levels",
            "ambiguous archive: 1 modules are left out, whose names have too many parts or characters",
        ),
        ("records: a blank line", "ambiguous archive: pip refuses it: RECORD has a blank line"),
        (
            "scripts: a name with a version, by pip alone",
            "ambiguous archive: pip installs the script pip under names with a version too, and in their place",
        ),
        ("names: backslashes", "ambiguous archive: modules on Windows alone: pack, pack.evil"),
        (
            "metadata files: a .dist-info that begins like the project",
            (
                "ambiguous archive: pip refuses it: older versions take demo_evil-1.0.dist-info for another project,"
                " and newer ones once it is installed"
            ),
        ),
        (
            "zip: an encrypted member without content",
            "ambiguous archive: some readers refuse it: 1 empty members that zipfile does not open",
        ),
        (
            "claims: an empty module that no reader opens",
            "ambiguous archive: some readers refuse it: 1 empty members that zipfile does not open",
        ),
    ]
    for name, note in cases:
        with subtests.test(name=name):
            assert note in records[name].record.notes


def test_extracts_give_the_same_records(records):
    for name, reading in records.items():
        again = make_record(decode_extract(encode_extract(reading.extract)), WHEEL)
        assert (again.notes, again.error, again.modules) == (
            reading.record.notes,
            reading.record.error,
            reading.record.modules,
        ), name
