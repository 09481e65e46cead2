"""The command line. Each command lives in its own module and is imported only when it runs."""

from __future__ import annotations

import importlib
import logging
import sys
from typing import Any

import click

from foxhunt.cli.output import Output
from foxhunt.diagnostics import FoxhuntError, closest
from foxhunt.formats import render_findings

COMMANDS = {
    "init": ("foxhunt.cli.init", "Make a working project in a folder of its own."),
    "demo": (
        "foxhunt.cli.demo",
        "Compile specs/, train `aux` on real bars on this machine, and show what it learnt.",
    ),
    "compile": (
        "foxhunt.cli.compile",
        "Compile specs to CUDA sources, a trainer, a manifest and a lock file.",
    ),
    "check": ("foxhunt.cli.compile", "For CI: generated files fresh, layout equal to the lock."),
    "fingerprint": ("foxhunt.cli.compile", "Print the layout and semantics hashes of each program."),
    "diff": (
        "foxhunt.cli.diff",
        "What changed since a revision, and what it means for checkpoints and signals.",
    ),
    "watch": ("foxhunt.cli.watch", "Compile on every change and say what the change means."),
    "migrate": ("foxhunt.cli.migrate", "Carry a checkpoint over to the present layout of its program."),
    "train": ("foxhunt.cli.train", "Run a compiled program: metrics, checkpoint, report."),
    "graph": (
        "foxhunt.cli.graph",
        "Show the steps: an interactive page, SVG, DOT, Mermaid, or a tree.",
    ),
    "profile": (
        "foxhunt.cli.profile",
        "Time each launch of a step: rates, critical path, a trace for Perfetto.",
    ),
    "verify": (
        "foxhunt.cli.verify",
        "Evidence: other orders, fusion, replay, access, references, slopes, nothing frozen.",
    ),
    "explain": (
        "foxhunt.cli.explain",
        "What a slot, tensor, kernel, launch or pair of launches became, and why.",
    ),
    "schema": (
        "foxhunt.cli.reference",
        "JSON Schema of spec files, for editors; or the reference as Markdown.",
    ),
    "rule": ("foxhunt.cli.reference", "What an error code means and how to mend it."),
    "doctor": ("foxhunt.cli.doctor", "What this machine can do, and how to get the rest."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click does, with the nearest name for a typo."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = closest(args[0], COMMANDS)
            hint = f" Did you mean `foxhunt {near}`?" if near else " `foxhunt --help` lists the commands."
            raise click.UsageError(f"there is no command `{args[0]}`.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, from their summaries alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start with `foxhunt demo`; then edit specs/, `foxhunt compile specs/`, commit generated/.",
)
@click.version_option(package_name="foxhunt")
def app() -> None:
    """Compile a declared GPU training step: YAML specs in, CUDA kernels and a captured graph out.

    foxhunt derives slot indices, offsets, launch order, transient memory, reset code and a layout fingerprint
    from specs/, and refuses what could go wrong at run time. Without a GPU the same kernels run on the CPU.
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line; exit 0 when clean, 1 on findings, 2 on unusable input, 130 on Ctrl-C."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("foxhunt").setLevel(logging.INFO)
    output = Output()
    try:
        code = app.main(argv, "foxhunt", standalone_mode=False, obj=output) or 0  # the code that Exit carries
    except click.ClickException as error:
        error.show()
        code = 2
    except FoxhuntError as error:
        click.echo(render_findings(error.diagnostics, output.style, sources_of(error)), err=output.is_text)
        count = sum(d.severity == "error" for d in error.diagnostics)
        if count > 1 and output.is_text:
            click.echo(f"{count} errors", err=True)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    sys.exit(code)


def sources_of(error: FoxhuntError) -> dict[str, str]:
    """The texts that the findings point into, read again for their source lines."""
    texts = {}
    for path in {d.location.path for d in error.diagnostics if d.location}:
        try:
            with open(path, encoding="utf-8-sig") as file:
                texts[path] = file.read(1 << 22)
        except (OSError, ValueError):
            continue
    return texts
