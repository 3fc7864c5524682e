"""The program: what it prints, writes and returns."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from samples import ENDLESS, MLP, TWO, big_onnx, onnx_model, program

X = np.float32([[-1, 0, 2, 3]])


@pytest.fixture
def module(mlp_file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(mlp_file, tmp_path))


def test_help_and_version(cli):
    for verb in ("compile", "run", "bench", "inspect", "targets", "ops", "completion"):
        for flag in ("-h", "--help"):
            done = cli(verb, flag)
            assert done.returncode == 0
            assert f"cuvil {verb}" in done.stdout
            assert "Example" in done.stdout
    assert "compile" in cli("--help").stdout
    for verb in ("compile", "ops"):
        assert cli("help", verb).stdout == cli(verb, "--help").stdout
    assert cli("help").stdout == cli("--help").stdout
    version = cli("--version").stdout
    assert version.endswith("\n")
    assert "\n\n" not in version
    assert version.startswith("cuvil 0.")
    for word in ("LLVM 19", "ONNX operator sets 1 to", "this CPU runs"):
        assert word in version


def test_compile_says_file_size_and_seconds(cli, mlp_text: Path, tmp_path: Path):
    done = cli("compile", mlp_text, "-o", "out.cuvil")
    assert done.returncode == 0
    assert re.fullmatch(r"out\.cuvil: [\d.]+ kB, [\d.]+ s", done.stdout.splitlines()[-1])
    assert done.stderr == ""  # progress is for terminals
    before = cli("compile", "-o", "before.cuvil", mlp_text)
    assert before.returncode == 0
    assert (tmp_path / "before.cuvil").read_bytes() == (tmp_path / "out.cuvil").read_bytes()
    assert cli("compile", mlp_text).stdout.startswith("mlp.cuvil: ")
    quiet = cli("compile", mlp_text, "--quiet")
    assert quiet.stdout == quiet.stderr == ""
    verbose = cli("compile", mlp_text, "--verbose")
    assert re.search(r"^\[1/5\] import \.\.\.\n\[1/5\] import \d+\.\ds$", verbose.stderr, re.MULTILINE)


def test_emit(cli, mlp_text: Path, tmp_path: Path):
    assert "matmul" in cli("compile", mlp_text, "--emit=ir", "-o", "-").stdout
    assert "cuvil_program_1" in cli("compile", mlp_text, "--emit", "cxx", "-o", "-").stdout
    (tmp_path / "out").mkdir()
    assert cli("compile", mlp_text, "--stop-after", "FrontendParse", "-o", "out/mlp.cuir").returncode == 0
    again = cli("compile", "out/mlp.cuir", "--stop-after", "FrontendParse", "-o", "-")
    assert again.stdout == (tmp_path / "out" / "mlp.cuir").read_text()
    done = cli("compile", mlp_text, "--emit=asm", "--isa", "v2,v3")
    names = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert len(names) > 1
    assert all((tmp_path / name).stat().st_size > 0 for name in names)
    assert cli("compile", mlp_text, "-o", "-").returncode == 2


def test_the_model_is_never_overwritten(cli, mlp_text: Path):
    before = mlp_text.read_text()
    for arguments in (
        ("compile", mlp_text, "--emit=ir", "-o", mlp_text),
        ("compile", mlp_text, "--report", mlp_text),
        ("compile", mlp_text, "-o", mlp_text),
        ("inspect", mlp_text, "--graph", mlp_text),
    ):
        done = cli(*arguments)
        assert done.returncode == 2
        assert "is the model itself" in done.stderr
    assert mlp_text.read_text() == before


def test_a_pass_that_the_code_needs_cannot_be_disabled(cli, tmp_path: Path):
    (tmp_path / "norm.cuir").write_text("""
