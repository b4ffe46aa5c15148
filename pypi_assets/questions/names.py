"""Parameter types that several questions share, with their limits."""

from typing import Annotated

from pypi_assets.questions.question import Accepts

ModuleName = Annotated[
    str, Accepts(text="the dotted name of a module, such as yaml.nodes", min_length=1, max_length=1_000)
]
CommandName = Annotated[str, Accepts(text="the name of a command, such as http", min_length=1, max_length=300)]
ProjectName = Annotated[str, Accepts(text="the name of a project, in any spelling", max_length=300)]
Requirement = Annotated[str, Accepts(text="a project's NAME, or NAME==VERSION for one version of it", max_length=600)]
Sha256 = Annotated[
    str, Accepts(text="a sha256: 64 hex digits, in upper or lower case", max_length=64, pattern="^[0-9A-Fa-f]*$")
]
Prefix = Annotated[bool, Accepts(text="all names that begin with it")]
