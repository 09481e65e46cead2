"""Templates: a frozen set of texts, and the strict, sandboxed environment that renders them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.loaders import FunctionLoader
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from foxhunt.diagnostics import EmissionError, FoxhuntError, Location, fail
from foxhunt.emit.filters import FILTERS
from foxhunt.emit.templates import TemplateSet


class AssertTagError(Exception):
    """An `{% assert %}` tag whose condition is false."""


class Assert(Extension):
    """`{% assert condition, "message" %}`: rendering fails with the message unless the condition is true."""

    tags = {"assert"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """A call of `_check` with condition and message."""
        line = next(parser.stream).lineno
        condition = parser.parse_expression()
        message: nodes.Expr = nodes.Const("assertion failed")
        if parser.stream.skip_if("comma"):
            message = parser.parse_expression()
        call = self.call_method("_check", [condition, message], lineno=line)
        return nodes.CallBlock(call, [], [], []).set_lineno(line)

    def _check(self, condition: object, message: object, caller: Callable[[], str]) -> str:
        if not condition:
            raise AssertTagError(str(message))
        return caller()


class Renderer:
    """Renders templates of one set. Undefined names, failed asserts and bad filter input are errors with
    their line.
    """

    def __init__(self, templates: TemplateSet) -> None:
        """An environment over `templates`; each template is compiled once."""
        self.templates = templates
        self._environment = ImmutableSandboxedEnvironment(
            loader=FunctionLoader(templates.files.get),
            undefined=StrictUndefined,
            extensions=[Assert],
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
            cache_size=-1,
        )
        self._environment.filters.update(FILTERS)

    def render(self, name: str, context: Mapping[str, Any], wanted_by: Location | None = None) -> str:
        """The text of template `name`; EmissionError FH401 to FH404 say what is wrong with it and where."""
        try:
            return self._environment.get_template(name).render(context)
        except TemplateNotFound as error:
            raise fail(
                EmissionError,
                "FH401",
                f"there is no template {error.name or name}",
                at=wanted_by,
                help=f"write templates/{error.name or name}",
            ) from None
        except TemplateSyntaxError as error:
            at = Location(self.templates.path(error.name or name), error.lineno)
            raise fail(EmissionError, "FH402", f"template syntax: {error.message}", at=at) from None
        except FoxhuntError:
            raise
        except AssertTagError as error:
            raise fail(EmissionError, "FH404", str(error), at=self._where(name, error)) from None
        except Exception as error:  # whatever an expression of a template may raise is the template's
            raise fail(
                EmissionError,
                "FH403",
                f"{_plain(error)}",
                at=self._where(name, error),
                help="see docs/architecture.md for what a template is given",
            ) from None

    def _where(self, name: str, error: Exception) -> Location:
        """The innermost template line of a failed render."""
        at = Location(self.templates.path(name))
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == "<template>" or frame.filename in self.templates.files:
                shown = name if frame.filename == "<template>" else frame.filename
                at = Location(self.templates.path(shown), frame.lineno or 0)
        return at


def _plain(error: Exception) -> str:
    text = re.sub(r"<class '([\w.]+)'>", r"\1", str(error))
    return (
        text
        if type(error).__name__ in ("UndefinedError", "ValueError")
        else f"{type(error).__name__}: {text}"
    )
