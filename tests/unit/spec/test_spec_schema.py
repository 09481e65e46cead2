"""The JSON Schema for editors and the generated reference."""

import json
import re

import pytest
from conftest import KERNEL

from foxhunt.rules import RULES, markdown
from foxhunt.spec import models
from foxhunt.spec.models import Entry
from foxhunt.spec.schema import field_texts, json_schema, reference_markdown

ENTRIES = [
    v for v in vars(models).values() if isinstance(v, type) and issubclass(v, Entry) and v is not Entry
]


def test_the_schema_is_json_and_knows_every_key():
    schema = json.loads(json.dumps(json_schema(), allow_nan=False))
    for model in ENTRIES:
        definition = schema["$defs"][model.__name__]
        keys = {field.alias or name for name, field in model.model_fields.items()} - {"at", "written"}
        assert set(definition["properties"]) == keys
        assert definition["additionalProperties"] is False
    assert "null" not in json.dumps(schema)


def test_a_kernel_file_and_a_part_of_a_program_are_told_apart():
    schema = json_schema()
    kernel, program = (schema["$defs"][ref["$ref"].rsplit("/", 1)[1]] for ref in schema["oneOf"])
    assert "kernel" in kernel["required"]
    assert "kernel" not in program["properties"]
    assert "required" not in program, "a file of a program may hold any of its sections"


@pytest.mark.parametrize("model", ENTRIES, ids=lambda model: model.__name__)
def test_every_key_is_described(model):
    assert model.__doc__
    for name in model.model_fields:
        if name not in ("at", "written"):
            assert field_texts()[model.__name__][name], f"{model.__name__}.{name} has no text below it"


def test_the_reference_has_a_row_for_every_key():
    text = reference_markdown()
    for model in ENTRIES:
        for name, field in model.model_fields.items():
            if name not in ("at", "written"):
                assert f"| `{field.alias or name}` |" in text
    assert "| `with` | name → text or list of text |" in text
    assert "| `count` | size | `1` |" in text
    assert not re.search(r"\| anything", text)


def test_the_schema_agrees_with_the_loader_on_the_example_kernel():
    import yaml

    keys = set(yaml.safe_load(KERNEL))
    assert keys <= set(json_schema()["$defs"]["Kernel"]["properties"])


def test_the_rule_list_has_every_rule_once():
    text = markdown()
    for rule in RULES.values():
        assert text.count(f"**{rule.code} {rule.name}**") == 1
        assert rule.summary
        assert rule.mend
