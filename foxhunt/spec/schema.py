"""The JSON Schema of spec files for editors, and the spec reference: both made from the models."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from foxhunt.spec import models
from foxhunt.spec.models import Entry, Kernel, Program

Schema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """A frozen mapping as a default has no JSON and is left out, which is what an editor wants."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012


def _generated(model: type[Entry]) -> Schema:
    return model.model_json_schema(by_alias=True, ref_template="#/$defs/{model}", schema_generator=_Generator)


def json_schema() -> Schema:
    """The schema of a spec file: a kernel (it has `kernel:`), or any sections of a program."""
    definitions: Schema = {}
    for model in (Kernel, Program):
        schema = _generated(model)
        definitions |= schema.pop("$defs", {})
        definitions[model.__name__] = schema
    for name, definition in definitions.items():
        _describe(name, definition)
    # The sections of a program may stand in several files, so a file may leave out `program:`.
    definitions["Program"].pop("required", None)
    definitions["Program"]["minProperties"] = 1
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "foxhunt spec file",
        "oneOf": [{"$ref": "#/$defs/Kernel"}, {"$ref": "#/$defs/Program"}],
        "$defs": dict(sorted(definitions.items())),
    }


def reference_markdown() -> str:
    """The spec reference: every entry, its keys, types, defaults and meanings, in the order of the models."""
    lines = [
        "# Spec reference",
        "",
        "Generated from `foxhunt/spec/models.py` by `foxhunt schema --markdown`. A *size* is a dim name, an",
        "expression of dims (`ceil_div(B * H2, 256)`; `+ - * // %`, `min`, `max`) or an integer.",
        "A *reference* is `name`, `name[i]` or `name[i:j]`.",
        "",
    ]
    for model in _entries():
        lines += [f"## {_title(model)}", "", inspect.cleandoc(model.__doc__ or ""), ""]
        lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
        lines += _rows(model)
        lines.append("")
    return "\n".join(lines)


def library_markdown(kernels: Mapping[str, Kernel]) -> str:
    """The kernels of a library: what each does, reads and writes, by kind and name."""
    lines = [
        "# The kernel library",
        "",
        "Generated from `specs/kernels/*.yaml` by `foxhunt schema --library`. `r` reads, `w` writes every",
        "element, `u` updates; `many` takes a list. A project's own kernels come first of equal name.",
    ]
    for kind, title in (("body", "Bodies"), ("statistic", "Statistics"), ("gemm", "Matrix products")):
        lines += ["", f"## {title}", "", "| kernel | does | parameters |", "|---|---|---|"]
        for name, kernel in sorted(kernels.items()):
            if kernel.kind == kind:
                doc = " ".join(kernel.doc.split()).replace("|", "\\|")
                lines.append(f"| `{name}` | {doc} | {_parameters(kernel)} |")
    return "\n".join(lines) + "\n"


def _parameters(kernel: Kernel) -> str:
    texts = []
    for name, p in sorted(kernel.params.items()):
        shape = f" [{', '.join(str(s) for s in p.shape)}]" if p.kind == "data" else f" {p.kind}"
        dtype = f" {p.dtype}" if p.kind == "data" and p.dtype != "f32" else ""
        texts.append(f"{p.access[0]} `{name}`{dtype}{shape}{' many' if p.many else ''}")
    return "; ".join(texts)


def _entries() -> list[type[Entry]]:
    """Every entry model, in the order of the source."""
    known = [
        v for v in vars(models).values() if inspect.isclass(v) and issubclass(v, Entry) and v is not Entry
    ]
    return sorted(known, key=lambda model: list(field_texts()).index(model.__name__))


def _title(model: type[Entry]) -> str:
    words = re.sub("([a-z])([A-Z])", r"\1 \2", model.__name__).lower()
    return words[0].upper() + words[1:]


def _rows(model: type[Entry]) -> list[str]:
    schema = _generated(model)
    required = set(schema.get("required", ()))
    texts = field_texts()[model.__name__]
    rows = []
    for name, field in model.model_fields.items():
        key = field.alias or name
        if name in ("at", "written"):
            continue
        default = "required" if key in required else _default(schema["properties"][key])
        value = _type(schema["properties"][key]).replace("|", "\\|")
        rows.append(f"| `{key}` | {value} | {default} | {texts.get(name, '').replace('|', chr(92) + '|')} |")
    return rows


def _default(schema: Schema) -> str:
    value = schema.get("default")
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "" if value in (None, "", [], {}) else f"`{value}`"


def _type(schema: Schema) -> str:
    """A JSON Schema type in words."""
    if "$ref" in schema:
        return _title(getattr(models, str(schema["$ref"]).rsplit("/", 1)[1])).lower()
    if "enum" in schema or "const" in schema:
        return " | ".join(f"`{v}`" for v in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        members = [_type(m) for m in schema["anyOf"] if m.get("type") != "null"]
        return "size" if members == ["integer", "text"] else " or ".join(members)
    if schema.get("type") == "array":
        inner = schema.get("items", {})
        return f"list of {_type(inner)}" if inner else "list"
    if schema.get("type") == "object":
        inner = next(iter(schema.get("patternProperties", {}).values()), None)
        return f"name → {_type(inner)}" if inner is not None else "mapping"
    words = {"string": "text", "boolean": "true or false"}
    kind = str(schema.get("type", "anything"))
    return "name" if "pattern" in schema else words.get(kind, kind)


def _describe(name: str, definition: Schema) -> None:
    """Put the texts below the fields into a definition, and drop the titles that pydantic makes up."""
    model = getattr(models, name)
    texts = field_texts()[name]
    for field_name, field in model.model_fields.items():
        entry = definition["properties"].get(field.alias or field_name)
        if entry is not None:
            _drop_null(entry)
            entry.pop("title", None)
            entry["description"] = texts.get(field_name, "").replace("`", "")


def _drop_null(schema: Schema) -> None:
    """`X | None` is X: an optional key is left out and never written as null."""
    members = [m for m in schema.get("anyOf", []) if m.get("type") != "null"]
    if members and schema.get("default", "") is None:
        del schema["anyOf"], schema["default"]
        schema |= members[0] if len(members) == 1 else {"anyOf": members}


@cache
def field_texts() -> dict[str, dict[str, str]]:
    """Model name → field name → the text below the field in the source, in the order of the source."""
    texts: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(models)).body:
        if not isinstance(node, ast.ClassDef) or not issubclass(getattr(models, node.name), BaseModel):
            continue
        fields = texts.setdefault(node.name, {})
        for statement, following in zip(node.body, node.body[1:], strict=False):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                fields[statement.target.id] = _string(following)
    return texts


def _string(node: ast.stmt) -> str:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return " ".join(node.value.value.split())
    return ""
