"""Fuzz targets: for each kind of input, valid seeds, mutations that keep their structure, and properties to check.

`fuzz.py` runs them for a long time, test_fuzz.py briefly.
"""

import configparser
import gzip
import io
import re
import tarfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from email.parser import HeaderParser
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import orjson
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pypi_assets.distributions import metadata as core
from pypi_assets.distributions.extract import Extract, ExtractError, decode_extract, encode_extract
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import MIB, ReadLimits
from pypi_assets.distributions.pip_comparison import has_doubt
from pypi_assets.distributions.project_facts import MAX_LICENSE_BYTES, MAX_VALUE_CHARACTERS, MAX_VALUES
from pypi_assets.distributions.reader import Reading, make_record, read_distribution, read_extract
from pypi_assets.distributions.record import DistributionKind, DistributionRecord
from pypi_assets.distributions.record_building import record_to_json
from pypi_assets.distributions.setup_cfg import parse_setup_cfg
from pypi_assets.distributions.setup_script import keep_arguments, kept_arguments, read_setup_script
from pypi_assets.distributions.sources import MismatchError, SeekableFileSource
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel
from pypi_assets_tests.distributions.hostile import (
    CASES,
    EGG,
    END_OF_TAR,
    SDIST,
    SDIST_MODULE,
    SDIST_START,
    STATIC_PKG_INFO,
    WHEEL,
    ZIP_SDIST,
    wheel,
)
from pypi_assets_tests.distributions.hostile_sources import PYPROJECTS, SETUP_CFGS, SETUP_SCRIPTS
from pypi_assets_tests.distributions.made_extracts import extract_of
from pypi_assets_tests.distributions.pip_trees import silent_differences, unpacked_by_pip
from pypi_assets_tests.distributions.raw_archives import (
    BLOCK,
    DEFLATED,
    Entry,
    long_name,
    padded,
    pax_header,
    pax_record,
    raw_zip,
    tar_header,
)

SMALL = ReadLimits(
    max_file_bytes=4 * MIB, max_metadata_bytes=MIB, max_inflated_bytes=32 * MIB, max_members=2000, seconds=2.0
)
MAX_SECONDS = 2.0
"""Processor time for one input of a few kilobytes."""
MAX_INPUT_BYTES = 64 * 1024

Mutate = Callable[[bytes, Random], bytes]


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of input. `check` raises if a property does not hold; `mutate` turns any bytes into a different input."""

    name: str
    seeds: Callable[[], list[bytes]]
    mutate: Callable[[bytes, Random, Mutate], bytes]
    check: Callable[[bytes], None]


# Properties


def check_record(record: DistributionRecord) -> None:
    """Check that a record can be stored and shown, and that its modules are dotted names."""
    orjson.dumps(record_to_json(record))
    for names in (record.modules or (), record.stubs):
        assert list(names) == sorted(set(names)), "modules are sorted and unique"
        assert all(part.isidentifier() for name in names for part in name.split(".")), "modules are dotted names"
    texts = [record.filename, record.project or "", record.version or "", record.metadata_version or ""]
    texts += [record.summary or "", record.requires_python or "", *(record.requires_dist or ()), *record.notes]
    texts += [*record.provides_extra, *record.declared, record.error.text if record.error else ""]
    lists = (record.license_classifiers, record.project_urls, record.import_names or (), record.start_up_paths)
    texts += [record.license_expression or "", record.license or "", *chain.from_iterable(lists)]
    assert len((record.license or "").encode()) <= MAX_LICENSE_BYTES, "licence texts are cut"
    assert all(len(values) <= MAX_VALUES for values in lists), "lists are bounded"
    assert max(map(len, chain.from_iterable(lists)), default=0) <= MAX_VALUE_CHARACTERS, "values are bounded"
    assert all(classifier.startswith("License ::") for classifier in record.license_classifiers)
    for group, entries in (record.entry_points or {}).items():
        texts += [group, *entries, *entries.values()]
    assert all(text.isprintable() for text in texts), "texts are lines without control characters"
    assert all(record.requires_dist or (True,)), "no requirement is empty"
    assert (record.modules_by is None) == (record.modules is None), "the rule for modules is named"
    assert (record.modules_grade is None) == (record.modules is None), "known modules have a grade"
    assert record.error is None or record.modules_grade != "exact", "a partial read is not exact"
    assert (record.requires_by is None) == (record.requires_dist is None), "the rule for requirements is named"
    if record.entry_points is None:
        is_archive = record.kind in {DistributionKind.WHEEL, DistributionKind.EGG}
        assert record.error or not is_archive, "entry points of wheels and eggs are known"
    assert record.entry_points != {} or record.error is None, "a partial read does not show that there are none"


def check_reading(content: bytes, filename: str) -> Reading:
    """Check that the same bytes and the same extract give the same record."""
    reading = read_distribution(io.BytesIO(content), filename, limits=SMALL)
    check_record(reading.record)
    check_extract(reading.extract, filename, reading.record)
    return reading


def check_extract(extract: Extract, filename: str, record: DistributionRecord | None = None) -> None:
    made = make_record(extract, filename)
    check_record(made)
    if record is not None:
        assert made == replace(record, sha256=None, size=None), "a record depends on its extract only"
    stored = decode_extract(encode_extract(extract))
    assert stored == extract, "a stored extract survives a round trip"
    assert make_record(stored, filename) == made, "making a record changes nothing"


def timed(check: Callable[[bytes], object]) -> Callable[[bytes], None]:
    def run(content: bytes) -> None:
        started = time.thread_time()
        check(content[:MAX_INPUT_BYTES])
        assert time.thread_time() - started < MAX_SECONDS, "bounded time"

    return run


def check_zip(filename: str, content: bytes) -> None:
    """Check that reading ranges gives the same record, and that the names match zipfile's list if it can make one."""
    reading = check_reading(content, filename)
    try:
        parts = read_distribution(SeekableFileSource(io.BytesIO(content)), filename, limits=SMALL)
        if filename != ZIP_SDIST or content.startswith((b"PK\3\4", b"PK\5\6")):  # a zip begins with these bytes
            assert parts.extract == reading.extract, "ranges give the same extract"
    except MismatchError:
        pass
    if reading.record.error is None:
        try:
            with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(io.BytesIO(content)) as archive:
                names = [info.filename for info in archive.infolist()]
        except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, ValueError, OSError):
            return
        check_names(reading.extract, (name for name in names if not name.endswith("/")))


