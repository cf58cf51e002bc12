"""`onbeat check --schema`, by a validator of JSON Schema."""

from __future__ import annotations

import copy
import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ONBEAT, ROOT
from jsonschema import Draft202012Validator

EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))


def onbeat(*arguments: str | Path) -> str:
    command: list[str | Path] = [ONBEAT, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(onbeat("check", "--schema"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


# feature(program): every example is valid by the JSON Schema, for a validator of others, and wrong ones are not
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_valid(validator: Any, path: Path) -> None:
    errors = [f"{'/'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(tomllib.loads(path.read_text()))]
    assert errors == []


def test_a_draft_is_valid(validator: Any, tmp_path: Path) -> None:
    draft = tmp_path / "draft.toml"
    onbeat("new", "--segment", "examples/m4k.toml", "-o", draft)
    assert list(validator.iter_errors(tomllib.loads(draft.read_text()))) == []


def test_what_the_parser_refuses_is_not_valid(validator: Any) -> None:
    good = tomllib.loads((ROOT / "examples" / "six-axis.toml").read_text())
    wrong: list[tuple[list[str | int], object]] = [
        (["cycle", "period"], 1),
        (["cycle", "priority"], 100),
        (["cycle", "overrun"], "catchup"),
        (["axis", 0, "limits", "velocity"], -1.0),
        (["axis", 0, "mode"], "hm"),
        (["bus", "sub_device", 0, "colour"], "red"),
        (["controllers"], {"kind": "hold"}),
    ]
    for path, value in wrong:
        spoiled = copy.deepcopy(good)
        table: Any = spoiled
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value
        assert list(validator.iter_errors(spoiled)), path
