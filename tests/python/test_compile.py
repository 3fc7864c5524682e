"""cuvil.compile, cuvil.ir and cuvil.backends.cxx."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from samples import MLP, TWO, big_onnx, onnx_model

import cuvil
from cuvil import ir
from cuvil.backends.cxx import LowerToCXXPass

X = np.float32([[-1, 0, 2, 3]])


def test_sources(tmp_path: Path):
    model = onnx_model()
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    for source in (model, model.SerializeToString(), path, str(path)):
        module = cuvil.compile(source, levels=["v3"])
        np.testing.assert_array_equal(module.run({"x": X})["y"], np.maximum(X, 0))
    assert cuvil.compile(path).metadata["name"] == "model"


def test_the_same_file_every_time(tmp_path: Path):
    files = []
    for jobs in (1, 2, 1):
        cuvil.compile(MLP.encode(), jobs=jobs).save(tmp_path / "m.cuvil")
        files.append((tmp_path / "m.cuvil").read_bytes())
    assert files[0] == files[1] == files[2]


def test_input_shapes():
    module = cuvil.compile(onnx_model(), levels=["v3"], input_shapes={"x": (2, 4)})
    assert module.inputs[0].shape == (2, 4)
    with pytest.raises(ValueError, match=r"\[1,4\]"):
        module.run({"x": X})


def test_a_fixed_size_changes_no_bits():
    text = """func @main(%x: f32[N,4,W]) -> f32[1,4,1] {
      %1 = reduce_sum %x {axes = [0,2]} : f32[1,4,1]
      return %1
    }"""
    x = np.random.default_rng(0).standard_normal((100, 4, 1)).astype(np.float32)
    any_size = cuvil.compile(text.encode(), levels=["v3"])
    fixed = cuvil.compile(text.replace("W", "1").encode(), levels=["v3"])
    assert any_size.run({"x": x})["output"].tobytes() == fixed.run({"x": x})["output"].tobytes()


def test_refusals():
    with pytest.raises(cuvil.Unsupported) as caught:
        cuvil.compile(onnx_model("NoSuchOp"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.severity == "error"
    assert diagnostic.code == "unsupported-op"
    assert "the_node" in diagnostic.name
    assert "NoSuchOp" in str(caught.value)
    assert str(diagnostic).startswith("error[unsupported-op]")
    assert not str(caught.value).endswith("\n")


def test_wrong_calls(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        cuvil.compile(tmp_path / "none.onnx")
    with pytest.raises(IsADirectoryError):
        cuvil.compile(tmp_path)
    with pytest.raises(TypeError, match="cannot compile a list"):
        cuvil.compile([1])
    with pytest.raises(cuvil.Unsupported):
        cuvil.compile(b"")
    with pytest.raises(cuvil.Unsupported, match="target"):
        cuvil.compile(MLP.encode(), target="gpu")
    with pytest.raises(cuvil.Unsupported, match="v9"):
        cuvil.compile(MLP.encode(), levels=["v9"])
    with pytest.raises(ValueError, match='optimize_for is "latency" or "size", got 5'):
        cuvil.compile(MLP.encode(), optimize_for=5)
    with pytest.raises(
        ValueError, match="precision is one of f32, bf16-weights, f16-weights, int8-weights, got 'bf16'"
    ):
        cuvil.compile(MLP.encode(), precision="bf16")
    with pytest.raises(TypeError):
        cuvil.compile(MLP.encode(), unknown=1)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"jobs": n} for n in (-1, 0, "2", 1.5, 2**40)),
        *({name: 5} for name in ("target", "opt_level", "levels", "input_shapes", "dynamic_shapes", "attachments")),
        *({name: [5]} for name in ("levels", "print_after", "disabled_passes", "attachments", "input_shapes")),
        {"input_shapes": {"x": 4}},
        {"use_cache": "no"},
    ],
    ids=str,
)
def test_wrong_arguments_are_named(wrong: dict):
    (name,) = wrong
    with pytest.raises((TypeError, ValueError), match=rf"^{name} is a "):
        cuvil.compile(MLP.encode(), **wrong)


def test_print_after(capsys: pytest.CaptureFixture[str]):
    cuvil.compile(MLP.encode(), levels=["v3"], print_after="CanonicalizePass")
    out = capsys.readouterr().out
    assert out.startswith("# IR after CanonicalizePass")
    assert "matmul" in out


def big_program() -> ir.Program:
    """Takes seconds to compile: many different convolutions."""
    program = ir.Program("big")
    f = program.function("main")
    x = f.input("x", "f32[1,8,64,64]")
    random = np.random.default_rng(0)
    for i in range(60):
        out = 8 + i
        w = f.weight("w", random.standard_normal((out, 8 if i == 0 else 7 + i, 3, 3)).astype(np.float32))
        x = f.op("relu", [f.op("conv2d", [x, w], pads=[1, 1, 1, 1])])
    f.output("y", x)
    return program


def test_ctrl_c_stops_a_compilation():
    program = big_program()
    main = threading.get_ident()
    # Where the tests run in the background of a shell, Python finds the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT)).start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            cuvil.compile(program, use_cache=False)
        assert time.monotonic() - start < 4, "it waited for Clang"
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_process_ends_well_after_a_compilation_was_stopped(tmp_path: Path):
    model = tmp_path / "big.onnx"
    onnx.save(big_onnx(), model)
    code = f"""