func @main(%x: f32[1,2,3], %s: f32[2], %b: f32[2], %m: f32[2], %v: f32[2]) -> f32[1,2,3] {
  %y = batch_norm %x, %s, %b, %m, %v {epsilon = 0.1}
  return %y
}
""")
    done = cli("compile", "norm.cuir", "--disable-pass", "DecomposePass")
    assert done.returncode == 1
    assert "batch_norm has no code of its own" in done.stderr


def test_passes(cli, mlp_text: Path):
    done = cli("compile", mlp_text, "--print-after", "FrontendParse", "--print-after", "CanonicalizePass")
    assert done.stderr.count("# IR after") == 2
    assert "func @main" in done.stderr
    done = cli("compile", mlp_text, "--print-after", "LowerToCXXPass")
    assert "cuvil_program_1" in done.stderr
    done = cli("compile", mlp_text, "--stop-after", "CanonicalizePass", "-o", "-")
    assert "func @main" in done.stdout
    assert cli("compile", mlp_text, "--disable-pass", "CanonicalizePass").returncode == 0
    timed = cli("compile", mlp_text, "--time-passes", "--stop-after", "FuseOperatorsPass", "-o", "-")
    lines = timed.stderr.splitlines()
    assert [line.split()[0] for line in lines] == ["InferencePass", "CanonicalizePass", "FuseOperatorsPass"]
    assert all(re.fullmatch(r"\w+ +[\d.]+ ms +\d+ changes?", line) for line in lines)
    traced = cli("compile", mlp_text, "--trace-inference", "--stop-after", "InferencePass", "-o", "-")
    assert "round 0, import: " in traced.stderr
    assert traced.stderr.endswith(": nothing changes\n")
    wrong = cli("compile", mlp_text, "--print-after", "NoPass")
    assert wrong.returncode == 2
    assert "CanonicalizePass" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "SUBCOMMAND|subcommand"),
        (["complie"], r"unknown verb 'complie' \(did you mean compile\?\)"),
        (["compile"], "model is required"),
        (["compile", "m.cuir", "--ouput", "x"], r"unknown option --ouput \(did you mean --output\?\)"),
        (["compile", "m.cuir", "extra"], "unexpected argument 'extra'"),
        (["compile", "m.cuir", "--isa", "v9"], "no level 'v9'"),
        (["compile", "m.cuir", "--target", "cpu-x86-46"], "did you mean cpu-x86-64"),
        (["compile", "m.cuir", "--emit", "exe"], "module, ir, cxx, llvm, asm, static, obj, header"),
        (["compile", "m.cuir", "--opt-level", "O9"], "O0, O1, O2 and O3"),
        (["compile", "m.cuir", "--optimize-for", "fun"], "latency"),
        (
            ["compile", "m.cuir", "--precision", "bf16"],
            "'bf16': it is one of f32, bf16-weights, f16-weights, int8-weights",
        ),
        (["compile", "m.cuir", "--precision", "int8-weight"], r"did you mean int8-weights\?"),
        (["compile", "m.cuir", "--input", "x=1,2,3,4"], "--input is for modules with a --precision"),
        (["compile", "m.cuir", "--precision", "f16-weights", "--emit", "ir", "--size", "N=1"], "--size is for modules"),
        (["compile", "m.cuir", "--input-shape", "x"], "NAME:1x3x224x224"),
        (["compile", "m.cuir", "--input-shape", "x:1x-3"], "no shape"),
        (["compile", "m.cuir", "--dynamic", "x"], "NAME:N,3,H,W"),
        (["compile", "m.cuir", "--dynamic", "x:N,,3"], "NAME:N,3,H,W"),
        (["compile", "m.cuir", "--dynamic", "x:N,2*N"], "NAME:N,3,H,W"),
        (["compile", "m.cuir", "--dynamic", "x:N", "--input-shape", "x:3"], "both"),
        (["compile", "m.cuir", "--emit", "ir", "--report", "r.json"], "--report tells about modules"),
        (["inspect", "m.cuir", "--memory", "--size", "N"], "not of the form N=8"),
        (["inspect", "m.cuir", "--memroy"], r"did you mean --memory\?"),
        (["ops", "--opset", "99"], "--opset: '99' is no whole number from 1 to"),
        (["completion", "tcsh"], "bash, zsh, fish"),
        (["compile", "m.cuir", "--color", "blue"], "auto, always, never"),
        (["compile", "m.cuir", "-j", "many"], "--jobs: 'many' is no whole number from 1 on"),
        (["compile", "m.cuir", "-j", "-1"], "--jobs: '-1' is no whole number from 1 on"),
        (["run"], "file is required"),
    ],
)
def test_wrong_usage(cli, arguments: list[str], words: str):
    done = cli(*arguments)
    assert done.returncode == 2
    assert re.search(words, done.stderr)
    assert done.stdout == ""


def test_a_file_is_no_verb(cli, mlp_text: Path, module: Path):
    for file, help in ((mlp_text, "cuvil compile"), (module, "cuvil run")):
        done = cli(file.name)
        assert done.returncode == 2
        assert f"{file.name} is a file: {help} {file.name}" in done.stderr


def test_a_module_is_not_compiled_again(cli, module: Path):
    before = module.read_bytes()
    for options in ((), ("-o", "other.cuvil"), ("--emit=ir",)):
        done = cli("compile", module, *options)
        assert done.returncode == 2
        assert "is compiled already: cuvil run runs it" in done.stderr
    assert module.read_bytes() == before


def test_levels_of_another_target(cli, mlp_text: Path):
    for level in ("v2", "v3", "v4"):
        done = cli("verify", mlp_text, "--isa", level, "--size", "N=1")
        assert done.returncode == 0 or "; --target cpu-x86-64 has it" in done.stderr


def test_refusals(cli, tmp_path: Path):
    onnx.save(onnx_model("NoSuchOp"), tmp_path / "bad.onnx")
    done = cli("compile", "bad.onnx", "-o", "bad.cuvil")
    assert done.returncode == 1
    assert done.stderr.startswith("error[unsupported-op]")
    assert "\033[" not in done.stderr
    assert not (tmp_path / "bad.cuvil").exists()
    colored = cli("compile", "bad.onnx", "--color", "always")
    assert "\033[1;31merror[unsupported-op]:\033[0m" in colored.stderr
    assert cli("compile", "none.onnx").returncode == 1
    assert "none.onnx" in cli("compile", "none.onnx").stderr
    assert cli("compile", ".").returncode == 1


def test_places_that_cannot_be_written(cli, mlp_text: Path, tmp_path: Path):
    done = cli("compile", mlp_text, "-o", "no/such/folder/m.cuvil")
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    os.mkfifo(tmp_path / "pipe")
    done = cli("compile", mlp_text, "-o", "pipe")
    assert done.returncode == 1
    assert "not a regular file" in done.stderr
    assert (tmp_path / "pipe").is_fifo()
    done = cli("compile", mlp_text, "-o", mlp_text)
    assert done.returncode == 2
    assert mlp_text.read_text() == MLP
    (tmp_path / "folder").mkdir()
    assert cli("compile", mlp_text, "-o", "folder").returncode == 0
    assert (tmp_path / "folder" / "mlp.cuvil").exists()
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        assert cli("compile", mlp_text, "-o", "closed/m.cuvil").returncode == 1


def test_a_full_disk(cli, mlp_text: Path, tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr.decode().strip()}")
    try:
        done = cli("compile", mlp_text, "-o", disk / "m.cuvil")
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_standard_output(cli):
    with open("/dev/full", "w") as full:
        done = cli("ops", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    read, write = os.pipe()
    os.close(read)
    done = cli("ops", stdout=write, stderr=subprocess.PIPE, capture_output=False)
    os.close(write)
    assert done.returncode == 0
    assert done.stderr == ""


def test_the_cache(cli, mlp_text: Path, tmp_path: Path):
    folder = tmp_path / "cache"
    environment = os.environ | {"CUVIL_CACHE_DIR": str(folder)}

    def cuvil(*arguments: object) -> str:
        done = cli(*arguments, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert cuvil("cache") == f"{folder}: 0 objects, 0 bytes of at most 1.0 GB\n"
    cuvil("compile", mlp_text, "-o", "new.cuvil", "--no-cache")
    assert not folder.exists()
    cuvil("compile", mlp_text, "-o", "first.cuvil")
    entries = sorted(folder.iterdir())
    assert f": {len(entries)} objects, " in cuvil("cache")
    entries[0].write_bytes(b"damaged")
    cuvil("compile", mlp_text, "-o", "second.cuvil")
    assert len({(tmp_path / name).read_bytes() for name in ("new.cuvil", "first.cuvil", "second.cuvil")}) == 1, (
        "the same bytes with and without"
    )
    assert f": {len(entries)} objects, " in cuvil("cache", "--clear")
    assert not list(folder.iterdir())
    assert "There is no cache" in cli("cache", env=os.environ | {"CUVIL_CACHE_DIR": ""}).stdout


def test_ctrl_c(tmp_path: Path):

    model = tmp_path / "big.onnx"
    onnx.save(big_onnx(), model)
    out = tmp_path / "out"
    out.mkdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [*program(), "compile", model, "-o", out / "big.cuvil", "--verbose", "--no-cache"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    while "[4/5] codegen" not in process.stderr.readline():
        pass
    time.sleep(0.5)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert time.monotonic() - start < 2, "it waited for Clang"
    assert process.returncode == 130
    assert errors.endswith("Interrupted; nothing was written.\n")
    assert not [*out.iterdir(), *temporary.iterdir()]


def test_ctrl_c_ends_a_run(cli, tmp_path: Path):
    (tmp_path / "endless.cuir").write_text(ENDLESS)
    assert cli("compile", "endless.cuir", "-o", "endless.cuvil", "--isa", "v2").returncode == 0
    for sent in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            [*program(), "run", tmp_path / "endless.cuvil", "[1,2]"], stderr=subprocess.PIPE, text=True
        )
        time.sleep(0.7)
        process.send_signal(sent)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Interrupted" in errors


def test_a_number_of_threads_that_cannot_be_read(cli, module: Path):
    done = cli("run", module, "[1,2,3,4]", env=os.environ | {"CUVIL_NUM_THREADS": "many"})
    assert (done.returncode, done.stderr) == (
        1,
        "error[bad-artifact]: CUVIL_NUM_THREADS is a positive number, not 'many'\n",
    )
    assert cli("--version", env=os.environ | {"CUVIL_NUM_THREADS": "many"}).returncode == 0


def test_run(cli, module: Path, tmp_path: Path):
    want = np.maximum(X @ np.float32([[0.5, -1, 2], [1, 0, -0.25], [3, 1, 1], [-2, 0.125, 4]]), 0)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "big_endian.npy", X.astype(">f4"))
    np.save(tmp_path / "fortran.npy", np.asfortranarray(np.repeat(X, 2, 0)))
    for feed in (["--input", "x=@x.npy"], ["-i", "@x.npy"], ["x.npy"], ["--input", "input=@big_endian.npy"]):
        done = cli("run", module, *feed, "--output", "y=@y.npy")
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), want)
    assert cli("run", module, "fortran.npy", "-o", "y.npy").returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.repeat(want, 2, 0))
    for feed in ("-1,0,2,3", "x=-1,0,2,3", "[[-1,0,2,3]]"):
        done = cli("run", module, "-i", feed, "-o", "-")
        np.testing.assert_allclose(json.loads(done.stdout), want)
    done = cli("run", module, "x=random:5x4")
    assert done.stdout.startswith("y: f32[5,3]\n")
    assert done.stdout == cli("run", module, "--threads", "1", "random:5x4").stdout
    assert "y: f32[2,3]" in cli("run", module, "zeros:2x4").stdout
    assert "y: f32[3,3]" in cli("run", module, "x=ones", "--size", "N=3").stdout
    done = cli("run", module, "ones:1x4", "--repeat", "20", "-q")
    assert re.search("latency over 20 runs: median .* 99 %", done.stdout)


def test_run_compiles_a_model(cli, mlp_text: Path):
    done = cli("run", mlp_text, "-1,0,2,3", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)[0]) == 3


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, r"input x: f32\[N,4\] is missing"),
        (["--input", "z=1"], 2, "no input 'z'"),
        (["x=1,2,3,4", "x=1,2,3,4"], 2, "given twice"),
        (["1,2,3,4", "5"], 2, "too many inputs"),
        (["x=1,2,3"], 2, "3 values cannot fill this shape"),
        (["x=1"], 2, "1 value cannot fill this shape"),
        (["x=rand:1x4"], 2, "'rand:1x4' is no f32; a value is @FILE.npy, random:SIZES"),
        (["--input", "x"], 2, r"input x: f32\[N,4\] has no value; give it as x=@FILE.npy"),
        (["x=a,b,c,d"], 2, "'a' is no f32"),
        (["x=[[1,2],[3]]"], 2, "different lengths"),
        (["x=" + "[" * 60000 + "]" * 60000], 2, "nested too deeply"),
        (["x=[[1,2"], 2, "no list"),
        (["x=random"], 2, "the size N is open; give it as --size N=1, or the shape as --input x=random:1x4"),
        (["x=random", "--size", "n=1"], 2, r"no open size 'n' \(did you mean N\?\); it has N"),
        (["x=random:2xx4"], 2, "no shape"),
        (["x=random:99999999999x4"], 2, "memory"),
        (["x=random:2x3"], 1, r"\[2,3\], expected \[N,4\]"),
        (["x=@none.npy"], 1, "cannot read none.npy: No such file"),
        (["x=@f64.npy"], 1, r"f64.npy holds f64, not f32: save it anew, converted with array.astype\('float32'\)"),
        (["x=@text.npy"], 1, "not a .npy file"),
        (["x=@objects.npy"], 1, "Python objects"),
        (["1,2,3,4", "-o", "z=-"], 2, "no output 'z'"),
        (["1,2,3,4", "-o", "z=z.npy"], 2, "no output 'z'"),
        (["1,2,3,4", "-o", "z=@z.npy"], 2, "no output 'z'"),
        (["1,2,3,4", "-o", "Y=@all.npz"], 2, r"no output 'Y' \(did you mean y\?\)"),
        (["X=all.npz"], 2, r"no input 'X' \(did you mean x\?\)"),
        (["1,2,3,4", "-o", "y=@y.csv"], 2, "y.csv would hold no .csv: name a .npy or .npz file"),
        (["1,2,3,4", "-o", "y=@no/y.npy"], 1, "cannot write no/y.npy"),
        (["1,2,3,4", "--threads", "-1"], 2, "threads"),
    ],
)
def test_run_refuses(cli, module: Path, tmp_path: Path, arguments: list[str], status: int, words: str):
    np.save(tmp_path / "f64.npy", np.zeros((1, 4)))
    np.save(tmp_path / "objects.npy", np.array([None]), allow_pickle=True)
    (tmp_path / "text.npy").write_text("hello")
    files = set(tmp_path.iterdir())
    done = cli("run", module, *arguments)
    assert done.returncode == status
    assert set(tmp_path.iterdir()) == files
    assert re.search(words, done.stderr)


def test_archives(cli, module: Path, tmp_path: Path):
    np.save(tmp_path / "x.npy", X)
    assert cli("run", module, "x.npy", "-o", "y.npy").returncode == 0
    want = np.load(tmp_path / "y.npy")
    np.savez(tmp_path / "one.npz", anything=X)
    np.savez_compressed(tmp_path / "two.npz", x=X, other=np.arange(3))
    for feed in ("one.npz", "@one.npz", "x=@one.npz", "x=@two.npz", "x=two.npz", "@two.npz:x"):
        for out in ("all.npz", "@all.npz", "y=@all.npz"):
            done = cli("run", module, feed, "--output", out)
            assert done.returncode == 0, done.stderr
            with np.load(tmp_path / "all.npz") as arrays:
                assert list(arrays) == ["y"]
                np.testing.assert_array_equal(arrays["y"], want)
    for feed, words in (
        ("two.npz", "two.npz holds 'other', which is no input"),
        ("x=@two.npz:z", "two.npz has no array 'z'; it has x, other"),
        ("x=@none.npz", "none.npz"),
    ):
        done = cli("run", module, feed)
        assert done.returncode == 1
        assert words in done.stderr
    done = cli("run", module, "one.npz", "-o", "y=@y.npy", "-o", "output=@y.npy")
    assert done.returncode == 2
    assert "one array only" in done.stderr


def test_archives_by_name(cli, tmp_path: Path):
    (tmp_path / "two.cuir").write_text(TWO)
    a, b = np.float32([1, 2]), np.float32([3, 5])
    np.savez_compressed(tmp_path / "in.npz", b=b, a=a)
    done = cli("run", "two.cuir", "in.npz", "-o", "out.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as arrays:
        np.testing.assert_array_equal(arrays["sum"], a + b)
        np.testing.assert_array_equal(arrays["difference"], a - b)


def test_hostile_archives(cli, module: Path, tmp_path: Path):
    np.savez_compressed(tmp_path / "good.npz", x=X)
    good = (tmp_path / "good.npz").read_bytes()
    files = [good[:n] for n in range(0, len(good), 23)]
    files += [bytes(good[:i] + bytes([good[i] ^ 0xFF]) + good[i + 1 :]) for i in range(0, len(good), 11)]
    for data in files:
        (tmp_path / "bad.npz").write_bytes(data)
        done = cli("run", module, "bad.npz")
        assert done.returncode in (0, 1, 2), (data, done.stderr)
        assert done.returncode == 0 or "bad" in done.stderr


def test_run_refuses_what_is_no_module(cli, tmp_path: Path):
    (tmp_path / "m.cuvil").write_text("hello")
    for name in ("m.cuvil", "none.cuvil", "."):
        done = cli("run", name)
        assert done.returncode == 1
        assert name in done.stderr


def test_hostile_npy(cli, module: Path, tmp_path: Path):
    np.save(tmp_path / "good.npy", X)
    good = (tmp_path / "good.npy").read_bytes()
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"
    files = [good[:n] for n in range(len(good))]
    files += [good + b"x", good.replace(b"(1, 4)", b"(1,-4)"), good.replace(b"\x93NUMPY\x01", b"\x93NUMPY\x09")]
    files += [b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header]
    files += [b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + header]
    for data in files[::9] + files[-5:]:
        (tmp_path / "bad.npy").write_bytes(data)
        done = cli("run", module, "bad.npy")
        assert done.returncode == 1, data
        assert "bad.npy" in done.stderr


def test_inspect(cli, module: Path, tmp_path: Path):
    done = cli("inspect", module)
    assert done.returncode == 0
    for words in ("x: f32[N,4]", "y: f32[N,3]", "levels v2, v3, v4", "workspace"):
        assert words in done.stdout
    assert "those that were written" in cli("inspect", module, "--check").stdout
    data = json.loads(cli("inspect", module, "--json", "--check").stdout)
    assert data["kind"] == "module"
    assert data["weights_ok"] is True
    assert data["manifest"]["inputs"][0]["name"] == "x"
    damaged = bytearray(module.read_bytes())
    damaged[damaged.index(np.float32(-0.25).tobytes())] ^= 1
    (tmp_path / "damaged.cuvil").write_bytes(damaged)
    assert cli("inspect", "damaged.cuvil", "--check").returncode == 1
    (tmp_path / "cut.cuvil").write_bytes(module.read_bytes()[:-9])
    assert cli("inspect", "cut.cuvil").returncode == 1


def test_inspect_models(cli, mlp_text: Path, tmp_path: Path):
    done = cli("inspect", mlp_text)
    assert done.returncode == 0
    assert "x: f32[N,4]" in done.stdout
    assert "matmul" in done.stdout
    onnx.save(onnx_model(), tmp_path / "good.onnx")
    data = json.loads(cli("inspect", "good.onnx", "--json").stdout)
    assert data["supported"] is True
    assert data["ops"] == [{"name": "Relu", "domain": "", "count": 1, "supported": True}]
    assert data["inputs"][0]["shape"] == ["N", 4]
    weights = onnx_model("Add")
    for name, array in (("b", np.ones(4, np.float32)), ("big", np.ones((4, 100), np.float32))):
        weights.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    weights.graph.node[0].input.append("b")
    onnx.save(weights, tmp_path / "weights.onnx")
    assert "  weights    1.6 kB in 2 tensors\n" in cli("inspect", "weights.onnx").stdout
    onnx.save(onnx_model("NoSuchOp"), tmp_path / "bad.onnx")
    done = cli("inspect", "bad.onnx")
    assert done.returncode == 1
    assert re.search(r"1  NoSuchOp\s+\(not supported\)", done.stdout)
    for line in ("  opset      17", "  x: f32[N,4]", "  y: f32[N,4]"):
        assert line in done.stdout.splitlines()
    assert "error[unsupported-op]" in done.stderr
    assert cli("inspect", "none.onnx").returncode == 1


@pytest.mark.parametrize("verb", ["compile", "inspect", "run"])
def test_a_pipe_is_not_waited_for(cli, verb: str, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    done = cli(verb, "pipe")
    assert done.returncode == 1
    assert "pipe" in done.stderr


def test_targets_and_ops(cli):
    assert "cpu-x86-64" in cli("targets").stdout
    header, *lines = cli("ops").stdout.splitlines()
    assert header.split() == ["operator", "opsets", "becomes"]
    assert all(re.fullmatch(r"[\w.]+ +\d+-\d* +\S.*", line) for line in lines)
    assert re.search(r"^Softmax +1- +softmax$", "\n".join(lines), re.MULTILINE)  # two definitions, one line
    assert any(re.match(r"ai\.onnx\.\w+\.FlexAttention ", line) for line in lines)
    ops = json.loads(cli("ops", "--json").stdout)["onnx"]
    assert {"Conv", "Gemm", "Softmax"} <= {op["name"] for op in ops}


def test_some_ops(cli):
    names = [line.split()[0] for line in cli("ops", "conv", "softmax").stdout.splitlines()[1:]]
    assert {"Conv", "ConvTranspose", "LogSoftmax", "Softmax"} <= set(names)
    assert all("conv" in name.lower() or "softmax" in name.lower() for name in names)
    done = cli("ops", "Convv")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no operator has 'Convv' in its name (did you mean Conv?)" in done.stderr


def test_ops_of_one_operator_set(cli):
    old, new = (cli("ops", "--opset", n).stdout for n in ("19", "20"))
    assert not re.search(r"^Gelu +20-", old, re.MULTILINE)
    assert re.search(r"^Gelu +20-", new, re.MULTILINE)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(cli, shell: str, tmp_path: Path):
    done = cli("completion", shell)
    assert done.returncode == 0
    for word in ("compile", "inspect", "input-shape", "percentiles", "version"):
        assert word in done.stdout
    if not (program := shutil.which(shell)):
        pytest.skip(f"there is no {shell}")
    (tmp_path / "script").write_text(done.stdout)
    assert subprocess.run([program, "-n", tmp_path / "script"], check=False).returncode == 0


def test_completion_in_bash(cli, tmp_path: Path):
    (tmp_path / "script").write_text(cli("completion", "bash").stdout)

    def completed(*words: str) -> list[str]:
        quoted = " ".join(f"'{word}'" for word in words)
        code = f"source ./script; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _cuvil; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True).stdout.split()

    assert completed("cuvil", "com") == ["compile", "completion"]
    assert completed("cuvil", "bench", "--th") == ["--threads"]
    assert completed("cuvil", "run", "m.cu") == []


def test_a_terminal_sees_progress(mlp_text: Path, tmp_path: Path):
    pty = pytest.importorskip("pty")
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [*program(), "compile", mlp_text, "-o", tmp_path / "m.cuvil"], stderr=terminal, stdout=terminal
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            block = os.read(control, 4096)
        except OSError:
            break
        if not block:
            break
        seen += block
    os.close(control)
    assert process.wait() == 0
    assert re.search(rb"\[4/5\] codegen \d of \d objects, \d\.\ds", seen)
