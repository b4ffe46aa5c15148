"""Define the kinds of distribution files and the record of the facts read from one file."""

from dataclasses import dataclass
from enum import StrEnum

EXTRACTOR_VERSION = 13
"""The version of the rules, stored with each result. It is increased when the same bytes lead to another record."""
SKIPS, FAILS, FAILS_LATE = "skips", "fails", "fails to install"
AMBIGUOUS = "ambiguous archive:"
"""The start of notes on archives that tools, or versions of pip or Python, read differently."""
START_UP_CODE = "start-up code:"
"""The start of notes on code that Python runs at each start."""
START_UP_ENDS = (".pth", ".start")
"""Suffixes of files in the root of site-packages that make Python run code at each start.

Python 3.15 introduces `.start` (PEP 829).
"""


class DistributionKind(StrEnum):
    """The kind of a file, by its name. Kinds after EGG have no metadata that readers support."""

    WHEEL = "wheel"
    SDIST = "sdist"
    EGG = "egg"
    WININST = "wininst"
    MSI = "msi"
    RPM = "rpm"
    DEB = "deb"
    DMG = "dmg"
    DUMB = "dumb"
    UNKNOWN = "unknown"


READABLE_KINDS = frozenset({DistributionKind.WHEEL, DistributionKind.SDIST, DistributionKind.EGG})


class ErrorKind(StrEnum):
    """The reason why a file could not be read. The same bytes would fail again.

    A reader process that dies or falls silent does not prove that, since a machine that runs out of memory kills
    readers of harmless files, too. So a crawl stores such an error (READER_FAILURE, or LIMIT_EXCEEDED for the time)
    only after a second reader has ended in the same way.
    """

    CORRUPT_ARCHIVE = "corrupt archive"
    NO_METADATA = "no metadata"
    BAD_METADATA = "bad metadata"
    LIMIT_EXCEEDED = "limit exceeded"
    UNSUPPORTED_KIND = "unsupported kind"
    READER_FAILURE = "reader failure"


class ModulesGrade(StrEnum):
    """The certainty of the modules in a record, most certain first.

    - EXACT: the modules are in the archive of a wheel or egg, or an sdist declares them and all rules of its build
      backend were followed.
    - DERIVED: the rules were followed with an assumption, such as the result of a condition, or what compilers and
      build hooks add.
    - GUESSED: the real modules may be different or more.
    """

    EXACT = "exact"
    DERIVED = "derived"
    GUESSED = "guessed"


@dataclass(frozen=True, slots=True)
class ReadError:
    """The error of a record: its kind, and a text that describes it."""

    kind: ErrorKind
    text: str


@dataclass(frozen=True, slots=True)
class FilenameParts:
    """The parts of a distribution's filename (PEP 427, PEP 625 and earlier forms). `version` is as written.

    `variant` is the label of a wheel variant (PEP 825).
    """

    filename: str
    kind: DistributionKind
    project: str | None = None
    version: str | None = None
    build: str | None = None
    python: str | None = None
    abi: str | None = None
    platform: str | None = None
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class DistributionRecord:
    """The facts that were read from one distribution.

    `requires_dist` is None if unknown and an empty tuple if nothing is required. `entry_points` are object references
    by group and name, None if unknown and an empty dict if there are none. `modules` are sorted dotted import names.
    `modules_by` and `requires_by` name the rule that found them (`archive`, `METADATA`, `find packages` ...), or are
    None if they are unknown. `modules_grade` is the certainty of the modules. `stubs` are the modules that stub files
    describe, and `left_out` counts module files whose paths cannot be imported. `declared` are top-level names that the
    project declares (top_level.txt, Import-Name). `error` is None if the file could be read. A partly read file keeps
    the facts found, and `notes` describe anything unusual.

    `license_expression` is SPDX (PEP 639), `license` is the free text of older metadata with at most 1 KiB of UTF-8,
    and `license_classifiers` begin with `License ::`. `project_urls` are `label, URL`, with Home-page and Download-URL
    as `Homepage` and `Download`. `import_names` are Import-Name and Import-Namespace as written (PEP 794): None if none
    is declared, and an empty tuple if the project declares that there is nothing to import. `start_up_paths` are the
    `.pth` and `.start` files that a wheel or egg puts into the root of site-packages, where Python runs their code at
    each start. An sdist has none, since only a build shows them. `variant` is the label of a wheel variant (PEP 825).

    `refusals` are the actions of pip and uv if they reject the file, as `INSTALLER ACTION: REASON`. The installer
    `skips` the file and takes the next one, `fails`, or `fails to install` what it has resolved.

    Installers resolve by the metadata that the index serves next to a wheel (PEP 658), and pip also does so for an
    sdist. If these are not the file's own metadata, `requires_python`, `requires_dist` and `provides_extra` come from
    there. Then `installed_metadata` has the lines of the file's own METADATA with these fields, the name and the
    version. It is None if both have the same lines. For an sdist, `Dynamic: Requires-Dist` is one of the lines if its
    own requirements are unknown.
    """

    filename: str
    kind: DistributionKind
    project: str | None
    version: str | None
    sha256: str | None = None
    size: int | None = None
    metadata_version: str | None = None
    summary: str | None = None
    requires_python: str | None = None
    requires_dist: tuple[str, ...] | None = None
    provides_extra: tuple[str, ...] = ()
    entry_points: dict[str, dict[str, str]] | None = None
    modules: tuple[str, ...] | None = None
    modules_by: str | None = None
    modules_grade: ModulesGrade | None = None
    requires_by: str | None = None
    stubs: tuple[str, ...] = ()
    left_out: int = 0
    declared: tuple[str, ...] = ()
    license_expression: str | None = None
    license: str | None = None
    license_classifiers: tuple[str, ...] = ()
    project_urls: tuple[str, ...] = ()
    import_names: tuple[str, ...] | None = None
    start_up_paths: tuple[str, ...] = ()
    variant: str | None = None
    refusals: tuple[str, ...] = ()
    installed_metadata: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    error: ReadError | None = None


SHARED_FIELDS = (
    *("summary", "provides_extra", "entry_points", "license_expression", "license", "license_classifiers"),
    *("project_urls", "import_names"),
)
"""The fields of a record that files of one release often have in common, and that are stored once for all of them."""
