"""The target that Pants reads: by its grammar, which is Python's, and by the rule that it looks modules up by."""

import ast
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.export.formats import render_pants
from pypi_assets.export.module_owners import nearest
from pypi_assets.questions.locks import LockedAnswer
from pypi_assets_tests.export.pinned import USUAL, answer, of_modules, with_parents


def arguments(of: LockedAnswer) -> dict[str, Any]:
    [statement] = ast.parse(render_pants(of)).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert ast.unparse(statement.value.func) == "python_requirements"
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in statement.value.keywords}


def test_the_target_has_modules_by_normalized_names() -> None:
    assert arguments(USUAL) == {
        "module_mapping": {
            "google-auth": ["google.auth", "google.oauth2"],
            "google-cloud-storage": ["google.cloud"],
            "old": ["no", "null"],
            "protobuf": ["google.protobuf"],
            "pyyaml": ["_yaml", "yaml"],
            "zope-interface": ["zope"],
        },
        "type_stubs_module_mapping": {"types-pyyaml": ["yaml"]},
    }


def test_a_target_of_nothing_is_one_too() -> None:
    assert arguments(answer()) == {"module_mapping": {}, "type_stubs_module_mapping": {}}


names = st.sets(st.sampled_from(["a", "a.b", "a.b.c", "no", "no.yes", "é"]), max_size=4)


@given(st.dictionaries(st.sampled_from(["one", "two-x", "three"]), names, max_size=3))
def test_no_module_is_of_two_and_each_leads_to_its_own(lock: dict[str, set[str]]) -> None:
    lock = {project: with_parents(modules) for project, modules in lock.items()}
    of_projects = arguments(of_modules(lock))["module_mapping"]
    entered = [(module, project) for project, modules in of_projects.items() for module in modules]
    assert len(entered) == len(dict(entered))
    for project, modules in lock.items():
        for module in modules.difference(*(others for other, others in lock.items() if other != project)):
            assert nearest(dict(entered), module) == project
