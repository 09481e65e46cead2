"""The hooks, the GitHub Action and the GitLab snippet: their scripts run in a repository with a remote."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cli_toy import SPEC

ROOT = Path(__file__).parents[2]
MOVED = SPEC.replace("name: GAIN,", "name: GAIN, index: 7,")


def git(folder, *args):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def branch(project, foxhunt, tmp_path_factory):
    """The compiled project on a branch of its own, with `main` at its remote: a function that runs bash."""
    assert foxhunt("compile", "specs").code == 0
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    remote = tmp_path_factory.mktemp("remote")
    git(remote, "clone", "-q", "--bare", str(project), "origin.git")
    git(project, "remote", "add", "origin", str(remote / "origin.git"))
    git(project, "checkout", "-q", "-b", "change")
    tools = tmp_path_factory.mktemp("bin")
    (tools / "foxhunt").write_text(f'#!/bin/sh\nexec {sys.executable} -m foxhunt "$@"\n')
    (tools / "foxhunt").chmod(0o755)

    def bash(script, **env):
        environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)} | env
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
        )

    return bash


@pytest.fixture
def moved(project, branch, foxhunt):
    """A slot moved and compiled on the branch."""
    (project / "specs/toy/program.yaml").write_text(MOVED)
    assert foxhunt("compile", "specs", "--break", "GAIN").code == 0
    return branch


def action(name):
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    return next(s["run"] for s in steps if s["name"] == name)


def test_the_hooks_are_commands_that_exist(project, branch, foxhunt):
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [h["id"] for h in hooks] == ["foxhunt-check", "foxhunt-diff"]
    for hook in hooks:
        program, *args = shlex.split(hook["entry"])
        assert program == "foxhunt"
        assert foxhunt(*args).code == 0
    (project / "specs/toy/program.yaml").write_text(MOVED)
    for hook in hooks:
        assert foxhunt(*shlex.split(hook["entry"])[1:]).code == 1


def test_the_action_annotates_and_fails_on_a_break_that_is_not_allowed(moved, tmp_path):
    summary = tmp_path / "summary.md"
    env = {"SPECS": "specs", "ALLOW": "", "BASE": "main", "GITHUB_STEP_SUMMARY": str(summary)}
    assert moved(action("check"), **env).returncode == 0
    done = moved(action("diff"), **env)
    assert done.returncode == 1
    assert done.stdout.startswith("::error title=FH603 layout-break,file=specs/toy/program.yaml,line=4")
    assert "| **move (breaks)** |" in summary.read_text()
    assert moved(action("diff"), **(env | {"ALLOW": "GAIN"})).returncode == 0
    stale = moved(action("diff"), **(env | {"ALLOW": "GAIN OTHER"}))
    assert stale.returncode == 2
    assert "FH609" in stale.stdout + stale.stderr


def test_the_gitlab_job_does_the_same(moved, project):
    job = yaml.safe_load((ROOT / "integrations/gitlab-ci.yml").read_text())["foxhunt"]
    script = "\n".join(job["script"])
    base = git(project, "rev-parse", "main")
    env = {"SPECS": "specs", "ALLOW": "", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base}
    done = moved(script, **env)
    assert done.returncode == 1
    assert "| **move (breaks)** |" in (project / "foxhunt-diff.md").read_text()
    assert moved(script, **(env | {"ALLOW": "GAIN"})).returncode == 0
