"""The columns of a dump's rows: names, JSON types and meanings, in order. docs/formats.md has the table."""

from dataclasses import dataclass

COLUMNS_VERSION = 4
"""Raised when columns are added. A dump's own columns are in its manifest."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a dump: its JSON type, and what it means."""

    type: str
    meaning: str


TOMBSTONE_COLUMNS = {
    "project": Column("string", "the project's name as displayed"),
    "normalized": Column("string", "the project's normalized name"),
    "version": Column("string", "the release that the file belongs to"),
    "filename": Column("string", "the file's name, unique within its project"),
    "tombstone": Column("boolean", "true: not live at the end of the range, and no further column is there"),
}
COLUMNS = TOMBSTONE_COLUMNS | {
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
    "project_status": Column("string or null", "of the project as its newest page shows it, PEP 792"),
    "provenance": Column("string or null", "URL of the file's attestations, PEP 740; null: not observed"),
    "first_seen_at": Column("string or null", "ISO 8601, UTC: when an observed index first showed it; see below"),
}
"""All columns. What is not known is null; an empty list means none."""
