"""A small project of two kernels' worth of YAML, and the command line run inside it."""

from collections import namedtuple

import pytest
from cli_toy import BODY, KERNEL, SPEC

from foxhunt.cli import main

Done = namedtuple("Done", "code out err")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("FOXHUNT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project's folder, which is also the working folder."""
    for path, text in (
        ("specs/toy/program.yaml", SPEC),
        ("specs/kernels/scaled.yaml", KERNEL),
        ("templates/kernels/scaled.cu.j2", BODY),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def edit(project):
    """Replace a text that stands once in the program's spec, or in another file."""

    def replace(old, new, path="specs/toy/program.yaml"):
        file = project / path
        text = file.read_text()
        assert text.count(old) == 1, old
        file.write_text(text.replace(old, new))

    return replace


@pytest.fixture
def foxhunt(capsys):
    """Runs a command; gives its exit code, standard output and standard error."""

    def run(*args):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(a) for a in args])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Done(stop.value.code or 0, out, err)

    return run
