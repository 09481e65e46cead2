"""Emitted kernels compile for a GPU on a machine without one; a cubin is made once for one content."""

import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from foxhunt.backend.cubin import build_cubins, compile_cubins
from foxhunt.backend.cubin_compilers import find_compiler
from foxhunt.diagnostics import BuildError
from foxhunt.emit.filters import f32
from foxhunt.emit.store import store
from foxhunt.pipeline import compile_program
from foxhunt.spec.load import load_specs
from foxhunt.spec.models import Health

ROOT = Path(__file__).parents[2]
GENERATED = sorted(path.parent for path in ROOT.glob("generated/*/launches"))


def available(choice="auto"):
    """A compiler, or a skip that says that there is none; with FOXHUNT_REQUIRE_NVCC (.ci/run) an error."""
    try:
        return find_compiler(choice)
    except BuildError as error:
        if choice == "auto" and os.environ.get("FOXHUNT_REQUIRE_NVCC"):
            raise
        pytest.skip(str(error))


@pytest.fixture(params=["nvrtc", "nvcc"])
def compiler(request, tmp_path, monkeypatch):
    monkeypatch.setenv("FOXHUNT_CACHE", str(tmp_path / "cache"))
    return available(request.param)


def program(folder, body="y[i] = x[i] * SCALE;", scale="2.0f"):
    (folder / "launches").mkdir(parents=True, exist_ok=True)
    (folder / "prelude").mkdir(exist_ok=True)
    (folder / "prelude" / "prelude.cuh").write_text('#pragma once\n#include "types.cuh"\n')
    (folder / "prelude" / "types.cuh").write_text(f"#pragma once\n#define SCALE {scale}\n")
    source = (
        '#include "../prelude/prelude.cuh"\n'
        'extern "C" __global__ void scale(const float* x, float* y, long long n) {\n'
        f"  for (long long i = threadIdx.x; i < n; i += blockDim.x) {{ {body} }}\n"
        "}\n"
    )
    (folder / "launches" / "scale.cu").write_text(source)
    return folder


@pytest.mark.parametrize("folder", GENERATED, ids=lambda path: path.name)
def test_every_emitted_kernel_compiles_for_hopper_and_keeps_its_values_in_registers(folder):
    available()
    cubins = build_cubins(folder, "sm_90")
    assert set(cubins) == {path.stem for path in (folder / "launches").glob("*.cu")}
    for cubin in cubins.values():
        assert cubin.image.startswith(b"\x7fELF"), cubin.entry
        assert 0 < cubin.resources.registers <= 255, cubin.entry
        assert cubin.resources.spill <= 64, cubin.entry  # bytes: a few values of a launch of a dozen tasks
        assert cubin.resources.shared <= 48 * 1024, cubin.entry


@pytest.mark.parametrize("policy", ["skip-update", "stop"])
def test_launches_that_only_another_policy_has_compile_too(compiler, policy, tmp_path):
    specs = load_specs(ROOT / "specs")
    aux = specs.programs["aux"].model_copy(update={"health": Health(policy=policy)})
    specs = specs.model_copy(update={"programs": specs.programs | {"aux": aux}})
    store(compile_program(specs, "aux", "tiny").files, tmp_path)
    for launch in (tmp_path / "launches").glob("*.cu"):
        if "sentinel_" not in launch.read_text():
            launch.unlink()
    assert len(build_cubins(tmp_path, "sm_90", compiler.name)) >= 2


def test_the_report_has_registers_and_shared_memory(compiler, tmp_path):
    body = "__shared__ float s[64]; s[threadIdx.x] = x[i]; __syncthreads(); y[i] = s[threadIdx.x ^ 1];"
    cubin = build_cubins(program(tmp_path, body), "sm_90", compiler.name)["scale"]
    assert cubin.image.startswith(b"\x7fELF")
    assert cubin.resources.registers > 0
    assert cubin.resources.shared == 256
    assert cubin.resources.spill == 0


FINITE = (-3.4028235e38, 1e-45, -0.0, 1.0, 1e16, 1e-7, 1 / 3, 1.17549435e-38)  # what a spec may hold


