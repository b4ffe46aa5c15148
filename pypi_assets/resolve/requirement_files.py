"""Reads what is to be resolved from files in the format of requirements.txt.

Options in them hold for all requirements, as for pip. Those that have no part in choosing versions from the index that
is followed are ignored, and named: their values are not, since URLs can have passwords.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pypi_assets.locks.lock_content import shown
from pypi_assets.locks.requirement_lines import LineKind, OptionLine, RequirementLine, requirement_and_option_lines
from pypi_assets.resolve.questions import Formats, ResolveError, Wanted, parse_wanted

_OPTIONS = re.compile(r"\s--[a-z].*", re.DOTALL)
"""What can stand behind a requirement: `--hash` and such."""
_SHA256 = re.compile(r"sha256:([0-9a-fA-F]{64})", re.ASCII)
_INDEX = "versions are chosen from the index that is followed"
_IGNORED = {
    "index_url": ("--index-url", _INDEX),
    "extra_index_urls": ("--extra-index-url", _INDEX),
    "find_links": ("--find-links", _INDEX),
    "no_index": ("--no-index", _INDEX),
    "trusted_hosts": ("--trusted-host", "nothing is downloaded"),
    "prefer_binary": ("--prefer-binary", "a newer sdist comes before an older wheel"),
    "require_hashes": ("--require-hashes", "hashes count where they are given"),
    "use_features": ("--use-feature", "it is of pip alone"),
}
"""By the parser's name of an option: how it is written, and why it is ignored."""


@dataclass
class ReadRequirements:
    """What files have: requirements, constraints, and what options in them mean.

    `ignored` has a sentence for each option that has no effect.
    """

    requirements: list[Wanted] = field(default_factory=list)
    constraints: list[Wanted] = field(default_factory=list)
    prereleases: bool = False
    formats: Formats = field(default_factory=Formats)
    ignored: list[str] = field(default_factory=list)

    def read(self, file: Path, kind: LineKind | None = None) -> None:
        """Adds the lines of a file; those of a `kind` are of this one, whatever line includes them."""
        for line in requirement_and_option_lines(file):
            if isinstance(line, OptionLine):
                self._apply(line)
            elif (kind or line.kind) is LineKind.CONSTRAINT:
                self.constraints.append(self._wanted(line))
            else:
                self.requirements.append(self._wanted(line))

    def _apply(self, line: OptionLine) -> None:
        if not line.options:
            self.ignored.append(f"{line.where}: it is ignored: its options are of no requirement")
        for name, value in line.options.items():
            if name == "pre":
                self.prereleases = True
            elif name == "only_binary":
                self.formats = self.formats.with_binary(_names(value))
            elif name == "no_binary":
                self.formats = self.formats.with_source(_names(value))
            else:
                self._ignore(line.where, *_IGNORED[name])

    def _wanted(self, line: RequirementLine) -> Wanted:
        text = _OPTIONS.sub("", line.required.line).strip()
        if line.is_elsewhere:
            raise ResolveError(
                f"{line.where}: {shown(text)} is a URL or a path, and no project of the index: leave it out, or name a"
                " version instead"
            )
        for option, given in (("--global-option", "global_options"), ("--install-option", "install_options")):
            if getattr(line.required, given):
                self._ignore(line.where, option, "nothing is built")
        hashes = frozenset(match[1].lower() for one in line.required.hash_options if (match := _SHA256.fullmatch(one)))
        if line.required.hash_options and not hashes:
            self._ignore(line.where, "--hash", "files are known by their sha256 alone")
        try:
            return replace(parse_wanted(text), hashes=hashes)
        except ResolveError as error:
            raise ResolveError(f"{line.where}: {error}") from None

    def _ignore(self, where: str, option: str, reason: str) -> None:
        self.ignored.append(f"{where}: {option} is ignored: {reason}")


def read_requirements(files: Iterable[Path], constraint_files: Iterable[Path] = ()) -> ReadRequirements:
    """The requirements of files, and the constraints: those that the files include by `-c`, and those of other files.

    Raises LockError and ResolveError, with the file and the line: also where a line names a URL or a path.
    """
    found = ReadRequirements()
    for file in files:
        before = len(found.requirements) + len(found.constraints)
        found.read(file)
        if len(found.requirements) + len(found.constraints) == before:
            raise ResolveError(f"{file}: it names no requirement")
    for file in constraint_files:
        found.read(file, LineKind.CONSTRAINT)
    return found


def _names(values: Iterable[str]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
