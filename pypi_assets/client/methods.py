"""The methods of a client, one for each question.

`python -m pypi_assets_tests.client.written_methods` writes this file.
"""
# ruff: noqa: A002 - parameters have the names that commands and routes have

from typing import TYPE_CHECKING, Any, Literal

from pypi_assets.client.results import ResultIterator

if TYPE_CHECKING:
    from pypi_assets.lookup.commands_reader import CommandResult
    from pypi_assets.lookup.dependent_results import Dependent, TransitiveDependent
    from pypi_assets.lookup.depgraph_reader import Distribution
    from pypi_assets.lookup.hashes_reader import HashResult, KnownHashResult
    from pypi_assets.lookup.import_owners import ImportOwners
    from pypi_assets.lookup.modules_reader import ModuleResult
    from pypi_assets.lookup.package_urls import PurlResult
    from pypi_assets.lookup.project_answers import HistoryEntry, LiveFileResult, ProjectResult, VersionResult
    from pypi_assets.lookup.release_impact import Break, Impact
    from pypi_assets.lookup.simple_reader import PageFileResult
    from pypi_assets.questions.collisions import CollisionsResult
    from pypi_assets.resolve.formats.json_answer import ResolutionResult


class Questions:
    """A method for each question. Its parameters, limits and results equal the command and the route of the question.

    Each raises ParameterError for a value beyond its limits, and OtherSnapshotError if the source cannot answer.
    """

    def _ask(
        self, name: str, values: dict[str, Any], page_size: int | None = None, cursor: str | None = None
    ) -> ResultIterator[Any]:
        raise NotImplementedError

    def module(
        self,
        module: str,
        *,
        prefix: bool = False,
        latest: bool = False,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> "ResultIterator[ModuleResult]":
        """List the projects that provide a module, and in which versions.

        `module`: the dotted name of a module, such as yaml.nodes, up to 1000 characters.
        `prefix`: match all names that begin with the given text.
        `latest`: list only each project's newest version that provides it, which may not be its newest.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask("module", {"module": module, "prefix": prefix, "latest": latest}, page_size, cursor)

    def owners(self, name: str, *, limit: int | None = None) -> "ResultIterator[ImportOwners]":
        """Rank the projects that provide imports, with the reasons.

        For each import, these are all projects that provide its longest known module.

        `name`: an import, such as google.cloud.storage, up to 1000 characters.
        `limit`: the number of candidates to list, 1 to 1000; by default all, from 1 to 1000.
        """
        return self._ask("owners", {"name": name, "limit": limit})

    def releases(self, project: str) -> "ResultIterator[ProjectResult]":
        """List the releases of a project with their files, and show the project's metadata.

        Without a catalog, the summary, licence, links, status and the serials of the first and last change are null.

        `project`: the name of a project, in any spelling: ASCII letters and digits, with . _ - between them, up to 300
        characters.
        """
        return self._ask("releases", {"project": project})

    def release(self, project: str, version: str) -> "ResultIterator[VersionResult]":
        """Show a version of a project: its files, requirements, extras, modules and commands.

        `project`: the name of a project, in any spelling: ASCII letters and digits, with . _ - between them, up to 300
        characters.
        `version`: a version, such as 2.32.3, up to 300 characters.
        """
        return self._ask("release", {"project": project, "version": version})

    def project(
        self, requirement: str, *, prefix: bool = False, latest: bool = False
    ) -> "ResultIterator[Distribution]":
        """List the distributions of a project, with their requirements.

        With ==VERSION, only the distributions of this version are listed.

        `requirement`: a project NAME, or NAME==VERSION for one of its versions, up to 600 characters.
        `prefix`: match all names that begin with the given text.
        `latest`: list only the files of the newest version of each project.
        """
        return self._ask("project", {"requirement": requirement, "prefix": prefix, "latest": latest})

    def dependents(
        self,
        project: str,
        *,
        prefix: bool = False,
        latest: bool = False,
        version: str | None = None,
        excludes: str | None = None,
        transitive: bool = False,
        depth: int | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> "ResultIterator[Dependent | TransitiveDependent]":
        """List the projects that require a project.

        Each project is listed with the versions that require it always, only under a marker, and only with an extra.

        `project`: the name of a project, in any spelling: ASCII letters and digits, with . _ - between them, up to 300
        characters.
        `prefix`: match all names that begin with the given text.
        `latest`: list only projects whose newest version requires it, with this version.
        `version`: a PEP 440 version in lower case, such as 2.32.3 or 1.0rc1: list only projects that accept this
        version, up to 100 characters.
        `excludes`: a PEP 440 version in lower case, such as 2.32.3 or 1.0rc1: list only projects that exclude this
        version, up to 100 characters.
        `transitive`: also list the dependents of dependents, and so on.
        `depth`: with transitive: the greatest depth to follow, from 1 to 1000.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask(
            "dependents",
            {
                "project": project,
                "prefix": prefix,
                "latest": latest,
                "version": version,
                "excludes": excludes,
                "transitive": transitive,
                "depth": depth,
            },
            page_size,
            cursor,
        )

    def impact(
        self,
        project: str,
        *,
        version: str | None = None,
        transitive: bool = False,
        depth: int | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> "ResultIterator[Impact]":
        """Show what depends on PROJECT, or on one of its versions.

        This lists the projects whose newest release requires it, or accepts the version if there is one. The version
        need not be live, so a deleted release works too. A transitive answer also has the projects whose newest release
        requires the newest release of one of these, and so on.

        `project`: the name of a project, in any spelling: ASCII letters and digits, with . _ - between them, up to 300
        characters.
        `version`: a PEP 440 version in lower case, such as 2.32.3 or 1.0rc1: list only projects that accept this
        version, which need not be live, up to 100 characters.
        `transitive`: also list the projects that require these projects, and so on.
        `depth`: with transitive: the greatest depth to follow, from 1 to 1000.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask(
            "impact",
            {"project": project, "version": version, "transitive": transitive, "depth": depth},
            page_size,
            cursor,
        )

    def breaks(
        self,
        project: str,
        version: str,
        *,
        transitive: bool = False,
        depth: int | None = None,
        solve: bool = False,
        seconds: int = 30,
        python: str = "3.13",
        platform: str = "linux-x86_64",
        semantics: Literal["pip", "uv"] = "pip",
        unknown: Literal["fail", "assume-none"] = "fail",
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> "ResultIterator[Break]":
        """Show projects whose newest release excludes VERSION of PROJECT.

        A transitive answer also has the projects whose newest release requires the newest release of one of these, and
        so on. With solve, it also has the projects whose newest release has no solution with the version, with the
        proof. It checks all projects that can lead to PROJECT by any of their releases. A project that cannot be
        decided within the limits is listed as undecided.

        `project`: the name of a project, in any spelling: ASCII letters and digits, with . _ - between them, up to 300
        characters.
        `version`: a PEP 440 version in lower case, such as 2.32.3 or 1.0rc1: the version that breaks projects; with
        solve, it must be live, up to 100 characters.
        `transitive`: also list the projects that require these projects, and so on.
        `depth`: with transitive: the greatest depth to follow, from 1 to 1000.
        `solve`: also list projects that have no solution with the version.
        `seconds`: with solve: the time limit for all resolutions, from 1 to 600.
        `python`: a CPython version, such as 3.12 or 3.12.4.
        `platform`: a platform: linux-x86_64, macos-arm64, windows-x86_64 and others, or a wheel's platform tag.
        `semantics`: with solve: the installer whose resolution rules to follow.
        `unknown`: with solve: if a file's requirements are unknown, report undecided or assume there are none.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask(
            "breaks",
            {
                "project": project,
                "version": version,
                "transitive": transitive,
                "depth": depth,
                "solve": solve,
                "seconds": seconds,
                "python": python,
                "platform": platform,
                "semantics": semantics,
                "unknown": unknown,
            },
            page_size,
            cursor,
        )

    def files(
        self, project: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> "ResultIterator[LiveFileResult]":
        """List the live distributions of a project.

        This needs a catalog. The order is by version, compared as text, and then by filename.

        `project`: the name of a project, in any spelling: ASCII letters and digits, with . _ - between them, up to 300
        characters.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask("files", {"project": project}, page_size, cursor)

    def history(self, project: str, *, all: bool = False) -> "ResultIterator[HistoryEntry]":
        """Show what happened to a project, by serial.

        This needs a catalog. At an earlier serial, it shows the events up to this serial, without visits of the
        project's page.

        `project`: the name of a project, in any spelling: ASCII letters and digits, with . _ - between them, up to 300
        characters.
        `all`: also show events that change no files, such as roles and renames.
        """
        return self._ask("history", {"project": project, "all": all})

    def command(
        self,
        name: str,
        *,
        prefix: bool = False,
        latest: bool = False,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> "ResultIterator[CommandResult]":
        """List the projects that install a command, and in which versions.

        A version is listed if it installs the command as a console script.

        `name`: the name of a command, such as http, up to 300 characters.
        `prefix`: match all names that begin with the given text.
        `latest`: list only each project's newest version that installs it, which may not be its newest.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask("command", {"name": name, "prefix": prefix, "latest": latest}, page_size, cursor)

    def hash(
        self,
        sha256: str,
        *,
        prefix: bool = False,
        all: bool = False,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> "ResultIterator[HashResult | KnownHashResult]":
        """List the live files that have a SHA-256.

        Each file is listed with its project and version, and the serial since which it is live.

        `sha256`: a SHA-256: 64 hex digits, in upper or lower case, up to 64 characters.
        `prefix`: match all names that begin with the given text.
        `all`: also list deleted files, with their live serials, from the catalog.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask("hash", {"sha256": sha256, "prefix": prefix, "all": all}, page_size, cursor)

    def page(self, project: str) -> "ResultIterator[PageFileResult]":
        """List the files on a project's page of the Simple API.

        `project`: the name of a project, in any spelling, up to 300 characters.
        """
        return self._ask("page", {"project": project})

    def purl(self, purl: str) -> "ResultIterator[PurlResult]":
        """Show whether a package URL names live files, and which.

        The URL can name a project, a version (@), and a file (?file_name=).

        `purl`: a package URL, such as pkg:pypi/requests@2.32.3, up to 1000 characters.
        """
        return self._ask("purl", {"purl": purl})

    def resolve(
        self,
        requirements: list[str] | tuple[str, ...],
        *,
        constraints: list[str] | tuple[str, ...] = (),
        python: str = "3.13",
        platform: str = "linux-x86_64",
        semantics: Literal["pip", "uv"] = "pip",
        prereleases: bool = False,
        only_binary: bool = False,
        cooldown_hours: int = 0,
        unknown: Literal["fail", "assume-none"] = "fail",
    ) -> "ResultIterator[ResolutionResult]":
        """Show which versions an installer would choose.

        The answer is for one environment, with the reason for each version. If there is no solution, `releases` is
        null, and `proof` has the steps of the proof. A service stops a resolution that takes too long.

        `requirements`: up to 5000 requirements in pip's syntax, such as requests>=2.30, each up to 4000 characters.
        `constraints`: up to 5000 constraints, which limit versions but install nothing, each up to 4000 characters.
        `python`: a CPython version, such as 3.12 or 3.12.4.
        `platform`: a platform: linux-x86_64, macos-arm64, windows-x86_64 and others, or a wheel's platform tag.
        `semantics`: the installer whose resolution rules to follow.
        `prereleases`: treat pre-releases like other releases.
        `only_binary`: use no sdists.
        `cooldown_hours`: ignore files that were uploaded within this number of hours, from 0 to 87600.
        `unknown`: if the requirements of a file are unknown: fail, or assume that there are none.
        """
        return self._ask(
            "resolve",
            {
                "requirements": requirements,
                "constraints": constraints,
                "python": python,
                "platform": platform,
                "semantics": semantics,
                "prereleases": prereleases,
                "only_binary": only_binary,
                "cooldown_hours": cooldown_hours,
                "unknown": unknown,
            },
        )

    def collisions(
        self, pins: list[str] | tuple[str, ...], *, python: str | None = None, platform: str | None = None
    ) -> "ResultIterator[CollisionsResult]":
        """Show modules that several pinned distributions have.

        If these distributions are installed together, the last one overwrites the modules of the others. `pip` is the
        distribution that pip installs last.

        `pins`: up to 1000 versions as NAME==VERSION, optionally with extras and markers, each up to 300 characters.
        `python`: a CPython version, such as 3.12 or 3.12.4; default: any.
        `platform`: a platform: linux-x86_64, macos-arm64, windows-x86_64 and others, or a wheel's platform tag;
        default: any.
        """
        return self._ask("collisions", {"pins": pins, "python": python, "platform": platform})
