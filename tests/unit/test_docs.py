"""Documents that are made from code say what the code says, and links lead somewhere."""

import re
from pathlib import Path

import pytest

from foxhunt import rules
from foxhunt.spec.load import load_specs
from foxhunt.spec.schema import library_markdown, reference_markdown

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_spec_reference_is_that_of_the_models():
    assert (ROOT / "docs" / "spec-reference.md").read_text() == reference_markdown() + "\n"


def test_the_list_of_kernels_is_that_of_the_library():
    specs = load_specs(ROOT / "specs")
    assert (ROOT / "docs" / "library.md").read_text() == library_markdown(specs.kernels)


def test_the_rule_list_is_that_of_the_table():
    assert (ROOT / "docs" / "rules.md").read_text() == rules.markdown()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_between_documents_lead_somewhere(path):
    prose = re.sub(r"`[^`]*`", "", re.sub(r"(?m)^ {4}.*$", "", path.read_text()))
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_code_that_the_source_raises_has_a_rule():
    used = {
        code
        for file in (ROOT / "foxhunt").rglob("*.py")
        for code in re.findall(r'"(FH\d{3})"', file.read_text())
    }
    assert used == set(rules.RULES)
