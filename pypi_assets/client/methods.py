"""The methods of a client, one for each question.

`python -m pypi_assets_tests.client.written_methods` writes this file.
"""
# ruff: noqa: A002 - parameters have the names that commands and routes have

from typing import TYPE_CHECKING, Any

from pypi_assets.client.results import Results

if TYPE_CHECKING:
    from pypi_assets.lookup.commands_reader import CommandResult
    from pypi_assets.lookup.depgraph_reader import Dependent, Distribution, TransitiveDependent
    from pypi_assets.lookup.hashes_reader import HashResult, KnownHashResult
    from pypi_assets.lookup.modules_reader import ModuleResult
    from pypi_assets.lookup.simple_reader import PageFileResult


class Questions:
    """A method for each question. Its parameters, limits and results equal the command and the route of the question.

    Each raises ParameterError for a value beyond its limits, and OtherSnapshotError if the source cannot answer.
    """

    def _ask(
        self, name: str, values: dict[str, Any], page_size: int | None = None, cursor: str | None = None
    ) -> Results[Any]:
        raise NotImplementedError

    def module(
        self,
        module: str,
        *,
        prefix: bool = False,
        latest: bool = False,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> "Results[ModuleResult]":
        """List the projects that provide a module, and in which versions.

        `module`: the dotted name of a module, such as yaml.nodes, up to 1000 characters.
        `prefix`: all names that begin with it.
        `latest`: of each project only the newest version that provides it; its own newest may not.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask("module", {"module": module, "prefix": prefix, "latest": latest}, page_size, cursor)

    def project(self, requirement: str, *, prefix: bool = False, latest: bool = False) -> "Results[Distribution]":
        """List the distributions of a project, with what they require.

        With ==VERSION, those of this version alone.

        `requirement`: a project's NAME, or NAME==VERSION for one version of it, up to 600 characters.
        `prefix`: all names that begin with it.
        `latest`: only the files of the newest version of each project.
        """
        return self._ask("project", {"requirement": requirement, "prefix": prefix, "latest": latest})

    def dependents(
        self,
        project: str,
        *,
        prefix: bool = False,
        latest: bool = False,
        transitive: bool = False,
        depth: int | None = None,
    ) -> "Results[Dependent | TransitiveDependent]":
        """List the projects that require a project.

        Each comes with the versions that require it always, only by a marker, and only with an extra.

        `project`: the name of a project, in any spelling, up to 300 characters.
        `prefix`: all names that begin with it.
        `latest`: only projects whose own newest version requires it, with that version.
        `transitive`: also the dependents of dependents, and so on.
        `depth`: with transitive: no more steps than this, from 1.
        """
        return self._ask(
            "dependents",
            {"project": project, "prefix": prefix, "latest": latest, "transitive": transitive, "depth": depth},
        )

    def command(
        self,
        name: str,
        *,
        prefix: bool = False,
        latest: bool = False,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> "Results[CommandResult]":
        """List the projects that install a command, and in which versions.

        The versions are those that install it as a console script.

        `name`: the name of a command, such as http, up to 300 characters.
        `prefix`: all names that begin with it.
        `latest`: of each project only the newest version that installs it; its own newest may not.
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
    ) -> "Results[HashResult | KnownHashResult]":
        """List the live files that have a sha256.

        Each comes with its project and version, and the serial since which it is live.

        `sha256`: a sha256: 64 hex digits, in upper or lower case, up to 64 characters.
        `prefix`: all names that begin with it.
        `all`: also what was removed, with its times, from the catalog.
        `page_size`: the number of results in a request. `cursor`: the position to continue at.
        """
        return self._ask("hash", {"sha256": sha256, "prefix": prefix, "all": all}, page_size, cursor)

    def page(self, project: str) -> "Results[PageFileResult]":
        """List the files that the page of a project in the Simple API shows.

        `project`: the name of a project, in any spelling, up to 300 characters.
        """
        return self._ask("page", {"project": project})