def check_names(extract: Extract, names: Iterable[str]) -> None:
    listed = {
        "/".join(part for part in name.split("/") if part not in {"", "."})
        for name in names
        if not name.startswith("/") and ".." not in name.split("/")
    }
    assert set(extract.paths) == listed - {""}, "names match the standard library's list"


OTHER_ARCHIVES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x1f\x9d", b"\x28\xb5\x2f\xfd", b"PK", b"7z", b"Rar!")


def check_tar(content: bytes) -> None:
    """Check that compression changes nothing, and that pip unpacks the record's files unless the record has a doubt."""
    reading = check_reading(content, SDIST)
    if not content or content.startswith(OTHER_ARCHIVES):
        return
    packed = gzip.compress(content, 1, mtime=0)
    extract = read_extract(io.BytesIO(packed), parse_filename(SDIST), SMALL)
    record = make_record(extract, SDIST)
    plain = replace(reading.record, sha256=None, size=None, notes=())
    assert replace(record, notes=()) == plain, "compression changes nothing"
    if not has_doubt(record):
        assert silent_differences(extract, record, unpacked_by_pip(packed, SDIST)) == []


def check_metadata(content: bytes) -> None:
    """Compare the fields with the standard library's, and the headers' fields with the whole file's."""
    parsed = core.parse_metadata(content, "METADATA")
    headers = core.parse_metadata(core.headers_of(content), "METADATA")
    assert replace(headers, notes=parsed.notes) == parsed, "only headers and notes matter"
    message = HeaderParser().parsestr(core.decode_text(content, "METADATA")[0])
    one_line = [(key.lower(), " ".join(blanked(str(value)).split())) for key, value in message.items()]
    for key, value in (("name", parsed.name), ("version", parsed.version), ("requires-python", parsed.requires_python)):
        assert value == next((text for field, text in one_line if field == key and text), None), "fields match"
    for key, value in (("license-expression", parsed.license_expression), ("license", parsed.license)):
        text = next((text for field, text in one_line if field == key and text), None)
        assert value == text or len(text) > 200, "the licence matches"
    classifiers = dict.fromkeys(text for field, text in one_line if field == "classifier" and text[:10] == "License ::")
    if len(classifiers) < 100 and all(len(text) < 1000 for text in classifiers):
        assert parsed.license_classifiers == tuple(classifiers), "classifiers match"
    names = [text for key in ("import-name", "import-namespace") for field, text in one_line if field == key]
    assert (parsed.import_names is None) == (not names), "an empty import name differs from a missing one"
    assert set(parsed.import_names or ()) <= set(names), "import names match"
    requirements = tuple(text for field, text in one_line if field == "requires-dist" and text)
    assert parsed.requires_dist == requirements, "requirements match"
    checked = [(Requirement, text, core.requirement_notes([text], None)) for text in parsed.requires_dist]
    if parsed.requires_python is not None:
        checked.append((SpecifierSet, parsed.requires_python, core.requirement_notes([], parsed.requires_python)))
    for make, text, notes in checked:
        if len(text) <= core.MAX_CHECKED_CHARACTERS:
            assert bool(notes) != is_valid(make, text), "notes match"
    check_extract(extract_of(["demo-1.0.dist-info/METADATA"], {"demo-1.0.dist-info/METADATA": content}), WHEEL)


