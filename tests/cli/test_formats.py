"""Findings in every format, from the commands that check; suppressions and what becomes of them."""

import json
import re

import pytest

from foxhunt.diagnostics import Diagnostic, Location
from foxhunt.formats import FORMATS, render_findings

UNUSED = "  - {name: PEAK, reset: fold}\n"
ODD = Diagnostic(
    "FH203", "50 % of\nit, here: odd", Location("a b.yaml", 3, 5), "mend", related=((Location("c", 1), "x"),)
)


def test_json_says_everything_a_finding_knows():
    (found,) = json.loads(render_findings([ODD], "json", {}))["diagnostics"]
    assert found == {
        "code": "FH203", "rule": "slot-unfed", "severity": "error", "message": "50 % of\nit, here: odd",
        "help": "mend", "path": "a b.yaml", "line": 3, "column": 5,
        "related": [{"path": "c", "line": 1, "message": "x"}], "suppressed": None,
    }  # fmt: skip


def test_an_annotation_stays_on_one_line_whatever_the_message_holds():
    text = render_findings([ODD, ODD], "github", {})
    assert text.splitlines() == 2 * [
        "::error title=FH203 slot-unfed,file=a b.yaml,line=3,col=5::50 %25 of%0Ait, here: odd%0Ahelp: mend"
    ]
    tricky = Diagnostic("FH203", "m", Location("a,b:c%.yaml"))
    assert "file=a%2Cb%3Ac%25.yaml::" in render_findings([tricky], "github", {})


def test_sarif_has_rules_places_and_suppressions():
    passed = Diagnostic("FH250", "unused", Location("/x/b.yaml"), severity="note", suppressed="later")
    log = json.loads(render_findings([ODD, passed], "sarif", {}))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == ["FH203", "FH250"]
    first, second = run["results"]
    assert (first["level"], first["ruleIndex"]) == ("error", 0)
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a b.yaml"}, "region": {"startLine": 3, "startColumn": 5}}
    assert second["suppressions"] == [{"kind": "inSource", "justification": "later"}]
    assert second["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "file:///x/b.yaml"}}


def test_no_findings_are_an_empty_document():
    assert json.loads(render_findings([], "json", {})) == {"diagnostics": []}
    assert json.loads(render_findings([], "sarif", {}))["runs"][0]["results"] == []
    assert render_findings([], "github", {}) == render_findings([], "text", {}) == ""


@pytest.mark.parametrize("command", ["compile", "check"])
@pytest.mark.parametrize("style", FORMATS)
def test_commands_print_their_errors_in_the_format_asked_for(project, edit, foxhunt, command, style):
    edit("kernel: rms", "kernel: rmz")
    done = foxhunt(command, "specs", "--format", style)
    assert done.code == 2
    if style == "text":
        assert (done.out, "error[FH201]" in done.err) == ("", True)
        return
    assert done.err == ""
    if style == "github":
        assert re.match(
            r"::error title=FH201 unknown-name,file=\S+program\.yaml,line=\d+,col=\d+::", done.out
        )
    elif style == "json":
        assert json.loads(done.out)["diagnostics"][0]["code"] == "FH201"
    else:
        assert json.loads(done.out)["runs"][0]["results"][0]["ruleId"] == "FH201"


def test_a_clean_compile_is_json_too(project, foxhunt):
    data = json.loads(foxhunt("compile", "specs", "--format", "json").out)
    assert data["programs"][0]["program"] == "toy"
    assert data["diagnostics"] == []
    assert foxhunt("check", "specs", "--format", "github") == (0, "", "")
    (project / "generated" / "toy" / "layout.cuh").write_text("edited")
    done = foxhunt("check", "specs", "--format", "json")
    assert (done.code, json.loads(done.out)["diagnostics"][0]["code"]) == (1, "FH605")


SUPPRESS = """\
suppress:
  - {rule: FH250, name: PEAK, reason: read from Python only}
diagnostics: [{name: SIZE}, {name: t}]"""


def test_a_suppressed_finding_passes_and_is_still_told(project, edit, foxhunt):
    edit("diagnostics: [{name: SIZE}, {name: PEAK}, {name: t}]", "diagnostics: [{name: SIZE}, {name: t}]")
    assert "FH250" in foxhunt("compile", "specs").err
    edit("diagnostics: [{name: SIZE}, {name: t}]", SUPPRESS)
    for _ in range(2):  # the second time from the cache
        done = foxhunt("compile", "specs")
        assert done.code == 0
        assert "suppressed: read from Python only" in " ".join(done.out.split())
    assert "1 suppressed finding" in foxhunt("check", "specs").out
    (result,) = json.loads(foxhunt("check", "specs", "--format", "sarif").out)["runs"][0]["results"]
    assert result["suppressions"][0]["justification"] == "read from Python only"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{rule: FH250, name: SIZE, reason: none}", "has nothing to suppress"),
        ("{rule: FH250, name: NOBODY, reason: none}", "has nothing to suppress"),
        ("{rule: FH253, name: SIZE, reason: none}", "FH253 cannot be suppressed"),
        ("{rule: FH250, name: SIZE, reason: ''}", "reason"),
        ("{rule: wire, name: SIZE, reason: none}", "rule"),
        ("{rule: FH250, name: SIZE}", "reason"),
    ],
)
def test_a_suppression_without_effect_or_reason_is_a_finding(edit, foxhunt, entry, message):
    edit("diagnostics:", f"suppress:\n  - {entry}\ndiagnostics:")
    done = foxhunt("compile", "specs")
    assert done.code == 2
    assert message in done.err
