"""What a module is: one file that needs nothing, the same bytes wherever it is made, and code without system calls."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from samples import compile_with, program

import cuvil

ROOT = Path(__file__).parents[2]
RUNTIME = Path(cuvil.__file__).parent / "libcuvil_rt.so.0"


def output_of(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def need(tool: str) -> str:
    found = shutil.which(tool)
    if not found:
        pytest.skip(f"{tool} is not installed")
    return found


@pytest.mark.parametrize("name", ["digits", "resnet18"])
def test_needs_no_library_and_no_symbol(name: str, request: pytest.FixtureRequest):
    module = request.getfixturevalue(name)
    assert "NEEDED" not in output_of(need("readelf"), "-d", module)
    assert output_of("nm", "-D", "--undefined-only", module) == ""
    exported = output_of("nm", "-D", "--defined-only", module).split()
    assert exported[2:] == ["cuvil_program_1"]


def instructions(module: Path) -> dict[str, list[tuple[int, str]]]:
    """The code of each function, by its C++ name: addresses with their instructions."""
    functions: dict[str, list[tuple[int, str]]] = {}
    for line in output_of(need("objdump"), "-d", "-C", "--no-show-raw-insn", module).splitlines():
        if head := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            code = functions.setdefault(head[1], [])
        elif instruction := re.match(r" *([0-9a-f]+):\t(.*)$", line):
            code.append((int(instruction[1], 16), instruction[2]))
    return functions


def inner_loops(code: list[tuple[int, str]]) -> list[list[str]]:
    """The instructions of each loop without another one inside: from where a jump leads back to, to the jump."""
    jumps = [(int(jump[1], 16), at) for at, text in code if (jump := re.match(r"j\w+ +([0-9a-f]+)", text))]
    loops = {(begin, end) for begin, end in jumps if code[0][0] <= begin <= end}
    inner = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    return [[text for at, text in code if begin <= at <= end] for begin, end in inner]


@pytest.mark.parametrize("level", ["v3", "v4"])
def test_inner_loops_of_products_neither_call_nor_use_the_stack(resnet18: Path, level: str):
    loops = [
        (name, loop)
        for name, code in instructions(resnet18).items()
        if f"cuvil::{level}::tile_product<" in name
        for loop in inner_loops(code)
    ]
    assert sum(text.startswith("vfmadd") for _, loop in loops for text in loop) > 100
    spilled = [(name, text) for name, loop in loops for text in loop if text.startswith("call") or "%rsp" in text]
    assert spilled == []


def test_each_level_has_its_own_copy(resnet18: Path):
    symbols = [line.split(maxsplit=2)[2] for line in output_of(need("nm"), resnet18).splitlines()]
    for level in ("v2", "v3", "v4"):
        assert any(symbol.endswith(f".{level}") for symbol in symbols), level
        mangled = f"2{level}"
        assert any(f"N5cuvil{mangled}12tile_product" in symbol for symbol in symbols), level
    own = [s for s in symbols if re.search(r"N5cuvil2v[234]", s)]
    assert len(own) == len(set(own)), "one level defines a function twice"


def test_layers_are_named_in_the_symbols(resnet18: Path):
    steps = cuvil.runtime.load_module(resnet18).manifest["steps"]
    symbols = output_of(need("nm"), resnet18)
    for step in steps:
        assert f"#{step['number']}.v3" in symbols, step["name"]


def test_the_same_bytes_wherever_it_is_compiled(resnet18_onnx: Path, resnet18: Path, tmp_path: Path):
    elsewhere = tmp_path / "another folder"
    elsewhere.mkdir()
    copy = elsewhere / resnet18_onnx.name
    shutil.copy(resnet18_onnx, copy)
    environment = os.environ | {"LC_ALL": "C", "TMPDIR": str(elsewhere), "TZ": "Asia/Tokyo"}
    one_job = compile_with(copy, elsewhere / "one.cuvil", "-j", "1", cwd=elsewhere, env=environment)
    assert one_job.read_bytes() == resnet18.read_bytes()
    one_core = elsewhere / "core.cuvil"
    cpu = min(os.sched_getaffinity(0))
    subprocess.run(
        ["taskset", "-c", str(cpu), *program(), "compile", str(copy), "-o", str(one_core), "--quiet"], check=True
    )
    assert one_core.read_bytes() == resnet18.read_bytes()


def build(source: Path, out: Path, *options: str, compiler: str = "clang-19") -> Path:
    subprocess.run([need(compiler), "-O1", f"-I{ROOT}/include", str(source), "-o", str(out), *options], check=True)
    return out


def build_with_loader(source: Path, out: Path) -> Path:
    return build(source, out, str(RUNTIME), f"-Wl,-rpath,{RUNTIME.parent}")


@pytest.mark.parametrize("name", ["digits", "resnet18"])
def test_a_run_makes_no_system_call_and_no_allocation(name: str, request: pytest.FixtureRequest, tmp_path: Path):
    module = request.getfixturevalue(name)
    shapes = ("5x1x8x8", "5x10") if name == "digits" else ("1x3x224x224", "1x1000")
    driver = build_with_loader(ROOT / "tests/e2e/steady_run.c", tmp_path / "steady_run")
    command = [str(driver), str(module), "1", *shapes]
    assert "allocations 0" in output_of(*command)
    strace = shutil.which("strace")
    trace = tmp_path / "trace"
    traced = strace and subprocess.run([strace, "-f", "-o", str(trace), *command], capture_output=True)
    if not traced or traced.returncode != 0 or "getppid" not in trace.read_text():
        pytest.skip("strace cannot trace here")
    calls = [line.split(maxsplit=1)[1].split("(")[0] for line in trace.read_text().splitlines()]
    marks = [i for i, call in enumerate(calls) if call == "getppid"]
    assert calls[marks[0] + 1 : marks[1]] == []


@pytest.mark.parametrize("compiler", ["clang-19", "musl-gcc"])
def test_a_host_of_plain_c(compiler: str, resnet18: Path, digits: Path, tmp_path: Path):
    """The same file under glibc and musl, and without libcuvil_rt.so."""
    options = ["-ldl"] if compiler == "clang-19" else []
    host = build(ROOT / "examples/c/minimal_host.c", tmp_path / "host", *options, compiler=compiler)
    for module, shape, out in ((resnet18, "1x3x224x224", "1x1000"), (digits, "7x1x8x8", "7x10")):
        said = output_of(host, module, "v2", shape, ":", out).split()
        zeros = np.zeros([int(n) for n in shape.split("x")], np.float32)
        loaded = cuvil.runtime.load_module(module)
        want = loaded.run({loaded.inputs[0].name: zeros})[loaded.outputs[0].name].ravel()
        np.testing.assert_allclose([float(v) for v in said[:8]], want[:8], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("source", ["main.c", "main.cpp"])
def test_the_examples_in_c_and_cxx(source: str, resnet18: Path, tmp_path: Path):
    path = ROOT / "examples/c" / source
    if source.endswith(".cpp"):
        program = build(
            path,
            tmp_path / "example",
            str(RUNTIME),
            f"-Wl,-rpath,{RUNTIME.parent}",
            "-std=c++20",
            compiler="clang++-19",
        )
    else:
        program = build_with_loader(path, tmp_path / "example")
    said = output_of(program, resnet18, "1x3x224x224")
    assert "output" in said


def test_effort_changes_no_bits(digits: Path, digits_onnx: Path, tmp_path: Path):
    images = np.load(ROOT / "examples/digits/samples.npz")["image"]
    want = cuvil.runtime.load_module(digits).run({"image": images})["scores"]
    for level in ("O0", "O1", "O3"):
        module = compile_with(digits_onnx, tmp_path / f"{level}.cuvil", "-O", level)
        got = cuvil.runtime.load_module(module).run({"image": images})["scores"]
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32)), level