SECTION = re.compile(r"\[([\w.-]*\w)?(?::([^:#]{1,200}))?\]")


def blanked(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def is_valid(make: Callable[[str], object], text: str) -> bool:
    try:
        make(text)
    except (ValueError, RecursionError):
        return False
    return True


def check_requires_txt(content: bytes) -> None:
    """Check that valid lines in valid sections become valid PEP 508 requirements."""
    lines = [line.strip() for line in content.decode(errors="replace").splitlines()]
    sections = [SECTION.fullmatch(line) for line in lines if line.startswith("[")]
    if all(section and (section[2] is None or is_valid(Marker, section[2])) for section in sections):
        required = [line for line in lines if line and not line.startswith("[")]
        if all(
            is_valid(Requirement, line) and line.isprintable() and len(line) < 200 and "#" not in line
            for line in required
        ):
            for requirement in core.parse_requires_txt(content)[0]:
                assert is_valid(Requirement, requirement), "valid requirements stay valid"
    files = {"EGG-INFO/PKG-INFO": STATIC_PKG_INFO.encode(), "EGG-INFO/requires.txt": content}
    files |= {"EGG-INFO/entry_points.txt": content, "EGG-INFO/top_level.txt": content}
    check_extract(extract_of(files, files), EGG)


def check_setup_script(content: bytes) -> None:
    """Check that a script is read or has a problem, alone and as part of a project."""
    arguments = read_setup_script(content)
    read_setup_script(b"from setup_helpers import *\n" + content, {"setup_helpers.py": content, "a_build.py": content})
    kept = kept_arguments(keep_arguments(content))
    assert kept is None or kept == arguments, "stored arguments match the script's"
    check_tree({"setup.py": content})


def check_setup_cfg(content: bytes) -> None:
    """Check that the values match configparser's if it reads the file without an error."""
    text = core.decode_text(content, "setup.cfg")[0]
    parsed = parse_setup_cfg(text)
    check_tree({"setup.cfg": content, "setup.py": b"from setuptools import setup\nsetup()\n"})
    parser = configparser.ConfigParser(strict=False, default_section="no such section")
    try:
        parser.read_file(io.StringIO(text, newline=None))  # with line ends as in a file
    except configparser.Error:
        return
    names = {section: {name: name.replace("-", "_") for name in parser[section]} for section in parser.sections()}
    if any(len(set(options.values())) < len(options) for options in names.values()):
        return
    expected = {
        section: {name: nonblank(interpolated(parser, section, written)) for written, name in options.items()}
        for section, options in names.items()
    }
    values = {
        section: {name: nonblank(value) for name, value in options.items()} for section, options in parsed.items()
    }
    assert values == expected, "setup.cfg is read as configparser reads it"


def interpolated(parser: configparser.ConfigParser, section: str, option: str) -> str:
    try:
        return parser.get(section, option)
    except configparser.InterpolationError:
        return parser.get(section, option, raw=True)


def nonblank(value: str) -> list[str]:
    return [line.strip() for line in value.splitlines() if line.strip()]


def check_tree(files: dict[str, bytes]) -> None:
    """Check an sdist of these files and some modules. Stored setup.py arguments must not change its record."""
    members = [*files, "demo.py", "demo/__init__.py", "src/demo/a.py", "lib/x/y.py", "tests/test_a.py", "demo/b.so"]
    content = {f"demo-1.0/{name}": content for name, content in files.items()}
    extract = extract_of([f"demo-1.0/{name}" for name in dict.fromkeys(members)], content)
    kept = replace(extract, setup_arguments=keep_arguments(files.get("setup.py", b"")))
    check_extract(kept, SDIST, make_record(extract, SDIST))


FILES = ("PKG-INFO", "pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "demo.egg-info/PKG-INFO")
FILES += tuple(f"demo.egg-info/{name}" for name in ("requires.txt", "top_level.txt", "SOURCES.txt", "entry_points.txt"))
NEXT_FILE = b"\n>>>>"


def joined_files(files: dict[str, bytes]) -> bytes:
    """Return `files` as one input: each follows the number of its name."""
    return b"".join(b"%s%d\n%s" % (NEXT_FILE, FILES.index(name), content) for name, content in files.items())


def split_files(content: bytes) -> dict[str, bytes]:
    files = {}
    for part in content.split(NEXT_FILE):
        number, newline, text = part.partition(b"\n")
        if newline and number.isdigit() and len(number) < 3:
            files[FILES[int(number) % len(FILES)]] = text
    return files


def check_files(content: bytes) -> None:
    check_tree(split_files(content))


def check_filename(content: bytes) -> None:
    """Check that any text is parsed, with any project name."""
    filename, _, project = content.decode("utf-8", "surrogatepass" if content.isascii() else "replace").partition("\n")
    for known in (None, project if project.isprintable() else None):
        parts = parse_filename(filename, known)
        fields = (parts.filename, parts.project, parts.version, parts.build, parts.python, parts.abi, parts.platform)
        assert all(text is None or text.isprintable() for text in fields)
        check_record(make_record(extract_of(["demo.py"]), filename, project=known))


def check_decoding(content: bytes) -> None:
    """Check that stored bytes are decoded to an extract or raise ExtractError."""
    try:
        extract = decode_extract(content)
    except ExtractError:
        return
    for filename in (WHEEL, SDIST, EGG):
        make_record(extract, filename)


# Mutations

INTERESTING = (b"\0", b"\xff", b"\x7f", b"\x80", b"\n", b"\r", b" ", b"..", b"/", b"'", b'"', b"[", b"]", b"#", b"\\")
NUMBERS = (0, 1, 2, 511, 512, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)


def mutate_bytes(content: bytes, random: Random, tokens: tuple[bytes, ...] = INTERESTING) -> bytes:
    """Make a few random changes: bytes, numbers, tokens, and pieces omitted, repeated or moved."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4, 8))):
        start = random.randrange(len(changed) + 1)
        length = random.choice((1, 2, 4, 16, 64, 512))
        match random.randrange(7):
            case 0 if start < len(changed):
                changed[start] ^= 1 << random.randrange(8)
            case 1 if start < len(changed):
                changed[start] = random.randrange(256)
            case 2:
                changed[start:start] = random.choice(tokens)
            case 3:
                size = random.choice((1, 2, 4, 8))
                changed[start : start + size] = (random.choice(NUMBERS) % 256**size).to_bytes(size, "little")
            case 4:
                del changed[start : start + length]
            case 5:
                changed[start:start] = changed[start : start + length] * random.choice((1, 1, 2, 30))
            case _:
                source = random.randrange(len(changed) + 1)
                changed[start : start + length] = changed[source : source + length]
    return bytes(changed[:MAX_INPUT_BYTES])


def mutate_text(tokens: tuple[bytes, ...], content: bytes, random: Random, mutate: Mutate) -> bytes:
    """Mutate a text. Half of the changes use words of the format."""
    if random.random() < 0.5:
        return mutate_bytes(content, random, tokens)
    return mutate(content, random)


NAMES = (
    b"demo.py",
    b"demo/__init__.py",
    b"a/b/c.py",
    b"../x.py",
    b"/x.py",
    b"./a//b.py",
    b"d/",
    b"a.so",
    b"a.pyi",
    b"\xff.py",
)
NAMES += (b"demo-1.0.dist-info/METADATA", b"demo-1.0.dist-info/", b"demo-1.0.data/purelib/p.py", b"EGG-INFO/PKG-INFO")


def mutate_zip(content: bytes, random: Random, mutate: Mutate) -> bytes:
    """Change the raw bytes, the directory, or the members, which are then written again."""
    directory = content.find(b"PK\1\2")
    match random.randrange(4):
        case 0:
            return mutate(content, random)
        case 1 if directory > 0:
            return content[:directory] + mutate(content[directory:], random)
        case _:
            try:
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    entries = [
                        Entry(info.filename.encode("utf-8", "surrogateescape"), archive.read(info), DEFLATED)
                        for info in archive.infolist()
                        if info.file_size < MAX_INPUT_BYTES
                    ]
            except (
                zipfile.BadZipFile,
                NotImplementedError,
                RuntimeError,
                LookupError,
                ValueError,
                OSError,
                EOFError,
                zlib.error,
            ):
                return mutate(content, random)
            return raw_zip(mutate_entries(entries, random, mutate))[:MAX_INPUT_BYTES]


def mutate_entries(entries: list[Entry], random: Random, mutate: Mutate) -> list[Entry]:
    at = random.randrange(len(entries)) if entries else 0
    match random.randrange(8):
        case 0:
            entries.insert(at, Entry(random.choice(NAMES)))
        case 1:
            random.shuffle(entries)
        case 2 if entries:
            entries[at] = replace(entries[at], name=mutate(entries[at].name, random)[:9999])
        case 3 if entries:
            field = random.choice(("crc", "size", "compressed_size", "disk", "external_attr", "flags", "method"))
            bits = 16 if field in {"disk", "flags", "method"} else 32
            value = random.choice((*NUMBERS, random.randrange(20))) % 2**bits
            entries[at] = replace(entries[at], data=entries[at].stored, **{field: value})
        case 4 if entries:
            extra = mutate(b"\1\0\x10\0" + bytes(16), random)[:9999]
            entries[at] = replace(entries[at], **{random.choice(("extra", "local_extra")): extra})
        case _ if entries:
            entries[at] = replace(entries[at], content=mutate(entries[at].content, random))
        case _:
            pass
    return entries


PAX_KEYS = (b"path", b"linkpath", b"size", b"GNU.sparse.map", b"GNU.sparse.name", b"GNU.sparse.realsize", b"hdrcharset")
PAX_KEYS += (
    b"GNU.sparse.major",
    b"GNU.sparse.minor",
    b"GNU.sparse.size",
    b"GNU.sparse.numblocks",
    b"GNU.sparse.offset",
)
PAX_VALUES = (
    b"0",
    b"1",
    b"-1",
    b"512",
    b"99999999999999999999",
    b"demo-1.0/x.py",
    b"../x",
    b"",
    b"\xff",
    b"BINARY",
    b"1,2",
)


def mutate_tar(content: bytes, random: Random, mutate: Mutate) -> bytes:
    """Change the raw bytes, one block, or one header with a correct checksum, or insert, delete or move blocks."""
    blocks = [content[start : start + BLOCK] for start in range(0, len(content), BLOCK)] or [b""]
    at = random.randrange(len(blocks))
    headers = [number for number, block in enumerate(blocks) if block[257:262] == b"ustar"]
    match random.randrange(8):
        case 0:
            return mutate(content, random)
        case 1:
            blocks[at] = mutate(blocks[at], random)
        case 2 | 3 if headers:
            at = random.choice(headers)
            start, end = random.choice(
                ((0, 100), (100, 108), (124, 136), (156, 157), (157, 257), (257, 265), (345, 512))
            )
            field = mutate(blocks[at][start:end], random)[: end - start].ljust(end - start, b"\0")
            blocks[at] = with_checksum(blocks[at][:start] + field + blocks[at][end:])
        case 4:
            records = b"".join(
                pax_record(random.choice(PAX_KEYS), random.choice(PAX_VALUES)) for _ in range(random.randrange(1, 5))
            )
            if random.random() < 0.2:
                records = mutate(records, random)[:9999]
            blocks.insert(random.choice(headers or [at]), pax_header(records, random.choice((b"x", b"x", b"g", b"X"))))
        case 5:
            kind = random.choice((b"L", b"K", b"S", b"1", b"2", b"3", b"5", b"7", b"D", b"V", b"M", b"\0", b"?"))
            name = random.choice(NAMES)
            added = long_name(name, kind) if kind in b"LK" else tar_header(name, random.choice((0, 0, 600, -1)), kind)
            blocks.insert(random.choice(headers or [at]), added)
        case 6:
            del blocks[at : at + random.choice((1, 2))]
        case _:
            blocks.insert(at, padded(mutate(random.choice(blocks), random))[: 4 * BLOCK])
    return b"".join(blocks)[:MAX_INPUT_BYTES]


def with_checksum(block: bytes) -> bytes:
    checksum = sum(block[:148]) + 8 * 32 + sum(block[156:])
    return block[:148] + f"{checksum:06o}".encode() + b"\0 " + block[156:]


def mutate_raw(content: bytes, random: Random, mutate: Mutate) -> bytes:
    return mutate(content, random)


def mutate_files(content: bytes, random: Random, mutate: Mutate) -> bytes:
    """Mutate one of the files with words of its format."""
    files = split_files(content)
    if not files or random.random() < 0.1:
        return mutate(content, random)
    name = random.choice(sorted(files))
    if random.random() < 0.1:
        del files[name]
    else:
        tokens = {"setup.py": SETUP_TOKENS, "pyproject.toml": TOML_TOKENS}.get(name, HEADER_TOKENS)
        files[name] = mutate_text(tokens, files[name], random, mutate)[:MAX_INPUT_BYTES]
    return joined_files(files)


def words(text: str, *others: bytes) -> tuple[bytes, ...]:
    """Return the words of `text`, and `others`."""
    return (*text.encode().split(), *others)


SETUP_TOKENS = words(
    """
    setup( find_packages( find_namespace_packages( packages= py_modules= package_dir= install_requires= name= version=
    extras_require= ext_modules= entry_points= where= include= exclude= ['a'] {'':'src'} {'a':['b']} 'a' u'' b'' f'{a}'
    r' ** * + % .format( .join( [ ] ( ) { } , = : None True not lambda: import from global while a=a a+=a @ ; # \\
    a.append(a) a.extend(a) a.update(a) a['a'] [0] [::2] 1e999 0x1 1_0 ... try: except: finally: with def return if else
    os.path.join( cythonize( Extension( list( dict( set( sorted( sum( str( __file__ open(a).read() print exec is in for
    """,
    *(b" ", b"\n", b"\n    ", b"\\\n", b"def f(): return ", b"for a in a:\n a\n", b"[a for a in a]", b"a if a else a"),
    *(
        b"if a:\n a=a\nelse:\n a=a\n",
        b"print 'a'",
        b"from setuptools import *\n",
        b"a, b = a",
        b"global a\n",
        b"%s%(a)s",
    ),
)
TOML_TOKENS = words(
    """
    [project] [build-system] [tool.poetry] [tool.poetry.dependencies] [tool.poetry.extras] [tool.setuptools] [tool.flit]
    [tool.setuptools.packages.find] [tool.hatch.build] [tool.hatch.build.targets.wheel] [tool.pdm.build] [tool.maturin]
    [tool.flit.module] [tool.uv.build-backend] [tool.scikit-build] [project.optional-dependencies] [project.scripts]
    [project.urls] license= classifiers= import-names= [tool.poetry.scripts]
    [project.entry-points.x] build-backend= packages= include= exclude= where= name= version= dynamic= dependencies=
    py-modules= package-dir= from= only-include= force-include= sources= python-source= module-name= module-root= wheel.
    namespace= [[a]] "a" 'a' [ ] { } , = . # true 1 1.5 inf nan 0x1 1979-05-27 07:32:00 1979-05-27T07:32:00Z \\u0000 '
    ** * ? ! / .. ^1.2 ~1 >=1,<2 || hatchling.build poetry.core.masonry.api flit_core.buildapi pdm.backend uv_build git=
    maturin scikit_build_core.build mesonpy setuptools.build_meta ['dependencies'] optional=true python= extras= url=
    """,
    *(b" ", b"\n", b'"' * 3, b"'" * 3),
)
HEADER_TOKENS = words(
    """
    Metadata-Version: Name: Version: Requires-Dist: Provides-Extra: Requires-Python: Dynamic: Import-Name: Summary: 2.2
    License: License-Expression: Classifier: License :: Project-URL: Home-page: Download-URL: Import-Namespace: UNKNOWN
    a a[b] ; : extra >=1.0 (>=1) ~=1 ==1.* === 'x' "x" and or ( ) ' [ ] [:] [x:y] [options] packages find: %(a)s file:
    os_name == python_version < @ https://x/ # = a=b:c [options.packages.find] [options.extras_require] [metadata] attr:
    """,
    *(b" ", b"\n", b"\r\n", b"\r", b"\n\n", b"\n ", b"From ", b"\0", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x1c"),
)


# Seeds


def built(make: Callable[..., Path], **arguments: object) -> bytes:
    with TemporaryDirectory() as folder:
        return make(Path(folder), "demo", "1.0", **arguments).read_bytes()


def hostile_seeds(prefix: tuple[str, ...], start: bytes, inflate: bool = False) -> list[bytes]:
    """Return the small files of this kind from the hostile set."""
    seeds = []
    for case in CASES:
        if case.name.startswith(prefix):
            content = case.build()
            if len(content) < 4096 and content.startswith(start):
                try:
                    content = gzip.decompress(content) if inflate else content
                except (OSError, EOFError, zlib.error):
                    continue
                if len(content) <= MAX_INPUT_BYTES:
                    seeds.append(content)
    return seeds


SDIST_FILES = {
    "demo/__init__.py": "",
    "setup.py": "from setuptools import setup, find_packages\nsetup(name='demo', packages=find_packages())\n",
    "pyproject.toml": "[project]\nname = 'demo'\nversion = '1.0'\ndependencies = ['a']\n",
    "demo.egg-info/requires.txt": "a\n\n[x:os_name == 'nt']\nb\n",
}


def zip_seeds(filename: str) -> list[bytes]:
    if filename == WHEEL:
        extras = {"entry_points": "[console_scripts]\na = b:c\n", "top_level": ["demo"], "requires_dist": ["a"]}
        return [built(make_wheel, **extras), wheel(), *hostile_seeds(("zip:", "dist-info:"), b"PK")]
    if filename == EGG:
        return [built(make_egg, requires="a\n[x]\nb\n", top_level=["demo"]), *hostile_seeds(("egg:",), b"PK")]
    return [built(make_sdist, files=SDIST_FILES, format="zip")]


def tar_seeds() -> list[bytes]:
    plain = built(make_sdist, files=SDIST_FILES, format="tar")
    return [plain, *hostile_seeds(("tar:",), b"\x1f\x8b", inflate=True)]


def compressed_seeds() -> list[bytes]:
    return [built(make_sdist, format=suffix) for suffix in ("tar.gz", "tar.bz2", "tar.xz")]


def texts(sources: dict[str, Callable[[], bytes | str]]) -> list[bytes]:
    made = [source() for source in sources.values()]
    encoded = [source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source for source in made]
    return [source for source in encoded if len(source) < 4096]


BACKENDS = ("hatchling.build", "poetry.core.masonry.api", "flit_core.buildapi", "pdm.backend", "uv_build", "maturin")
BACKENDS += ("mesonpy", "scikit_build_core.build", "setuptools.build_meta")


def file_seeds() -> list[bytes]:
    files = [{"PKG-INFO": STATIC_PKG_INFO.encode(), "pyproject.toml": text} for text in texts(PYPROJECTS)]
    files += [{"setup.py": b"from setuptools import setup\nsetup()\n", "setup.cfg": text} for text in texts(SETUP_CFGS)]
    files += [{"setup.py": text, "requirements.txt": b"a\n-r b\n"} for text in texts(SETUP_SCRIPTS)]
    files.append(
        {
            "demo.egg-info/PKG-INFO": b"Metadata-Version: 1.1\nName: demo\nVersion: 1.0\n",
            "demo.egg-info/requires.txt": b"a\n[x]\nb\n",
            "demo.egg-info/top_level.txt": b"demo\n",
            "demo.egg-info/SOURCES.txt": b"setup.py\ndemo/__init__.py\n",
            "demo.egg-info/entry_points.txt": b"[console_scripts]\na = b:c\n",
        }
    )
    for backend in BACKENDS:
        text = f"[build-system]\nbuild-backend = '{backend}'\n[project]\nname = 'demo'\nversion = '1.0'\n"
        files.append({"pyproject.toml": text.encode()})
    poetry = b"[tool.poetry]\nname = 'demo'\nversion = '1.0'\npackages = [{include = 'demo', from = 'src'}]\n"
    poetry += b"[tool.poetry.dependencies]\npython = '^3.8'\na = {version = '~1.2', optional = true, extras = ['x']}\n"
    files.append({"pyproject.toml": poetry + b"[tool.poetry.extras]\nx = ['a']\n"})
    return [joined_files(each) for each in files]


def real_seeds(folder: Path) -> dict[str, list[bytes]]:
    """Return the small files from the real wheels and sdists in `folder`, by name of their target."""
    seeds: dict[str, list[bytes]] = {
        "wheel": [],
        "files of an sdist": [],
        "setup.py": [],
        "setup.cfg": [],
        "metadata": [],
    }
    for path in sorted(folder.glob("*.whl")):
        if path.stat().st_size < MAX_INPUT_BYTES:
            seeds["wheel"].append(path.read_bytes())
    for path in sorted(folder.glob("*.tar.gz")):
        files = {}
        with tarfile.open(path) as archive:
            for info in archive:
                name = info.name.partition("/")[2]
                name = f"demo.egg-info/{Path(name).name}" if ".egg-info/" in name else name
                if name in FILES and info.isreg() and info.size < 16 * 1024:
                    files[name] = archive.extractfile(info).read()
        seeds["files of an sdist"].append(joined_files(files))
        for target, name in (("setup.py", "setup.py"), ("setup.cfg", "setup.cfg"), ("metadata", "PKG-INFO")):
            if name in files:
                seeds[target].append(files[name])
    return seeds


LICENSED = """Metadata-Version: 2.5
Name: demo
Version: 1
License-Expression: MIT
License: MIT
  and more
Classifier: License :: OSI Approved
Classifier: Framework :: X
Home-page: https://a/
Download-URL: https://b/
Project-URL: Docs, https://c/
Project-URL: home page, https://a/
Import-Name: demo ; private
Import-Namespace: a

"""


def metadata_seeds() -> list[bytes]:
    return [
        STATIC_PKG_INFO.encode(),
        LICENSED.encode(),
        b"Metadata-Version: 2.1\r\nName: demo\r\n\tx\r\nVersion: 1\r\nRequires-Dist: a (>=1)\r\n\r\nx",
    ]


def requires_seeds() -> list[bytes]:
    return [b"a\nb>=1\n\n[x]\nc[d]>1 ; os_name == 'nt'\n\n[:python_version < '3']\ne\n[y:z or w]\nf @ https://x/\n"]


def filename_seeds() -> list[bytes]:
    names = {case.filename for case in CASES} | {WHEEL, EGG, SDIST, ZIP_SDIST, "a-b-1.0-1.win-amd64-py3.8.exe"}
    return [name.encode("utf-8", "replace")[:2000] + b"\ndemo" for name in sorted(names)]


def extract_seeds() -> list[bytes]:
    sdist = read_distribution(io.BytesIO(built(make_sdist)), SDIST).extract
    return [encode_extract(sdist), encode_extract(Extract())]


def _zip_target(name: str, filename: str) -> Target:
    return Target(name, partial(zip_seeds, filename), mutate_zip, timed(partial(check_zip, filename)))


TARGETS: tuple[Target, ...] = (
    _zip_target("wheel", WHEEL),
    _zip_target("egg", EGG),
    _zip_target("zip sdist", ZIP_SDIST),
    Target("tar sdist", tar_seeds, mutate_tar, timed(check_tar)),
    Target("compressed sdist", compressed_seeds, mutate_raw, timed(lambda content: check_reading(content, SDIST))),
    Target("files of an sdist", file_seeds, mutate_files, timed(check_files)),
    Target("setup.py", partial(texts, SETUP_SCRIPTS), partial(mutate_text, SETUP_TOKENS), timed(check_setup_script)),
    Target("setup.cfg", partial(texts, SETUP_CFGS), partial(mutate_text, HEADER_TOKENS), timed(check_setup_cfg)),
    Target("metadata", metadata_seeds, partial(mutate_text, HEADER_TOKENS), timed(check_metadata)),
    Target("requires.txt", requires_seeds, partial(mutate_text, HEADER_TOKENS), timed(check_requires_txt)),
    Target("filename", filename_seeds, mutate_raw, timed(check_filename)),
    Target("stored extract", extract_seeds, mutate_raw, timed(check_decoding)),
)

KEPT: tuple[tuple[str, bytes], ...] = (
    ("setup.py", b"setup(name='demo', version='\\ud800', install_requires=['\\ud800'])"),
    ("setup.py", b"from setuptools import setup\nsetup(name=='demo', py_modules=['demo'])\n"),
    ("metadata", b"Metadata-Version: 2.2\n\n\xff\0"),
    ("requires.txt", b"a@\xff\x7fF\0\0\0~=1"),
    ("zip sdist", wheel().replace(b"PK\3\4", b"PK\3\2", 1)),
    ("tar sdist", SDIST_START + tar_header(b"demo-1.0/folder.py/") + SDIST_MODULE + END_OF_TAR),
    ("tar sdist", SDIST_START + SDIST_MODULE.replace(b"0000644", b"\3\2\0\0\0\0\0", 1) + END_OF_TAR),
    ("tar sdist", SDIST_START + pax_header(pax_record(b"path", b"")) + SDIST_MODULE + END_OF_TAR),
    ("tar sdist", pax_header(pax_record(b"size", b"512"), b"g") + SDIST_START + SDIST_MODULE * 2 + END_OF_TAR),
    (
        "tar sdist",
        SDIST_START
        + pax_header(pax_record(b"size", b"1"))
        + pax_header(pax_record(b"path", b"demo-1.0/a.py"))
        + SDIST_MODULE
        + END_OF_TAR,
    ),
    (
        "tar sdist",
        SDIST_START
        + pax_header(pax_record(b"path", b"demo-1.0/a.py"))
        + pax_header(pax_record(b"GNU.sparse.name", b"512"))
        + SDIST_MODULE
        + END_OF_TAR,
    ),
)
"""Inputs that once failed a check, because of the reader or of the check, by name of their target."""
