"""Makes the package's description of README.md, without the links and pictures that only the repository has.

All other metadata is in pyproject.toml.
"""

import re
from pathlib import Path

from setuptools import setup

README = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")


def described(text: str) -> str:
    """The text without pictures, and with the words of links alone, unless they lead to the web or within the page."""
    without_pictures = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", "", text)
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", without_pictures)


setup(long_description=described(README), long_description_content_type="text/markdown")
