"""What a loaded module takes, gives back and refuses."""

import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cuvil

W = np.array([[0.5, -1, 2], [1, 0, -0.25], [3, 1, 1], [-2, 0.125, 4]])
X = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(np.asarray(x, np.float64) @ W, 0)


def test_ports_and_repr(mlp: cuvil.Module):
    (x,), (y,) = mlp.inputs, mlp.outputs
    assert (x.name, x.shape, x.dtype, x.optional) == ("x", ("N", 4), np.dtype("float32"), False)
    assert (y.name, y.shape) == ("y", ("N", 3))
    assert "x: float32[N,4]" in repr(mlp)
    assert mlp.level in ("v2", "v3", "v4")
    assert mlp.metadata["target"] == "cpu-x86-64"


def test_results_are_the_callers(mlp: cuvil.Module):
    first = mlp.run({"x": X})["y"]
    second = mlp.run({"x": 2 * X})["y"]
    np.testing.assert_allclose(first, expected(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, expected(2 * X), rtol=1e-5, atol=1e-6)
    first[...] = 0
    assert first.flags.writeable
    np.testing.assert_array_equal(mlp.run({"x": 2 * X})["y"], second)
    mlp.close()
    del mlp
    gc.collect()
    np.testing.assert_allclose(second, expected(2 * X), rtol=1e-5, atol=1e-6)


BIG = np.random.default_rng(2).standard_normal((6, 8)).astype(np.float32)
RECORDS = np.zeros(3, dtype=[("tag", "u1"), ("row", "f4", 4)])
RECORDS["row"] = X
VIEWS = {
    "fortran": np.asfortranarray(X),
    "transposed": np.ascontiguousarray(X.T).T,
    "steps": BIG[::2, ::2],
    "backwards": X[::-1, ::-1],
    "offset": BIG.reshape(-1)[1:13].reshape(3, 4),
    "broadcast": np.broadcast_to(X[:1], (3, 4)),
    "field_of_records": RECORDS["row"],
    "big_endian": X.astype(">f4"),
    "read_only": np.frombuffer(X.tobytes(), np.float32).reshape(3, 4),
    "empty": X[:0],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_any_view_is_read_right_and_not_written(mlp: cuvil.Module, view: np.ndarray):
    before = view.copy()
    y = mlp.run({"x": view})["y"]
    assert y.shape == (len(view), 3)
    np.testing.assert_allclose(y, expected(view), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(view, before)


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return X


class HasDlpack:
    def __dlpack__(self, **options):
        return X.__dlpack__(**options)

    def __dlpack_device__(self):
        return X.__dlpack_device__()


@pytest.mark.parametrize(
    "value",
    [
        X.tolist(),
        tuple(map(tuple, X.tolist())),
        memoryview(X),
        HasArray(),
        HasDlpack(),
        [[1, 2, 3, 4]] * 3,
        [[True] * 4] * 3,
    ],
    ids=["list", "tuple", "memoryview", "__array__", "__dlpack__", "ints", "bools"],
)
def test_other_values(mlp: cuvil.Module, value: object):
    y = mlp.run({"x": value})["y"]
    x = X if not isinstance(value, list | tuple) else np.array(value, np.float32)
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-6)


def test_torch_tensors(mlp: cuvil.Module):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    for value in (x, x.T.contiguous().T, x.clone().requires_grad_()):
        np.testing.assert_allclose(mlp.run({"x": value})["y"], expected(X), rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="float64, expected float32"):
        mlp.run({"x": x.double()})


@pytest.mark.parametrize(
    ("feeds", "error", "words"),
    [
        ({}, KeyError, "input 'x' is missing; the inputs are 'x'"),
        ({"z": X}, KeyError, "no input 'z'; the inputs are 'x'"),
        ({"x": X, "z": X}, KeyError, "no input 'z'"),
        ({"x": X, "input": X}, KeyError, "given twice"),
        ({7: X}, KeyError, "no input 7"),
        ({"x": None}, TypeError, "input 'x' is None"),
        ({"x": X.astype(np.float64)}, TypeError, "input 'x' is float64, expected float32"),
        ({"x": X.astype(np.int64)}, TypeError, "input 'x' is int64, expected float32"),
        ({"x": [[1j] * 4]}, TypeError, "complex"),
        ({"x": "text"}, TypeError, "'x'"),
        ({"x": [["a"] * 4]}, TypeError, "strings"),
        ({"x": [[1, 2], [3]]}, ValueError, "'x'"),
        ({"x": object()}, TypeError, "no array"),
        ({"x": X[0]}, ValueError, "'x'"),
        ({"x": X[:, :3]}, ValueError, r"\[3,3\], expected \[N,4\]"),
        ({"x": 1.0}, ValueError, "'x'"),
    ],
)
def test_wrong_feeds(mlp: cuvil.Module, feeds: dict, error: type, words: str):
    with pytest.raises(error, match=words):
        mlp.run(feeds)
    np.testing.assert_allclose(mlp.run({"x": X})["y"], expected(X), rtol=1e-5, atol=1e-6)


def test_feeds_that_are_no_mapping(mlp: cuvil.Module):
    with pytest.raises((TypeError, ValueError)):
        mlp.run([X])


def test_the_only_ports_answer_to_input_and_output(mlp: cuvil.Module):
    results = mlp.run({"input": X})
    assert list(results) == ["y"]
    assert results["output"] is results["y"]
    with pytest.raises(KeyError):
        results["z"]
    assert list(mlp.run({"x": X}, outputs=["output"])) == ["output"]


def test_several_outputs(two: cuvil.Module):
    a, b = np.float32([1, 2, 3]), np.float32([3, 2, 1])
    results = two.run({"b": b, "a": a})
    assert list(results) == ["sum", "difference"]
    np.testing.assert_array_equal(results["difference"], a - b)
    assert list(two.run({"a": a, "b": b}, outputs=["difference", "sum"])) == ["difference", "sum"]
    assert two.run({"a": a, "b": b}, outputs=[]) == {}
    with pytest.raises(KeyError, match="no output 'z'; the outputs are 'sum', 'difference'"):
        two.run({"a": a, "b": b}, outputs=["z"])
    with pytest.raises(TypeError):
        two.run({"a": a, "b": b}, outputs="sum")
    with pytest.raises(KeyError, match="output"):
        results["output"]
    with pytest.raises(ValueError, match="N"):
        two.run({"a": a, "b": b[:2]})


def test_closing(mlp_file: Path):
    with cuvil.runtime.load_module(mlp_file) as module:
        assert not module.closed
    assert module.closed
    assert "closed" in repr(module)
    for use in (lambda: module.run({"x": X}), lambda: module.level, lambda: module.inputs):
        with pytest.raises(ValueError, match="closed"):
            use()
    module.close()


def test_loading_from_bytes_and_saving(mlp_file: Path, tmp_path: Path):
    data = mlp_file.read_bytes()
    for source in (data, bytearray(data), memoryview(data)):
        module = cuvil.runtime.load_module(source, threads=1)
        module.save(tmp_path / "copy.cuvil")
        assert (tmp_path / "copy.cuvil").read_bytes() == data
    (tmp_path / "copy.cuvil").write_bytes(b"replaced")
    np.testing.assert_allclose(module.run({"x": X})["y"], expected(X), rtol=1e-5, atol=1e-6)


def test_a_replaced_file_does_not_change_what_was_loaded(mlp_file: Path, tmp_path: Path):
    path = tmp_path / "m.cuvil"
    path.write_bytes(mlp_file.read_bytes())
    module = cuvil.runtime.load_module(path)
    path.unlink()
    path.write_bytes(b"nothing")
    module.save(tmp_path / "copy.cuvil")
    assert (tmp_path / "copy.cuvil").read_bytes() == mlp_file.read_bytes()


def test_files_that_cannot_be_loaded(mlp_file: Path, tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        cuvil.runtime.load_module(tmp_path / "none.cuvil")
    with pytest.raises(IsADirectoryError):
        cuvil.runtime.load_module(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe"):
        cuvil.runtime.load_module(tmp_path / "pipe")
    text = tmp_path / "text.cuvil"
    text.write_text("hello")
    with pytest.raises(cuvil.Unsupported, match=r"text\.cuvil"):
        cuvil.runtime.load_module(text)
    text.write_bytes(mlp_file.read_bytes()[:-100])
    with pytest.raises(cuvil.Unsupported, match=r"text\.cuvil") as caught:
        cuvil.runtime.load_module(text)
    assert "/proc/self" not in str(caught.value)
    assert caught.value.diagnostics
    with pytest.raises(cuvil.Unsupported, match="the module in memory"):
        cuvil.runtime.load_module(b"")
    with pytest.raises(ValueError, match="threads"):
        cuvil.runtime.load_module(mlp_file, threads=0)


def test_saving_where_it_cannot_be(mlp: cuvil.Module, tmp_path: Path):
    with pytest.raises(IsADirectoryError):
        mlp.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        mlp.save(tmp_path / "no" / "m.cuvil")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe"):
        mlp.save(tmp_path / "pipe")
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_wrong_level(mlp_file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUVIL_ISA", "v9")
    with pytest.raises(cuvil.Unsupported, match="v9"):
        cuvil.runtime.load_module(mlp_file)


GATHER = """
func @main(%x: f32[N], %i: i64[M]) -> (f32[M] "y") {
  %1 = gather %x, %i {axis = 0}
  return %1
}
"""


def test_the_models_own_check():
    module = cuvil.compile(GATHER.encode())
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(module.run({"x": x, "i": np.array([2, 0])})["y"], [3, 1])
    np.testing.assert_array_equal(module.run({"x": x, "i": [2, 0]})["y"], [3, 1])
    with pytest.raises(RuntimeError, match="index 5"):
        module.run({"x": x, "i": np.array([0, 5])})
    with pytest.raises(TypeError, match="floats"):
        module.run({"x": x, "i": [0.5]})


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_dtypes_without_kernels_are_refused(dtype: str):
    text = f"func @main(%x: {dtype}[N]) -> {dtype}[N] {{\n %1 = neg %x\n return %1\n}}"
    with pytest.raises(cuvil.Unsupported, match=f"neg cannot be computed in {dtype}"):
        cuvil.compile(text.encode())


@pytest.mark.parametrize("dtype", ["f64", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool"])
def test_dtypes_pass_through(dtype: str):
    text = f"func @main(%x: {dtype}[N,2]) -> {dtype}[2,N] {{\n %1 = transpose %x {{perm = [1, 0]}}\n return %1\n}}"
    module = cuvil.compile(text.encode(), levels=["v3"])
    x = np.arange(6).reshape(3, 2).astype(module.inputs[0].dtype)
    y = module.run({"x": x})["output"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x.T)
    if x.dtype.kind in "iu" and x.dtype.itemsize < 8:
        with pytest.raises(ValueError, match="does not fit"):
            module.run({"x": [[0, 1 << 60]]})


def test_a_scalar():
    module = cuvil.compile(b"func @main(%x: f32[]) -> (f32[]) {\n %1 = neg %x\n return %1\n}")
    for value in (2, 2.0, np.float32(2), np.array(2, np.float32)):
        y = module.run({"x": value})["output"]
        assert y.shape == ()
        assert y == -2


def test_an_optional_input():
    text = """
weight "d" : f32[2] = [1, 2]
func @main(%x: f32[2], %d: f32[2] default "d") -> (f32[2]) {
  %1 = add %x, %d
  return %1
}
"""
    module = cuvil.compile(text.encode())
    x = np.float32([10, 20])
    assert module.inputs[1].optional
    np.testing.assert_array_equal(module.run({"x": x})["output"], [11, 22])
    np.testing.assert_array_equal(module.run({"x": x, "d": None})["output"], [11, 22])
    np.testing.assert_array_equal(module.run({"x": x, "d": x})["output"], [20, 40])


def test_eight_threads(mlp: cuvil.Module):
    inputs = [np.random.default_rng(i).standard_normal((5, 4)).astype(np.float32) for i in range(4)]
    want = [mlp.run({"x": x})["y"] for x in inputs]
    wrong = []

    def work(start: int) -> None:
        for k in range(300):
            i = (start + k) % 4
            if not np.array_equal(mlp.run({"x": inputs[i]})["y"], want[i]):
                wrong.append((start, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_closing_while_others_run(mlp_file: Path):
    module = cuvil.runtime.load_module(mlp_file)
    ends = []

    def work() -> None:
        try:
            while True:
                module.run({"x": X})
        except ValueError as error:
            ends.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    module.close()
    for thread in threads:
        thread.join()
    assert ends == ["the module is closed"] * 4


def test_after_fork(mlp: cuvil.Module):
    want = mlp.run({"x": X})["y"]
    pid = os.fork()
    if pid == 0:
        same = np.array_equal(mlp.run({"x": X})["y"], want)
        os._exit(0 if same else 3)
    end = time.monotonic() + 20
    done, status = 0, 0
    while not done and time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)
    if not done:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert done == pid
    assert status == 0


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_300_rounds_give_everything_back(mlp_file: Path):
    data = mlp_file.read_bytes()

    def round(i: int) -> None:
        module = cuvil.runtime.load_module(data if i % 2 else mlp_file)
        module.run({"x": X})

    for i in range(30):
        round(i)
    gc.collect()
    memory, files = resident(), len(os.listdir("/proc/self/fd"))
    for i in range(300):
        round(i)
    gc.collect()
    assert resident() - memory < 8 << 20
    assert len(os.listdir("/proc/self/fd")) <= files


BITS = """
import sys, numpy as np, cuvil
x = np.random.default_rng(5).standard_normal((700, 4)).astype(np.float32)
m = cuvil.runtime.load_module(sys.argv[1], threads=int(sys.argv[2]))
sys.stdout.buffer.write(m.run({"x": x})["y"].tobytes())
"""


def test_the_number_of_threads_does_not_change_bits(mlp_file: Path):
    def bits(threads: int) -> bytes:
        command = [sys.executable, "-c", BITS, mlp_file, str(threads)]
        return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout

    assert bits(1) == bits(2) == bits(4) != b""
