"""Compare the record of a file with what pip makes of the same file, for manual checks and for tests.

Readers make the records. pip runs in a separate process and writes only into a scratch folder. Crawls do not use this.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypi_assets.characters import lower, normalized_name, printable
from pypi_assets.distributions import sdists
from pypi_assets.distributions.archives import trimmed
from pypi_assets.distributions.build_scripts import is_build_script
from pypi_assets.distributions.extract import Extract, decode_extract, encode_extract
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.local_files import read_local
from pypi_assets.distributions.members import by_folder, folders_of
from pypi_assets.distributions.module_names import find_modules
from pypi_assets.distributions.reader_pool import INHERITED, ReaderFailure, ReaderPool, StoredExtract
from pypi_assets.distributions.record import AMBIGUOUS, START_UP_ENDS, DistributionKind, DistributionRecord
from pypi_assets.distributions.sdist_names import readable
from pypi_assets.distributions.wheel_tree import METADATA_ENDS
from pypi_assets.errors import ExpectedError

PIP_SECONDS = 300
_SHOWN = 20
_SDIST_FIELDS = ("project", "version", "requires_python", "requires_dist", "provides_extra", "entry_points", "modules")
_NOTHING_FOUND: dict[str, Any] = {"version": "?", "sites": []}
_SCRIPT_GROUPS = ("console_scripts", "gui_scripts")


class NoPipError(ExpectedError):
    """pip could not be run, regardless of the file. The message has the reason."""


@dataclass(frozen=True, slots=True)
class AgainstPip:
    """The record of one file compared with the result of pip.

    `refusal` is the reason why pip rejects the file, or None. `differences` describes each difference in one line.
    """

    record: DistributionRecord
    pip_version: str
    refusal: str | None
    differences: tuple[str, ...]

    @property
    def is_silent(self) -> bool:
        """Check whether there is a difference that the record gives no sign of by an error or a note."""
        return bool(self.differences) and not has_doubt(self.record)


def has_doubt(record: DistributionRecord) -> bool:
    """Check whether the record has an error, or notes that different tools read the file differently."""
    return record.error is not None or any(note.startswith(AMBIGUOUS) for note in record.notes)


def compare_wheel(path: Path, readers: ReaderPool, *, python: str = sys.executable) -> AgainstPip:
    """Compare the record of the wheel at `path` with the requirements and files that the pip of `python` finds in it.

    pip gets the wheel under a name for all platforms. No code of the wheel is run. Raise NoPipError, OSError if the
    file cannot be read, and ReaderStartError.
    """
    record = read_local(path, readers).record
    if scripts := _scripts_outside(record):
        return AgainstPip(record, "?", f"not run, because old versions of pip would write outside: {scripts}", ())
    with tempfile.TemporaryDirectory(prefix="against-pip-") as folder:
        answer = _run_pip(path, Path(folder), python, readers.limits.max_inflated_bytes)
        differences = tuple(differences_from(record, answer)) if answer["refusal"] is None else _without_sign(record)
    return AgainstPip(record, answer["version"], answer["refusal"], differences)


def compare_sdist(path: Path, readers: ReaderPool, *, python: str = sys.executable) -> AgainstPip:
    """Compare the record of the sdist at `path` with a record of the tree that the pip of `python` unpacks from it.

    Nothing is built, and no code of the sdist is run. A reader makes both records. Raise NoPipError, OSError if the
    file cannot be read, and ReaderStartError.
    """
    finished = read_local(path, readers)
    record = finished.record
    with tempfile.TemporaryDirectory(prefix="against-pip-") as folder:
        driver = _bounded(_UNPACKING, readers.limits.max_inflated_bytes)
        answer = _run_driver(python, Path(folder), driver, str(path.resolve()), str(Path(folder) / "tree"))
        if answer["refusal"] is not None:
            return AgainstPip(record, answer["version"], answer["refusal"], _without_sign(record))
        tree = _extract_of(Path(folder) / "tree", readers.limits.max_wanted_bytes)
    extract = Extract() if finished.extract is None else decode_extract(finished.extract)
    paths = _one_sided("files", tree.paths, _below_top(extract.paths))
    [theirs] = readers.judge([StoredExtract(path.name, None, encode_extract(tree))])
    return AgainstPip(record, answer["version"], None, (*paths, *_record_differences(theirs, record)))


def _without_sign(record: DistributionRecord) -> tuple[str, ...]:
    """Return the difference if pip rejects a file."""
    return () if has_doubt(record) else ("pip rejects the file, but the record has no sign of it",)


def _extract_of(root: Path, most_bytes: int) -> Extract:
    """Return the extract of the files below `root`, with at most `most_bytes` of content of small files."""
    paths = [path for path in sorted(_files_below(root)) if (root / path).is_file()]
    extract = Extract(folders_of(readable(path) for path in paths))
    for path in paths:
        if not (sdists.is_wanted(path) or is_build_script(f"./{path}")):  # build scripts are not at the very top
            continue
        most_bytes -= (root / path).stat().st_size
        if most_bytes >= 0:
            extract.files[readable(path)] = _kept(path, (root / path).read_bytes())
    return extract


def _kept(path: str, content: bytes) -> bytes:
    """Return the stored content of a small file.

    Extracts store pyproject.toml as JSON. A file that begins like JSON is invalid TOML and gets a line end in front, so
    that it is not mistaken for the stored form.
    """
    content = trimmed(path, content)
    return b"\n" + content if path.endswith("pyproject.toml") and content.startswith(b"{") else content


def _below_top(paths: list[str]) -> list[str]:
    """Return `paths` without their common top folder, which pip removes."""
    tops = {path.partition("/")[0] if "/" in path else "" for path in paths}
    cut = len(next(iter(tops))) + 1 if len(tops) == 1 and tops != {""} else 0
    return [path[cut:] for path in paths]


def _record_differences(theirs: DistributionRecord | ReaderFailure | None, ours: DistributionRecord) -> Iterator[str]:
    if isinstance(theirs, ReaderFailure):
        yield f"the tree that pip unpacks cannot be read: {printable(theirs.text)}"
        return
    for field in _SDIST_FIELDS:
        values = [getattr(record, field) for record in (theirs, ours)]
        if values[0] != values[1]:
            by_pip, read = [value if isinstance(value, tuple) else (str(value),) for value in values]
            yield from _one_sided(field, by_pip, read)


def compare(path: Path, readers: ReaderPool, *, python: str = sys.executable) -> AgainstPip:
    """Compare a wheel or an sdist, chosen by its filename.

    Raise NoPipError for other kinds, and the errors of `compare_wheel` and `compare_sdist`.
    """
    kind = parse_filename(path.name).kind
    if kind == DistributionKind.WHEEL:
        return compare_wheel(path, readers, python=python)
    if kind == DistributionKind.SDIST:
        return compare_sdist(path, readers, python=python)
    raise NoPipError(f"{printable(path.name)} is not a wheel or an sdist: pip cannot install or unpack it")


def _scripts_outside(record: DistributionRecord) -> str:
    """Return the names of scripts that contain a path separator."""
    groups = record.entry_points or {}
    names = [name for group in _SCRIPT_GROUPS for name in groups.get(group, ()) if "/" in name or "\\" in name]
    return printable(", ".join(names))


def _run_pip(path: Path, folder: Path, python: str, max_file_bytes: int) -> dict[str, Any]:
    """Run pip on the wheel, and return the answer of the driver below with a `refusal` and the installed paths."""
    parts = parse_filename(path.name)
    wheel = folder / "wheel" / f"{parts.project}-{parts.version}-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.symlink_to(path.resolve())
    driver = _bounded(_DRIVER, max_file_bytes)
    answer = _run_driver(python, folder, driver, str(parts.project), str(wheel), str(folder / "prefix"))
    answer["paths"] = sorted({name for site in answer["sites"] for name in _files_below(Path(site))})
    return answer


def _bounded(driver: str, max_file_bytes: int) -> str:
    """Return a driver that cannot write files larger than `max_file_bytes`.

    With some versions of Python, a small sdist with a sparse file could otherwise fill the disk.
    """
    return f"max_file_bytes = {max_file_bytes}\n{_BOUND}{driver}"


def _run_driver(python: str, folder: Path, driver: str, *arguments: str) -> dict[str, Any]:
    """Run `driver` and return its answer, with a `refusal` if it fails later.

    A driver writes its answer into the file named by its last argument. pip is not contained like readers, so it gets
    no settings, passwords or proxies from the environment.
    """
    answer = folder / "answer.json"
    variables = {name: value for name, value in os.environ.items() if name in INHERITED}
    try:
        done = subprocess.run(  # noqa: S603 - the caller chooses the interpreter, and this module the arguments
            [python, "-I", "-c", driver, *arguments, str(answer)],
            cwd=folder,
            env=variables | {"HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PIP_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _NOTHING_FOUND | {"refusal": f"pip takes more than {PIP_SECONDS} seconds"}
    if not answer.exists():
        if done.returncode < 0:
            return _NOTHING_FOUND | {"refusal": f"pip died: signal {signal.Signals(-done.returncode).name}"}
        raise NoPipError(f"cannot run pip with {python}: {printable(done.stderr.strip().rpartition(chr(10))[2])}")
    result: dict[str, Any] = json.loads(answer.read_text())
    if result["refusal"] is None and done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "ERROR:" in line or "Error" in line] or lines or ["no reason is given"]
        result["refusal"] = printable(errors[-1].strip())
    return result


def _files_below(root: Path) -> Iterator[str]:
    """Yield the paths of the files below `root`, relative to it."""
    for folder, _, names in os.walk(root):
        for name in names:
            yield (Path(folder) / name).relative_to(root).as_posix()


def differences_from(record: DistributionRecord, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between the record and the result of pip for a wheel.

    `found` has `requires_dist`, `provides_extra`, `entry_points` (triples of group, name and reference) and the `paths`
    in site-packages.
    """
    files = by_folder(name for name in found["paths"] if not name.partition("/")[0].endswith(".dist-info"))
    modules = find_modules(files)
    yield from _one_sided("modules", modules.names, record.modules or ())
    yield from _one_sided("requires_dist", map(_joined, found["requires_dist"]), record.requires_dist or ())
    yield from _one_sided("provides_extra", map(normalized_name, found["provides_extra"]), _extras(record))
    entry_points = [f"{group}: {name} = {value}" for group, name, value in found["entry_points"]]
    groups = (record.entry_points or {}).items()
    read = [f"{group}: {name} = {value}" for group, each in groups for name, value in each.items()]
    yield from _one_sided("entry_points", entry_points, read)
    start_up = [printable(name) for name in found["paths"] if name.endswith(START_UP_ENDS) and "/" not in name]
    yield from _one_sided("start_up_paths", start_up, record.start_up_paths)
    installed = {name.partition("/")[0] for name in found["paths"]}
    distributions = sorted(top for top in installed if lower(top).endswith(METADATA_ENDS))
    own = [top for top in distributions if top.endswith(".dist-info")]
    yield from _one_sided("distributions", map(printable, distributions), own[:1])


