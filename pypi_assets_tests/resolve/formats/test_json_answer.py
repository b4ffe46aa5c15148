import json

import pytest

from pypi_assets.resolve.formats.json_answer import ResolutionResult, as_json, proof_as_json
from pypi_assets.resolve.universal import UnsolvableTargetError
from pypi_assets_tests.resolve.formats.answers import answer
from pypi_assets_tests.resolve.made_index import question


def test_all_is_there_that_other_formats_are_made_of():
    found = json.loads(json.dumps(as_json(answer())))
    assert set(found) == set(ResolutionResult.__annotations__)
    assert (found["serial"], found["roots"], found["proof"]) == (100, ["app", "tool"], None)
    assert [one["platform"] for one in found["environments"]] == ["linux-x86_64"]
    app, extra, lib, tool = found["releases"]
    assert (app["normalized"], app["version"], app["marker"]) == ("app", "1.0", None)
    assert app["requires"] == [{"normalized": "lib", "version": "1.5"}]
    assert app["required_by"] == [
        {"normalized": None, "requirement": "app"},
        {"normalized": "lib", "requirement": "app"},
    ]
    assert lib["extras"] == ["x"]
    assert extra["requirements_known"] is False
    assert tool["yanked"] is True
    assert [file["filename"] for file in tool["files"]] == ["tool-3-py3-none-any.whl"]
    assert len(found["remarks"]) == 2


def test_a_proof_has_its_steps():
    with pytest.raises(UnsolvableTargetError) as raised:
        answer("app", "lib>2")
    found = proof_as_json(100, question("app", "lib>2"), raised.value, ["did you mean"])
    assert set(found) == set(ResolutionResult.__annotations__)
    assert found["releases"] is None
    assert found["proof"] is not None
    assert found["proof"]["steps"] == list(raised.value.proof.steps)
    assert found["proof"]["hints"] == ["did you mean"]
    assert found["roots"] == ["app", "lib"]