import cuvil, os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    cuvil.compile({str(model)!r}, use_cache=False)
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")


def test_other_threads_run_while_it_compiles():
    count = 0
    done = threading.Event()

    def work() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    cuvil.compile(MLP.encode())
    done.set()
    thread.join()
    assert count > 20


def test_build_by_hand():
    program = ir.Program("by hand")
    f = program.function("main")
    x = f.input("x", "f32[N,4]")
    w = f.weight("w", np.arange(12, dtype=np.float32).reshape(4, 3))
    assert (x.name, x.type, x.dtype, x.shape) == ("x", "f32[N,4]", "f32", ("N", 4))
    h = f.op("matmul", [x, w])
    y = f.op("softmax", [f.op("reshape", [h], shape=["3*N"])])
    f.output("y", y)
    f.output("h", h)
    assert program.verify() == []
    assert [node.op for node in f] == ["weight", "matmul", "reshape", "softmax", "return"]
    assert h.shape == ("N", 3)
    assert h.producer.op == "matmul"
    assert h.producer.operands == [x, w]
    assert [user.op for user in h.users] == ["reshape", "return"]
    assert f.nodes[2].attributes == {"shape": ["3*N"]}
    assert [name for name, _ in f.outputs] == ["y", "h"]
    assert program.weights == {"w": "f32[4,3]"}

    module = cuvil.compile(program, levels=["v3"])
    assert module.metadata["name"] == "by hand"
    want = X @ np.arange(12, dtype=np.float32).reshape(4, 3)
    results = module.run({"x": X})
    np.testing.assert_allclose(results["h"], want, rtol=1e-6)
    np.testing.assert_allclose(results["y"].sum(), 1, rtol=1e-6)
    assert [node.op for node in f] == ["weight", "matmul", "reshape", "softmax", "return"]


def test_handles_outlive_their_program():
    f = ir.parse(TWO).main
    node = f.nodes[0]
    del f
    assert node.op == "add"
    assert node.results[0].users[0].op == "return"
    assert "add" in repr(node)


def test_mistakes_in_building():
    program = ir.Program()
    f = program.function("main")
    x = f.input("x", "f32[N,4]")
    for error, words, make in [
        (ValueError, "no op 'rellu'", lambda: f.op("rellu", [x])),
        (ValueError, "takes", lambda: f.op("relu", [x, x])),
        (TypeError, "no attribute 'axis'", lambda: f.op("relu", [x], axis=1)),
        (TypeError, "'axis' is a", lambda: f.op("concat", [x, x], axis="one")),
        (ValueError, "inner dimensions", lambda: f.op("matmul", [x, x])),
        (TypeError, "no value", lambda: f.op("relu", [X])),
        (ValueError, "no type", lambda: f.input("z", "f33[2]")),
        (ValueError, "an input 'x' already", lambda: f.input("x", "f32[2]")),
        (ValueError, "another program", lambda: ir.Program().function("main").op("relu", [x])),
        (ValueError, "a function 'main' already", lambda: program.function("main")),
        (ValueError, "ir.parse", lambda: f.op("if", [x])),
    ]:
        with pytest.raises(error, match=words):
            make()
    assert len(f) == 0
    with pytest.raises(ValueError, match="no function with an output"):
        cuvil.compile(program)


def test_text():
    program = ir.parse(TWO)
    assert ir.parse(str(program)) == program
    assert program != ir.parse(MLP)
    with pytest.raises(cuvil.Unsupported, match="ir-syntax"):
        ir.parse("func @main(")
    assert ir.parse(TWO, "two.cuir").main.name == "main"


def test_from_onnx_and_passes(tmp_path: Path):
    program = ir.from_onnx(onnx_model())
    assert [node.op for node in program.main] == ["relu", "return"]
    assert program.main.nodes[0].location[1] == "the_node"
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    fixed = ir.from_onnx(tmp_path / "m.onnx", input_shapes={"x": (2, 4)})
    assert fixed.main.inputs[0][1].shape == (2, 4)
    assert "CanonicalizePass" in ir.pass_names()
    twice = ir.parse("func @main(%x: f32[2]) -> f32[2] {\n %1 = relu %x\n %2 = relu %1\n return %2\n}")
    assert len(ir.run_passes(twice).main) == 2
    assert len(twice.main) == 3


def test_the_cxx_backend():
    program = ir.run_passes(ir.parse(MLP))
    cxx = LowerToCXXPass(levels=["v2", "v3"])(program)
    assert "cuvil_program_1" in cxx.source
    assert {level for _, _, levels in cxx.sources for level in levels} == {"v2", "v3"}
    assert cxx.compile().startswith(b"\x7fELF")
    module = cxx.load(threads=1)
    want = cuvil.compile(MLP.encode(), levels=["v2", "v3"]).run({"x": X})["y"]
    np.testing.assert_array_equal(module.run({"x": X})["y"], want)
    with pytest.raises(ValueError, match="no function"):
        LowerToCXXPass()(ir.Program())


def test_op_table():
    table = {record["name"]: record for record in ir.op_table()}
    assert table["relu"]["reference"] == "np.maximum(x, 0)"
    assert table["relu"]["tests"]["dtypes"] == ["f32", "f64"]
    assert table["conv2d"]["operands"][0] == "x"