def _extras(record: DistributionRecord) -> list[str]:
    return [normalized_name(extra) for extra in record.provides_extra]


def _joined(value: str) -> str:
    """Return a value as one line, as in records."""
    return " ".join(value.split())


def _one_sided(field: str, pips: Iterable[str], ours: Iterable[str]) -> Iterator[str]:
    """Yield a line for each value that only one side has, limited to some for each side."""
    by_pip, read = set(pips), set(ours)
    for values, where in ((by_pip - read, "by pip, not in the record"), (read - by_pip, "in the record, not by pip")):
        for value in sorted(values)[:_SHOWN]:
            yield f"{field}: {where}: {printable(value)}"
        if len(values) > _SHOWN:
            yield f"{field}: {where}: {len(values) - _SHOWN} more"


_BOUND = """
try:
    import resource
except ImportError:
    pass
else:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    least = max_file_bytes if most == resource.RLIM_INFINITY else min(max_file_bytes, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
"""

_DRIVER = """
import json, sys
name, wheel, prefix, answer = sys.argv[1:]
import pip
from pip._internal.cli.main import main
from pip._internal.locations import get_scheme
from pip._internal.metadata import FilesystemWheel, get_wheel_distribution
from pip._vendor.packaging.utils import canonicalize_name
found = {"version": pip.__version__, "refusal": None, "requires_dist": [], "provides_extra": [], "entry_points": []}
try:
    read = get_wheel_distribution(FilesystemWheel(wheel), canonicalize_name(name))
    metadata = read.metadata
    found["requires_dist"] = [each.strip() for each in metadata.get_all("Requires-Dist", [])]
    found["provides_extra"] = [each.strip() for each in metadata.get_all("Provides-Extra", [])]
    found["entry_points"] = [(each.group, each.name, each.value) for each in read.iter_entry_points()]
except Exception as error:
    found["refusal"] = f"{type(error).__name__}: {error}"
scheme = get_scheme(name, prefix=prefix)
found["sites"] = sorted({scheme.purelib, scheme.platlib})
with open(answer, "w") as file:
    json.dump(found, file)
options = ["--isolated", "--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
what = ["--no-deps", "--no-index", "--no-compile", "--ignore-installed", "--ignore-requires-python"]
sys.exit(main(["install", *options, *what, "--no-warn-script-location", "--prefix", prefix, wheel]))
"""

_UNPACKING = """
import json, sys
archive, tree, answer = sys.argv[1:]
import pip
from pip._internal.utils.unpacking import unpack_file
found = {"version": pip.__version__, "refusal": None}
try:
    unpack_file(archive, tree)
except Exception as error:
    found["refusal"] = f"{type(error).__name__}: {error}"
with open(answer, "w") as file:
    json.dump(found, file)
"""
