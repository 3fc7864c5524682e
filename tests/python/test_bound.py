"""Calls whose arrays stay bound to a module."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cuvil
from cuvil import ir

TWO = """func @main(%a: f32[2,3], %b: f32[2,3]) -> (f32[2,3] "sum", f32[2,3] "product") {
  %1 = add %a, %b : f32[2,3]
  %2 = mul %a, %b : f32[2,3]
  return %1, %2
}
"""


def two() -> cuvil.Module:
    return cuvil.compile(TWO.encode(), target="native")


def test_a_bound_call_reads_and_writes_the_same_arrays():
    a, b = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    total = np.zeros((2, 3), np.float32)
    call = two().bind({"a": a, "b": b}, {"sum": total})
    first = call()
    assert list(first) == ["sum", "product"]
    assert first["sum"] is total
    product = first["product"]
    np.testing.assert_array_equal(total, np.full((2, 3), 3))
    np.testing.assert_array_equal(product, np.full((2, 3), 2))
    a[:] = 5
    assert call() is first
    np.testing.assert_array_equal(total, np.full((2, 3), 7))
    np.testing.assert_array_equal(product, np.full((2, 3), 10))
    # Nobody takes the memory away from it.
    first.clear()
    del total, a, b
    for _ in range(3):
        call()
    np.testing.assert_array_equal(product, np.full((2, 3), 10))


def test_the_only_ports_have_short_names(mlp_file: Path):
    module = cuvil.load_module(mlp_file)
    x = np.ones((4, 4), np.float32)
    call = module.bind({"input": x})
    module.close()
    assert call()["output"].shape == (4, 3)
    np.testing.assert_array_equal(call()["output"], cuvil.load_module(mlp_file)(x)["output"])


def test_torch_tensors_are_bound_in_place():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a, b, y = torch.ones(2, 3), torch.ones(2, 3), torch.zeros(2, 3)
    call = two().bind({"a": a, "b": b}, {"sum": y})
    a += 3
    call()
    assert y.tolist() == [[5.0] * 3] * 2


def test_what_cannot_be_bound_is_refused():
    module, x = two(), np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match="input 'a' cannot be bound: it must be an array of f32, whose memory"):
        module.bind({"a": [[1, 2, 3]] * 2, "b": x})
    with pytest.raises(TypeError, match="input 'b' cannot be bound"):
        module.bind({"a": x, "b": x.astype(np.float64)})
    with pytest.raises(ValueError, match="input 'a' cannot be bound: it must be row-major"):
        module.bind({"a": np.ones((3, 2), np.float32).T, "b": x})
    with pytest.raises(ValueError, match="overlap no output"):
        module.bind({"a": x, "b": x}, {"sum": x})
    with pytest.raises(ValueError, match=r"input 'a' has shape \[3,3\], expected \[2,3\]"):
        module.bind({"a": np.ones((3, 3), np.float32), "b": x})
    with pytest.raises(KeyError, match="input 'b' is missing"):
        module.bind({"a": x})
    with pytest.raises(KeyError, match="no input 'c'"):
        module.bind({"a": x, "b": x, "c": x})
    with pytest.raises(KeyError, match="no output 'z'"):
        module.bind({"a": x, "b": x}, {"z": x})
    call = module.bind({"a": x, "b": x})
    with pytest.raises(TypeError, match="takes no arguments"):
        call(x)
    with pytest.raises(TypeError):
        type(call)()
    module.close()
    with pytest.raises(ValueError, match="closed"):
        module.bind({"a": x, "b": x})


def test_sizes_must_be_known_before_the_run():
    program = ir.Program("found")
    f = program.function("main")
    x = f.input("x", "f32[N]")
    f.output("y", f.op("nonzero", [x], count="found"))
    with pytest.raises(TypeError, match="known only after the run: it cannot be bound"):
        cuvil.compile(program, target="native").bind({"x": np.ones(3, np.float32)})


def test_one_thread_at_a_time():
    program = ir.Program("long")
    f = program.function("main")
    x = f.input("x", "f32[1200,1200]")
    y = x
    for _ in range(20):
        y = f.op("matmul", [y, x])
    f.output("y", y)
    call = cuvil.compile(program, target="native").bind({"x": np.zeros((1200, 1200), np.float32)})
    failures = []

    def run() -> None:
        try:
            call()
        except RuntimeError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert failures == ["the bound call is running in another thread: bind one for each thread"]
    call()
