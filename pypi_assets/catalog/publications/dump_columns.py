"""The format of dumps, for code that reads dumps without a catalog. docs/formats.md has the table of columns.

The leaves of a dump are the dumps that were written from the catalog and later joined into it, directly or not. Two
sequences of dumps over the same serials have the same content if their leaves are equal. Leaves are compared by their
number and a digest, so the stored size does not grow with their number.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

COLUMNS_VERSION = 4
"""Raised when columns are added. The columns of a dump are listed in its manifest."""
FIRST_EXTRACTOR = 11
"""The EXTRACTOR_VERSION that supplies all columns of the first release."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a dump: its JSON type and its meaning.

    Extractors before version `since` do not supply it. It is null for files that they read, and missing in the records
    of the journal from that time.
    """

    type: str
    meaning: str
    since: int = FIRST_EXTRACTOR


TOMBSTONE_COLUMNS = {
    "project": Column("string", "the project's name as displayed"),
    "normalized": Column("string", "the project's normalized name"),
    "version": Column("string", "the release that the file belongs to"),
    "filename": Column("string", "the file's name, unique within its project"),
    "tombstone": Column("boolean", "true: not live at the end of the range, and no further column is there"),
}
_SHOWN_COLUMNS = {
    "kind": Column("string", "wheel, sdist, egg, or another kind, by the filename"),
    "url": Column("string or null", "where the index has the file; null where only an event named it"),
    "sha256": Column("string or null", "of the file, in hex; null where the index shows none"),
    "size": Column("integer or null", "of the file, in bytes"),
    "uploaded_at": Column("string or null", "ISO 8601, UTC"),
    "requires_python": Column("string or null", "as the index shows it, else as in the metadata"),
    "yanked": Column("boolean", "whether the file is yanked at the end of the range"),
    "yanked_reason": Column("string or null", "text"),
    "core_metadata_sha256": Column("string or null", "of the metadata that the index offers for the file, in hex"),
    "live_since": Column("integer", "the serial since which the file is live without a break"),
}
READ_COLUMNS = {
    "outcome": Column("string", "of reading the file: data, error, vanished, unsupported, gave up or pending"),
    "error_kind": Column("string or null", "why it could not be read"),
    "extractor_version": Column("integer or null", "of the code that read the file"),
    "metadata_version": Column("string or null", "of its core metadata"),
    "requires_dist": Column("array of strings or null", "list of requirements; null: unknown, an empty list none"),
    "provides_extra": Column("array of strings", "list of extras"),
    "modules": Column("array of strings or null", "list of dotted import names; null: unknown"),
    "modules_by": Column("string or null", "the rule by which the modules are known"),
    "requires_by": Column("string or null", "the rule by which the requirements are known"),
    "stubs": Column("array of strings", "list of the modules that stub files describe"),
    "left_out": Column("integer", "number of module files whose paths no import statement can name"),
    "summary": Column("string or null", "one line of the metadata"),
    "license_expression": Column("string or null", "an SPDX expression, PEP 639"),
    "license": Column("string or null", "the metadata's License as written, at most 1 KB"),
    "license_classifiers": Column("array of strings or null", "list of the classifiers that begin with License ::"),
    "console_scripts": Column("array of strings or null", "list of commands as name = module:attribute; null: unknown"),
    "gui_scripts": Column("array of strings or null", "list of commands without a terminal; null: unknown"),
    "entry_point_groups": Column("array of strings or null", "list of all entry point groups, sorted; null: unknown"),
    "project_urls": Column("array of strings or null", "list of links, each as label, URL"),
    "import_names": Column("array of strings or null", "list of declared import names, PEP 794; null: not declared"),
    "modules_grade": Column("string or null", "how sure the modules are: exact, derived or guessed"),
    "notes": Column("array of strings or null", "list of what was odd about the file"),
    "start_up_paths": Column("array of strings or null", "list of .pth and .start files, which Python runs"),
    "refusals": Column("array of strings or null", "list of what installers do that do not take the file; see below"),
    "installed_metadata": Column("array of strings or null", "list of lines of METADATA; see below"),
}
"""The columns that are known from reading the file, except `requires_python`. If a record has a field with the name of
a column, dumps, the journal and replays take the value from that field. The lists of an unread file are null."""
COLUMNS = (
    TOMBSTONE_COLUMNS
    | _SHOWN_COLUMNS
    | READ_COLUMNS
    | {
        "project_status": Column("string or null", "of the project as its newest page shows it, PEP 792"),
        "provenance": Column("string or null", "URL of the file's attestations, PEP 740; null: not observed"),
        "first_seen_at": Column("string or null", "ISO 8601, UTC: when an observed index first showed it; see below"),
    }
)
"""All columns. An unknown value is null; an empty list means that there are none."""


FULL_DUMP_SHARDS = (1, 4, 16, 64, 256, 1024, 4096)
"""The numbers of files that a full dump can have."""
DEFAULT_SHARDS = 256
"""The default number of files of a full dump, and the number of partitions of its asset."""


class DumpFormat(StrEnum):
    """How the JSON of a dump file is compressed. The name of the file ends with `ending`, by which readers choose."""

    GZIP = "gzip"
    ZSTD = "zstd"

    @property
    def ending(self) -> str:
        return ".json.gz" if self is DumpFormat.GZIP else ".json.zst"


def format_of(name: str) -> DumpFormat:
    """Return the format of a dump file by the end of its name. A name without a known ending is read as gzip."""
    return next((form for form in DumpFormat if name.endswith(form.ending)), DumpFormat.GZIP)


class DumpKind(StrEnum):
    FULL = "full"
    INCREMENTAL = "incremental"
    COMPACTED = "compacted"


@dataclass(frozen=True, slots=True)
class DumpFile:
    """One file of a dump; `size` is in bytes, compressed."""

    shard: int
    name: str
    rows: int
    size: int
    sha256: str


_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True)
class Leaves:
    """A set of leaves: their `count`, and the sum of the SHA-256 of their directories, as 64 hexadecimal digits.

    A sum does not depend on how the leaves were joined. Their order is that of their serials, which never overlap.

        Leaves.of(["100-110"]) + Leaves.of(["110-120"]) == Leaves.of(["100-110", "110-120"])
    """

    count: int = 0
    digest: str = "0" * 64

    @classmethod
    def of(cls, directories: Iterable[str]) -> "Leaves":
        """Return the leaves with these directories."""
        names = list(directories)
        return cls(len(names), _hex(sum(int(hashlib.sha256(name.encode()).hexdigest(), 16) for name in names)))

    def __add__(self, other: "Leaves") -> "Leaves":
        return Leaves(self.count + other.count, _hex(int(self.digest, 16) + int(other.digest, 16)))


NO_LEAVES = Leaves()


def all_leaves(parts: Iterable[Leaves]) -> Leaves:
    """Return the leaves of all `parts` together."""
    count = total = 0
    for part in parts:
        count, total = count + part.count, total + int(part.digest, 16)
    return Leaves(count, _hex(total))


def _hex(total: int) -> str:
    return f"{total % _MODULUS:064x}"
