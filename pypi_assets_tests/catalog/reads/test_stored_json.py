"""JSON of any text comes back as it was."""

import json

import orjson
import pytest

from pypi_assets.catalog.reads.stored_contents import from_json, to_dump, to_json, to_utf8_json


@pytest.mark.parametrize("value", [{"a": ["ü"]}, "half \udc80", [None, 1, True]])
def test_json_of_any_text(value: object):
    assert json.loads(to_json(value)) == from_json(to_json(value)) == from_json(to_json(value).decode()) == value
    assert b" " not in to_json(value).replace(b"half ", b"")


def test_a_dump_takes_stored_json_as_it_is_unless_it_is_no_utf_8():
    assert isinstance(to_dump(to_json(["ü"])), orjson.Fragment)
    assert to_dump(to_json(["half \udc80"])) == ["half \udc80"]


def test_json_for_others_is_utf_8():
    assert to_utf8_json({"a": ["ü", "half \udc80", 1]}) == '{"a":["ü","half ?",1]}'.encode()