def test_emitted_constants_keep_their_bits(compiler, tmp_path):
    folder = program(tmp_path)
    shutil.copytree(ROOT / "templates/base/prelude", folder / "prelude", dirs_exist_ok=True)
    declared = "".join(f"constexpr f32 C{k} = {f32(value)};\n" for k, value in enumerate(FINITE))
    table = ", ".join(f"C{k}" for k in range(len(FINITE)))
    others = np.array([-math.inf, math.inf, math.nan], np.float32)
    stores = "".join(f"  y[{k}] = {f32(value)};\n" for k, value in enumerate(others))
    (folder / "launches" / "scale.cu").write_text(
        f'#include "../prelude/prelude.cuh"\nusing namespace foxhunt;\n{declared}'
        f"__constant__ f32 table[] = {{{table}}};\n"
        f'extern "C" __global__ void scale(float* y) {{\n{stores}  y[threadIdx.x] = table[threadIdx.x];\n}}\n'
    )
    image = compile_cubins(folder, "sm_90", compiler.name)["scale"]
    assert np.array(FINITE, np.float32).tobytes() in image
    assert [one for one in others if one.tobytes() not in image] == []


def test_a_refused_kernel_is_named_with_its_line(compiler, tmp_path):
    with pytest.raises(BuildError) as error:
        compile_cubins(program(tmp_path, "y[i] = z[i];"), "sm_90", compiler.name)
    (finding,) = error.value.diagnostics
    assert finding.code == "FH482"
    assert "scale.cu(3): error" in finding.message
    assert '"z" is undefined' in finding.message


def test_all_refused_kernels_are_reported_together(compiler, tmp_path):
    folder = program(tmp_path, "y[i] = z[i];")
    source = (folder / "launches" / "scale.cu").read_text()
    (folder / "launches" / "other.cu").write_text(source.replace("scale(", "other("))
    with pytest.raises(BuildError) as error:
        compile_cubins(folder, "sm_90", compiler.name)
    assert len(error.value.diagnostics) == 2


def test_a_cubin_is_compiled_once_for_one_content(compiler, tmp_path, monkeypatch):
    first = compile_cubins(program(tmp_path / "a"), "sm_90", compiler.name)
    calls = []
    compile_file = type(compiler).compile

    def counted(self, source, arch):
        calls.append(source)
        return compile_file(self, source, arch)

    monkeypatch.setattr(type(compiler), "compile", counted)
    # Same text elsewhere, later: nothing to do. Another include, architecture: compiled.
    assert compile_cubins(program(tmp_path / "b"), "sm_90", compiler.name) == first
    assert not calls
    assert compile_cubins(program(tmp_path / "b", scale="3.0f"), "sm_90", compiler.name) != first
    compile_cubins(program(tmp_path / "b"), "sm_80", compiler.name)
    assert len(calls) == 2


def test_a_damaged_cache_entry_is_compiled_again(compiler, tmp_path):
    folder = program(tmp_path)
    first = compile_cubins(folder, "sm_90", compiler.name)
    for report in (tmp_path / "cache" / "cubin").glob("*.json"):
        report.write_text("{")
    assert compile_cubins(folder, "sm_90", compiler.name) == first


@pytest.mark.parametrize(("arch", "choice", "code"), [("hopper", "auto", "FH483"), ("sm_90", "gcc", "FH481")])
def test_a_wrong_architecture_or_compiler_is_refused(tmp_path, arch, choice, code):
    available()
    with pytest.raises(BuildError) as error:
        compile_cubins(program(tmp_path), arch, choice)
    assert error.value.diagnostics[0].code == code


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    def missing():
        raise RuntimeError("libnvrtc.so not found\nsearched everywhere")

    monkeypatch.setattr("foxhunt.backend.cubin_compilers.Nvrtc", missing)
    monkeypatch.setattr("foxhunt.backend.cubin_compilers.shutil.which", lambda *_, **__: None)
    with pytest.raises(BuildError) as error:
        find_compiler.__wrapped__("auto")
    (finding,) = error.value.diagnostics
    assert finding.code == "FH481"
    assert "libnvrtc.so not found" in finding.message
    assert "nvcc is not on the PATH" in finding.message
    assert "--extra nvrtc" in finding.help
