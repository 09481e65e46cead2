from __future__ import annotations

import doctest
import math

import pytest

from foxhunt.backend.plan import Buffer, Launch, Pointer, Scalar, Slot, Step
from foxhunt.diagnostics import EmissionError
from foxhunt.emit import filters, literal, source
from foxhunt.emit.environment import Renderer
from foxhunt.emit.templates import TemplateSet, load_templates


@pytest.mark.parametrize("module", [filters, literal, source])
def test_doctests(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "text",
    [
        "a */ b",
        "a \\\nint x;",
        "??/\n",
        "line\nbreak",
        "\u2028",
        "/* nested",
        "tab\tbell\a",
        "*\\\n/",
        "#include <x>",
    ],
)
def test_comment_text_is_one_inert_ascii_line(text):
    shown = filters.comment(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert not any(bad in shown for bad in ("*/", "/*", "\\", "??"))


def test_an_integer_past_64_bits_is_refused():
    with pytest.raises(ValueError, match="64 bits"):
        filters.i64(2**63)


def render(text, context=None, **more):
    files = {"t.j2": text, **more}
    return Renderer(TemplateSet(files)).render("t.j2", context or {})


def failure(text, context=None, **more):
    with pytest.raises(EmissionError) as error:
        render(text, context, **more)
    (found,) = error.value.diagnostics
    return found.code, str(found.location), found.message


def test_an_undefined_name_is_an_error_with_the_template_line():
    assert failure("one\n{{ two }}\n") == ("FH403", "templates/t.j2:2", "'two' is undefined")


def test_an_undefined_attribute_in_a_loop_names_the_line():
    code, at, _ = failure("{% for x in xs %}\n{{ x.y }}\n{% endfor %}\n", {"xs": [{"z": 1}]})
    assert (code, at) == ("FH403", "templates/t.j2:2")


def test_a_failed_assert_says_its_message():
    assert failure('x\n{% assert 1 > 2, "rows differ" %}\n') == ("FH404", "templates/t.j2:2", "rows differ")
    assert render('{% assert 2 > 1, "fine" %}ok') == "ok"


def test_a_syntax_error_names_its_line():
    assert failure("a\n{% for %}\n")[:2] == ("FH402", "templates/t.j2:2")


def test_a_missing_template_says_where_to_write_it():
    assert failure('{% include "kernels/x.cu.j2" %}')[0] == "FH401"


@pytest.mark.parametrize(
    "text", ["{{ ().__class__.__mro__ }}", "{{ x.append(1) }}", "{{ 1 / 0 }}", '{{ "a.b" | ident }}']
)
def test_what_a_template_must_not_do_is_a_named_error(text):
    assert failure(text, {"x": []})[0] == "FH403"


def test_templates_read_the_same_with_any_line_end(tmp_path):
    for number, data in enumerate((b"a\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb", b"a\rb")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "x.j2").write_bytes(data)
    digests = {load_templates([tmp_path / str(n)]).digest for n in range(4)}
    assert len(digests) == 1


def test_a_projects_template_hides_the_librarys(tmp_path):
    for folder, text in (("own", "mine"), ("library", "theirs")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.j2").write_text(text)
    assert load_templates([tmp_path / "own", tmp_path / "library"]).files == {"x.j2": "mine\n"}


def test_comments_are_stripped_and_strings_are_kept():
    text = 'int a; // dx\n/* dx\n dx */ s = "// dx \\" /*"; c = \'"\'; // \\\n dx\nb'
    stripped = source.strip_comments(text)
    assert stripped.count("dx") == 1
    assert stripped.count("\n") == text.count("\n")


def test_the_stop_gradient_check_sees_names_in_code_only():
    text = "// no d_x_in here\ndw[i] = dy[i]; d_x_in2 = 0;"
    assert source.surviving(text, ["d_x_in", "dy"]) == ("dy",)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("y = expf(x);", "FH411"),
        ("y = std::exp(x);", "FH411"),
        ("y = ::sqrt(x);", "FH411"),
        ("y = pow(x, 2.0f);", "FH411"),
        ("y = __expf(x);", "FH412"),
        ("y = __fdividef(x, z);", "FH412"),
        ("atomicAdd(&y[0], x);", "FH413"),
        ("i64 b = (int)x;", "FH414"),
        ("i64 b = (long long)(x);", "FH414"),
        ("i64 b = static_cast<int>(x * 255.0f);", "FH414"),
        ("i64 b = static_cast<i32>(floor_(x));", "FH414"),
        ("y = std::numeric_limits<float>::max();", "FH415"),
        ("y = FLT_MAX;", "FH415"),
        ("#include <math.h>", "FH416"),
        ("#define N 4", "FH416"),
    ],
)
def test_what_a_kernel_must_not_say_is_found(text, code):
    found = list(source.findings(f"ok\n{text}\n"))
    assert code in {f.code for f in found}
    assert {f.line for f in found} == {2}


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = exp_(x[i]) + max_(a, b);",
        "const i32 bin = to_i32(v * 256.0f);",
        "s = static_cast<f32>(n) * 0.5f;",
        "u64 f = static_cast<u64>(carried_i64(c, 0));",
        "// expf(x), atomicAdd and (int)x are only talked about",
        "#pragma unroll",
        "for (i64 i : block.elements(n)) sum += x[i];",
        "f32 expf_like = 1.0f;",
    ],
)
def test_what_a_kernel_may_say_passes(text):
    assert list(source.findings(text)) == []


def test_every_library_kernel_keeps_the_rules():
    for path, text in load_templates([library_templates()]).files.items():
        if path.startswith("kernels/"):
            assert list(source.findings(text)) == [], path


def library_templates():
    from foxhunt.spec.library import library_root

    return library_root() / "templates"


def test_a_literal_evaluates_to_an_equal_value():
    args = (*(Pointer("arena", 256 * i, 64, "f32", "read") for i in range(40)), Scalar(-1))
    value = (
        Step(
            "a \"quoted\" 'name' \\ µ", (Launch("train.l1", "train_l1", 3, 256, args, 1, ("train.a",)),), None
        ),
        Buffer("isv", "f32", 3, "isv", True),
        Slot("X", 0, 1, "host", math.inf, -0.0, "never"),
        (),
        ("x",),
    )
    names = {k.__name__: k for k in (Buffer, Launch, Pointer, Scalar, Slot, Step)}
    text = literal.literal(value)
    back = eval(text, names)
    assert back == value
    assert math.copysign(1.0, back[2].sentinel) == -1.0
    assert max(map(len, text.splitlines())) <= 110
