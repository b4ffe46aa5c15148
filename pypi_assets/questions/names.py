"""The types of what questions take, with what they accept."""

from typing import Annotated

from pypi_assets.questions.question import Accepts

ModuleName = Annotated[
    str, Accepts(text="the dotted name of a module, such as yaml.nodes", min_length=1, max_length=1_000)
]
CommandName = Annotated[str, Accepts(text="the name of a command, such as http", min_length=1, max_length=300)]
Prefix = Annotated[bool, Accepts(text="all names that begin with it")]
