"""Class names and the words of the glossary are unique, so that a reader finds one place for each."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pypi_assets
from pypi_assets_tests.test_docs import glossary

PACKAGE = Path(pypi_assets.__file__).parent
COMPONENTS = {"Event", "Outcome", "Project"}
"""Components of the solvability answer. They keep their names because the OpenAPI document has them."""


@cache
def files_by_class() -> dict[str, list[str]]:
    found = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(file.relative_to(PACKAGE).as_posix())
    return dict(found)


def test_class_names_are_unique():
    assert len(files_by_class()) > 500
    assert {name: files for name, files in files_by_class().items() if len(files) > 1} == {}


def test_at_most_two_files_have_the_same_name():
    found = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.name != "__init__.py":
            found[file.name].append(file.relative_to(PACKAGE).as_posix())
    assert len(found) > 200
    assert {name: files for name, files in found.items() if len(files) > 2} == {}


def test_glossary_words_are_one_class_or_a_concept():
    for words, _, place in glossary():
        for word in words:
            name = word.title().replace(" ", "")
            assert name not in files_by_class().keys() - COMPONENTS or place.endswith(f"::{name}"), (word, place)


def test_exempt_component_names_are_in_the_solvability_answer():
    for name in COMPONENTS:
        assert files_by_class()[name] == ["resolve/solvability.py"]
