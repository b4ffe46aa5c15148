"""Facts about a project as a whole in the dataset `modules`: the record `o PROJECT`.

The owners of a module are ranked by these facts. One read for each candidate is enough, however many files it has.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pypi_assets.distributions.installability import is_installable
from pypi_assets.leveldbs.datasets.provided_names import STUB, FileEntry
from pypi_assets.leveldbs.format.records import Row
from pypi_assets.version_order import canonical_version, newest_release

_QUARANTINED = "quarantined"


class Overview(msgspec.Struct, frozen=True, array_like=True):
    """A project as shown by its live files. Files that no installer accepts count only if there are no others.

    `releases` is the number of its versions, `newest` the canonical version that an installer would choose, and
    `first_live_serial` the earliest serial since which one of the files is live. `declared` are the import names that
    the files of `newest` declare (PEP 794), as written. It is None if no file declares any, or if the dumps lack them.
    `rejected` are the versions without a file that an installer accepts.
    """

    releases: int
    newest: str
    first_live_serial: int | None
    is_quarantined: bool
    declared: list[str] | None
    rejected: list[str] = []


_decoder = msgspec.json.Decoder(Overview)


def decode_overview(value: bytes) -> Overview:
    """Return the overview in the value of a record."""
    return _decoder.decode(value)


def module_names(modules: list[str], stubs: Iterable[str]) -> list[str]:
    """Return the names of a file: its modules, and the modules that its stubs describe, marked with STUB."""
    return [*modules, *(STUB + name for name in stubs)] if stubs else modules


def marks_of(row: Row) -> dict[str, Any]:
    """Return the facts about a file that an overview needs and that most files lack.

    These are: the file is yanked, the import names that it declares, its project is in quarantine, or no installer
    accepts it.
    """
    marks: dict[str, Any] = {}
    if row["yanked"]:
        marks["yanked"] = True
    if row.get("import_names") is not None:
        marks["import_names"] = row["import_names"]
    if row.get("project_status") == _QUARANTINED:
        marks["quarantined"] = True
    if not is_installable(row.get("refusals")):
        marks["rejected"] = True
    return marks


def overview_of(files: Mapping[str, FileEntry]) -> Overview:
    """Return the overview of a project with these files, of which there is at least one.

    The files of its newest release decide which names it declares, and whether it is in quarantine.
    """
    accepted = [entry for entry in files.values() if "rejected" not in _marks(entry)]
    counted = accepted or files.values()
    newest = newest_release({(entry[0], bool(_marks(entry).get("yanked"))) for entry in counted})
    of_newest = [_marks(entry) for entry in counted if canonical_version(entry[0]) == newest]
    declared = [names for marks in of_newest if (names := marks.get("import_names")) is not None]
    return Overview(
        releases=len({entry[0] for entry in counted}),
        newest=newest,
        first_live_serial=min((entry[3] for entry in counted if entry[3] is not None), default=None),
        is_quarantined=any("quarantined" in marks for marks in of_newest),
        declared=sorted({name for names in declared for name in names}) if declared else None,
        rejected=sorted({entry[0] for entry in files.values()} - {entry[0] for entry in accepted}),
    )


def _marks(entry: FileEntry) -> Mapping[str, Any]:
    return entry[4] if len(entry) > 4 else {}


def encoded_overview(files: Mapping[str, FileEntry]) -> bytes:
    """Return the encoded overview of a project with these files."""
    return msgspec.json.encode(overview_of(files))
