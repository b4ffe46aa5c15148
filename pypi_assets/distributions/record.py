"""What is known of one distribution file: its kind by name, and the record of what was read from it."""

from dataclasses import dataclass
from enum import StrEnum

EXTRACTOR_VERSION = 11
"""Raised whenever the same bytes would lead to another record; stored with each result."""
SKIPS, FAILS, FAILS_LATE = "skips", "fails", "fails to install"
AMBIGUOUS = "ambiguous archive:"
"""How a note begins where readers of an archive, or versions of pip or Python, see different things in it."""
START_UP_CODE = "start-up code:"
"""How a note begins about what Python runs at each start."""
START_UP_ENDS = (".pth", ".start")
"""Of files right in site-packages by which Python runs code at each start: `.start` since Python 3.15 (PEP 829)."""


class DistributionKind(StrEnum):
    """The kind of file, by its name. Those after EGG hold no metadata that we read."""

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
    """Why a file could not be read. The same bytes would fail again.

    A reader process that dies or falls silent is no proof of that: a machine short of memory kills others too. A crawl
    records it (READER_FAILURE, or LIMIT_EXCEEDED for the time) only after a second reader has ended in the same way.
    """

    CORRUPT_ARCHIVE = "corrupt archive"
    NO_METADATA = "no metadata"
    BAD_METADATA = "bad metadata"
    LIMIT_EXCEEDED = "limit exceeded"
    UNSUPPORTED_KIND = "unsupported kind"
    READER_FAILURE = "reader failure"


class ModulesGrade(StrEnum):
    """How far the modules of a record can be trusted, the surest first.

    EXACT: they are in the archive of a wheel or egg, or an sdist declares them and the rules of its build backend were
    followed wholly. DERIVED: the rules were followed, with an assumption: what a condition decides, or what compilers
    and hooks of a build add. GUESSED: what was found may be something else, or only a part.
    """

    EXACT = "exact"
    DERIVED = "derived"
    GUESSED = "guessed"


@dataclass(frozen=True, slots=True)
class ReadError:
    """An error record: the kind, and a text that names what is wrong."""

    kind: ErrorKind
    text: str


@dataclass(frozen=True, slots=True)
class FilenameParts:
    """The parts of a distribution's filename (PEP 427, 625 and what came before them). `version` is as written.

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
    """What was read from one distribution.

    `requires_dist` None means unknown, an empty tuple means none. `entry_points` are object references by group and
    name: None means unknown, an empty dict none. `modules` are dotted import names, sorted.
    `modules_by` and `requires_by` name the rule by which they are known (`archive`, `METADATA`, `find packages` ...),
    None where they are unknown. `modules_grade` is how sure the modules are, None where they are unknown. `stubs` are
    the modules that its stub files describe, `left_out` counts module files whose paths no import statement can name.
    `declared` are top-level names as the project declares them (top_level.txt, Import-Name). `error` is None where the
    file could be read; a partly read file keeps what was found, and `notes` describe what was odd.

    `license_expression` is SPDX's (PEP 639), `license` the free text of older metadata, at most 1 KiB of UTF-8, and
    `license_classifiers` begin with `License ::`. `project_urls` are `label, URL`, with Home-page and Download-URL as
    `Homepage` and `Download`. `import_names` are Import-Name and Import-Namespace as written (PEP 794): None where
    none is declared, an empty tuple where the project declares that there is nothing to import. `start_up_paths` are
    the `.pth` and `.start` files that a wheel or egg puts into the root of site-packages, by which Python runs code at
    each start; an sdist has none, since only a build shows them. `variant` is the label of a wheel variant (PEP 825).
    `refusals` are what pip and uv do if they do not take the file, each as `INSTALLER ACTION: REASON`. The installer
    `skips` the file and takes the next one, `fails`, or `fails to install` what it has resolved.

    Installers resolve by the metadata that the index serves next to a wheel (PEP 658), and pip does so for an sdist. If
    these are not the file's own, `requires_python`, `requires_dist` and `provides_extra` are from there. Then
    `installed_metadata` has the lines of METADATA with these fields, the name and the version, as the file's own have
    them; it is None if both have the same lines. Of an sdist, `Dynamic: Requires-Dist` is a line if its own
    requirements are unknown.
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
