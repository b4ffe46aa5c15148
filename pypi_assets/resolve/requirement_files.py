"""Read the requirements to resolve from files in the format of requirements.txt.

Options in a file apply to all requirements, as in pip. Options that do not affect the choice of versions from the
followed index are ignored and reported by name. Their values are not reported, because URLs can contain passwords.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pypi_assets.locks.lock_content import shown
from pypi_assets.locks.requirement_lines import (
    HASH,
    LineKind,
    OptionLine,
    RequirementLine,
    requirement_lines,
)
from pypi_assets.resolve.questions import ALL, Control, ResolveError, Wanted, parse_wanted

_SHA256 = re.compile(r"sha256:([0-9a-fA-F]{64})", re.ASCII)
_INDEX = "versions are chosen from the followed index"
_IGNORED = {
    "--index-url": _INDEX,
    "--extra-index-url": _INDEX,
    "--find-links": _INDEX,
    "--no-index": _INDEX,
    "--trusted-host": "nothing is downloaded",
    "--prefer-binary": "a newer sdist is preferred to an older wheel",
    "--require-hashes": "hashes are checked if they are given",
    "--use-feature": "it only affects pip",
    "--config-settings": "nothing is built",
    "--hash": "it does not belong to a requirement",
}
"""The reason for ignoring an option, by name. `--no-require-hashes` is missing, because it is the default here."""
_UNKNOWN = "requirement files have no such option"


@dataclass
class ReadRequirements:
    """The requirements, constraints and options in files.

    `ignored` has a sentence for each option that has no effect.
    """

    requirements: list[Wanted] = field(default_factory=list)
    constraints: list[Wanted] = field(default_factory=list)
    prereleases: Control = field(default_factory=Control)
    formats: Control = field(default_factory=Control)
    ignored: list[str] = field(default_factory=list)

    def read(self, file: Path, kind: LineKind | None = None) -> None:
        """Add the lines of a file. With `kind`, all its lines have this kind, however they are included."""
        for line in requirement_lines(file):
            if isinstance(line, OptionLine):
                self._apply(line)
            elif (kind or line.kind) is LineKind.CONSTRAINT:
                self.constraints.append(self._wanted(line))
            else:
                self.requirements.append(self._wanted(line))

    def _apply(self, line: OptionLine) -> None:
        """Apply the options of a line in the order in which pip defines them."""
        for name, values in line.options.values.items():
            match name:
                case "--pre":
                    self.prereleases = replace(self.prereleases, yes=self.prereleases.yes | {ALL})
                case "--all-releases":
                    self.prereleases = self.prereleases.with_yes(_names(values))
                case "--only-final":
                    self.prereleases = self.prereleases.with_no(_names(values))
                case "--only-binary":
                    self.formats = self.formats.with_yes(_names(values))
                case "--no-binary":
                    self.formats = self.formats.with_no(_names(values))
                case _ if name in _IGNORED:
                    self._ignore(line.where, name, _IGNORED[name])
        self._name_unknown(line)

    def _wanted(self, line: RequirementLine) -> Wanted:
        if line.requirement is None:
            raise ResolveError(
                f"{line.where}: {shown(line.text)} is a URL or a path, not a project of the index: remove it, or name a"
                " version instead"
            )
        for name in line.options.values:
            if name != HASH:
                self._ignore(line.where, name, _IGNORED.get(name, "it belongs on its own line, for all requirements"))
        self._name_unknown(line)
        hashes = frozenset(match[1].lower() for one in line.hashes if (match := _SHA256.fullmatch(one)))
        if line.hashes and not hashes:
            self._ignore(line.where, HASH, "only SHA-256 hashes of files are known")
        try:
            return replace(parse_wanted(line.text), hashes=hashes)
        except ResolveError as error:
            raise ResolveError(f"{line.where}: {error}") from None

    def _name_unknown(self, line: OptionLine | RequirementLine) -> None:
        for name in line.options.unknown:
            self._ignore(line.where, name, _UNKNOWN)

    def _ignore(self, where: str, option: str, reason: str) -> None:
        self.ignored.append(f"{where}: {option} is ignored: {reason}")


def read_requirements(
    files: Iterable[Path], constraint_files: Iterable[Path] = (), *, prereleases: bool = False
) -> ReadRequirements:
    """Return the requirements in files, and the constraints: from `constraint_files`, and from files included by `-c`.

    `prereleases` allows pre-releases for all projects, unless options in the files say otherwise. Raises LockError and
    ResolveError with the file and the line, also if a line is a URL or a path.
    """
    found = ReadRequirements(prereleases=Control.for_all(prereleases))
    for file in files:
        before = len(found.requirements) + len(found.constraints)
        found.read(file)
        if len(found.requirements) + len(found.constraints) == before:
            raise ResolveError(f"{file} contains no requirement")
    for file in constraint_files:
        found.read(file, LineKind.CONSTRAINT)
    return found


def _names(values: Iterable[str]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
