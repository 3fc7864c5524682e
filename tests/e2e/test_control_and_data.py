"""The whole way for what is no straight line of arithmetic: If, Loop, sizes from data, strings, run-time failures."""

import numpy as np
import pytest
from onnx import TensorProto as TP
from onnx import helper as oh
from onnx import numpy_helper as nh

import cuvil

LOWEST = -(2**63)


def info(name: str, dtype: int, shape: list):
    return oh.make_tensor_value_info(name, dtype, shape)


def compiled(nodes: list, inputs: list, outputs: list, initializers: tuple = ()) -> cuvil.Module:
    graph = oh.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return cuvil.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8))


def branch(name: str, nodes: list, outputs: list):
    return oh.make_graph(nodes, name, [], outputs)


def test_if():
    then = branch("then", [oh.make_node("Neg", ["x"], ["a"])], [info("a", TP.FLOAT, ["N"])])
    other = branch("else", [oh.make_node("Add", ["x", "x"], ["b"])], [info("b", TP.FLOAT, ["N"])])
    m = compiled(
        [oh.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [info("c", TP.BOOL, []), info("x", TP.FLOAT, ["N"])],
        [info("y", TP.FLOAT, ["N"])],
    )
    for n in (0, 1, 7):
        x = np.arange(n, dtype=np.float32)
        assert np.array_equal(m.run({"c": np.array(True), "x": x})["y"], -x)
        assert np.array_equal(m.run({"c": np.array(False), "x": x})["y"], 2 * x)


def test_if_with_branches_of_different_size():
    then = branch("then", [oh.make_node("Concat", ["x", "x"], ["a"], axis=0)], [info("a", TP.FLOAT, ["K"])])
    other = branch("else", [oh.make_node("Identity", ["x"], ["b"])], [info("b", TP.FLOAT, ["N"])])
    m = compiled(
        [oh.make_node("If", ["c"], ["r"], then_branch=then, else_branch=other), oh.make_node("Neg", ["r"], ["y"])],
        [info("c", TP.BOOL, []), info("x", TP.FLOAT, ["N"])],
        [info("y", TP.FLOAT, ["M"])],
    )
    x = np.arange(5, dtype=np.float32)
    for _ in range(3):
        assert np.array_equal(m.run({"c": np.array(True), "x": x})["y"], -np.concatenate([x, x]))
        assert np.array_equal(m.run({"c": np.array(False), "x": x})["y"], -x)


def squeezing(condition: list, axes: int) -> cuvil.Module:
    """Squeezes axis 1 of x where the nodes that end in "c" say so, and multiplies the result, a matrix, by itself."""
    then = branch("then", [oh.make_node("Squeeze", ["x", "one"], ["a"])], [info("a", TP.FLOAT, None)])
    other = branch("else", [oh.make_node("Identity", ["x"], ["b"])], [info("b", TP.FLOAT, None)])
    constants = {"one": [1], "rank": [axes]}
    return compiled(
        [
            oh.make_node("Shape", ["x"], ["shape"]),
            *condition,
            oh.make_node("If", ["c"], ["r"], then_branch=then, else_branch=other),
            oh.make_node("Gemm", ["r", "r"], ["y"], transB=1),
        ],
        [info("x", TP.FLOAT, ["N", "K", "M"][:axes])],
        [info("y", TP.FLOAT, ["N", "N"])],
        tuple(nh.from_array(np.array(value, np.int64), name) for name, value in constants.items()),
    )


def test_if_that_squeezes_an_axis_of_size_one():
    m = squeezing(
        [oh.make_node("Gather", ["shape", "one"], ["size"]), oh.make_node("Equal", ["size", "one"], ["c"])], 3
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    assert np.array_equal(m.run({"x": x})["y"], x[:, 0] @ x[:, 0].T)
    with pytest.raises(ValueError, match=r"has shape \[1,2,3\], expected \[N,1,M\]"):
        m.run({"x": x.reshape(1, 2, 3)})


def test_if_on_the_rank_of_a_value_takes_one_branch():
    nodes = [
        oh.make_node("Size", ["shape"], ["axes"]),
        oh.make_node("Equal", ["axes", "rank"], ["is_rank"]),
        oh.make_node("Not", ["is_rank"], ["c"]),
    ]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(squeezing(nodes, 2).run({"x": x})["y"], x @ x.T)


def test_a_question_mark_is_no_name_of_a_size():
    m = compiled(
        [oh.make_node("Neg", ["x"], ["y"])], [info("x", TP.FLOAT, ["?", "?"])], [info("y", TP.FLOAT, ["?", "?"])]
    )
    x = np.ones((2, 3), np.float32)
    assert np.array_equal(m.run({"x": x})["y"], -x)


def loop_body(nodes: list, carried: list, outputs: list):
    inputs = [info("i", TP.INT64, []), info("go_in", TP.BOOL, []), *carried]
    return oh.make_graph(
        [*nodes, oh.make_node("Identity", ["go_in"], ["go"])], "body", inputs, [info("go", TP.BOOL, []), *outputs]
    )


def test_loop_carries_stacks_and_reads_outside():
    body = loop_body(
        [oh.make_node("Add", ["v", "x"], ["w"]), oh.make_node("Identity", ["v"], ["slice"])],
        [info("v", TP.FLOAT, ["N"])],
        [info("w", TP.FLOAT, ["N"]), info("slice", TP.FLOAT, ["N"])],
    )
    m = compiled(
        [oh.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body)],
        [info("n", TP.INT64, []), info("x", TP.FLOAT, ["N"])],
        [info("last", TP.FLOAT, ["N"]), info("all", TP.FLOAT, ["T", "N"])],
    )
    for trips in (0, 1, 5):
        for n in (0, 3):
            x = np.arange(n, dtype=np.float32) + 1
            y = m.run({"n": np.array(trips), "x": x})
            assert np.array_equal(y["last"], x * (trips + 1))
            assert np.array_equal(
                y["all"], np.stack([x * (k + 1) for k in range(trips)]) if trips else np.zeros((0, n), np.float32)
            )


def test_loop_ends_by_its_condition_and_swaps():
    nodes = [
        oh.make_node("Identity", ["a"], ["b2"]),
        oh.make_node("Identity", ["b"], ["a2"]),
        oh.make_node("Less", ["i", "limit"], ["go"]),
    ]
    carried = [info("a", TP.FLOAT, [2]), info("b", TP.FLOAT, [2])]
    inputs = [info("i", TP.INT64, []), info("go_in", TP.BOOL, []), *carried]
    body = oh.make_graph(
        nodes, "body", inputs, [info("go", TP.BOOL, []), info("a2", TP.FLOAT, [2]), info("b2", TP.FLOAT, [2])]
    )
    m = compiled(
        [oh.make_node("Loop", ["", "start", "x", "y"], ["p", "q"], body=body)],
        [info("start", TP.BOOL, []), info("limit", TP.INT64, []), info("x", TP.FLOAT, [2]), info("y", TP.FLOAT, [2])],
        [info("p", TP.FLOAT, [2]), info("q", TP.FLOAT, [2])],
    )
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    for limit in range(4):  # runs limit + 1 times
        out = m.run({"start": np.array(True), "limit": np.array(limit), "x": x, "y": y})
        want = (y, x) if limit % 2 == 0 else (x, y)
        assert np.array_equal(out["p"], want[0])
        assert np.array_equal(out["q"], want[1])
    out = m.run({"start": np.array(False), "limit": np.array(9), "x": x, "y": y})
    assert np.array_equal(out["p"], x)


def test_loop_whose_carried_value_grows():
    body = loop_body(
        [oh.make_node("Concat", ["v", "x"], ["w"], axis=0)], [info("v", TP.FLOAT, ["K"])], [info("w", TP.FLOAT, ["K2"])]
    )
    m = compiled(
        [oh.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
        [info("n", TP.INT64, []), info("x", TP.FLOAT, ["N"])],
        [info("y", TP.FLOAT, ["M"])],
    )
    x = np.array([1, 2, 3], np.float32)
    for trips in (0, 1, 4):
        assert np.array_equal(m.run({"n": np.array(trips), "x": x})["y"], np.tile(x, trips + 1))


@pytest.mark.parametrize("shape", [(0,), (7,), (3, 0), (2, 3, 4)])
def test_nonzero(shape: tuple[int, ...]):
    m = compiled(
        [oh.make_node("NonZero", ["x"], ["y"])],
        [info("x", TP.FLOAT, [f"D{i}" for i in range(len(shape))])],
        [info("y", TP.INT64, [len(shape), "K"])],
    )
    random = np.random.default_rng(0)
    for density in (0, 0.5, 1):
        x = (random.random(shape) < density).astype(np.float32)
        y = m.run({"x": x})["y"]
        assert y.dtype == np.int64
        assert np.array_equal(y, np.array(np.nonzero(x)))
    assert m.outputs[0].shape[0] == len(shape)


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        ("Neg", ([LOWEST, 3],), [LOWEST, -3]),
        ("Add", ([LOWEST, 1], [-1, 1]), [2**63 - 1, 2]),
        ("Mul", ([2**62, 7], [4, 3]), [0, 21]),
        ("Mod", ([LOWEST, 7], [-1, 4]), [0, 3]),
        ("Equal", ([LOWEST, 5], [2**63 - 1, 5]), [False, True]),
        ("ReduceProd", ([2**62, 4],), [0]),
    ],
)
def test_integers_that_are_known_wrap(op: str, values: tuple[list[int], ...], expected: list):
    names = [f"x{i}" for i in range(len(values))]
    arrays = [nh.from_array(np.array(v, np.int64), name) for name, v in zip(names, values, strict=True)]
    dtype = TP.BOOL if op == "Equal" else TP.INT64
    m = compiled([oh.make_node(op, names, ["y"])], [], [info("y", dtype, [len(expected)])], tuple(arrays))
    assert m.run({})["y"].tolist() == expected


def test_a_narrow_integer_wraps_before_it_is_compared():
    m = compiled(
        [
            oh.make_node("Cast", ["x"], ["narrow"], to=TP.INT32),
            oh.make_node("Div", ["narrow", "two"], ["y"]),
            oh.make_node("Equal", ["narrow", "other"], ["z"]),
        ],
        [],
        [info("y", TP.INT32, [2]), info("z", TP.BOOL, [2])],
        (
            nh.from_array(np.array([2**31, 6], np.int64), "x"),
            nh.from_array(np.array([2, 2], np.int32), "two"),
            nh.from_array(np.array([-(2**31), 6], np.int32), "other"),
        ),
    )
    out = m.run({})
    assert out["y"].tolist() == [-(2**30), 3]
    assert out["z"].tolist() == [True, True]


def test_strings_pass_through():
    m = compiled(
        [oh.make_node("Identity", ["s"], ["t"])], [info("s", TP.STRING, ["N", 2])], [info("t", TP.STRING, ["N", 2])]
    )
    s = np.array([["a", "été"], ["", "x" * 1000]], dtype=object)
    assert np.array_equal(m.run({"s": s})["t"], s)
    assert m.run({"s": np.empty((0, 2), object)})["t"].shape == (0, 2)


def test_strings_pass_through_in_another_shape():
    m = compiled(
        [oh.make_node("Reshape", ["s", "shape"], ["t"])],
        [info("s", TP.STRING, [2, 3])],
        [info("t", TP.STRING, [3, 2])],
        (nh.from_array(np.array([3, 2]), "shape"),),
    )
    s = np.array([["a", "b", "c"], ["d", "e", "f"]], dtype=object)
    assert m.run({"s": s})["t"].tolist() == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_strings_that_are_no_input_are_refused():
    words = oh.make_tensor("words", TP.STRING, [2], [b"a", b"b"])
    with pytest.raises(cuvil.Unsupported, match="can only pass"):
        compiled([oh.make_node("Identity", ["words"], ["t"])], [], [info("t", TP.STRING, [2])], (words,))
    with pytest.raises(cuvil.Unsupported, match="cannot have a default"):
        compiled(
            [oh.make_node("Identity", ["words"], ["t"])],
            [info("words", TP.STRING, [2])],
            [info("t", TP.STRING, [2])],
            (words,),
        )


def test_a_table_that_a_product_shares_is_read_by_rows():
    rows = np.arange(120, dtype=np.float32).reshape(40, 3)
    m = compiled(
        [
            oh.make_node("Gather", ["table", "i"], ["x"], name="embedding/lookup"),
            oh.make_node("Transpose", ["table"], ["columns"], perm=[1, 0]),
            oh.make_node("MatMul", ["x", "columns"], ["y"]),
        ],
        [info("i", TP.INT64, ["N"])],
        [info("y", TP.FLOAT, ["N", 40])],
        (nh.from_array(rows, "table"),),
    )
    i = np.array([0, 39, -1, 17])
    assert np.array_equal(m.run({"i": i})["y"], rows[i] @ rows.T)
    with pytest.raises(RuntimeError, match=r"index 40 is out of range for axis 0 of size 40.*embedding/lookup"):
        m.run({"i": np.array([1, 40])})


def test_an_index_out_of_range_is_a_sentence():
    table = nh.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "table")
    m = compiled(
        [oh.make_node("Gather", ["table", "i"], ["y"], name="embedding/lookup")],
        [info("i", TP.INT64, ["N"])],
        [info("y", TP.FLOAT, ["N", 3])],
        (table,),
    )
    assert np.array_equal(m.run({"i": np.array([-1, 0])})["y"][0], [9, 10, 11])
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"index 4 is out of range for axis 0 of size 4.*embedding/lookup"):
            m.run({"i": np.array([1, 4, -9])})
    big = np.zeros(200000, np.int64)
    big[[150000, 190000]] = [7, 8]
    two = cuvil.runtime.load_module(cuvil_bytes(m), threads=2)
    for _ in range(5):
        with pytest.raises(RuntimeError, match="index 7 is out of range"):
            two.run({"i": big})


def cuvil_bytes(module: cuvil.Module) -> bytes:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        module.save(Path(folder) / "m.cuvil")
        return (Path(folder) / "m.cuvil").read_bytes()


def test_sizes_that_must_agree_are_checked_at_the_door():
    m = compiled(
        [oh.make_node("MatMul", ["a", "b"], ["y"])],
        [info("a", TP.FLOAT, ["M", "K"]), info("b", TP.FLOAT, ["L", "N"])],
        [info("y", TP.FLOAT, ["M", "N"])],
    )
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    assert np.array_equal(m.run({"a": a, "b": b})["y"], a @ b)
    with pytest.raises(ValueError, match=r"3.*4|4.*3"):
        m.run({"a": a, "b": np.ones((4, 4), np.float32)})


@pytest.mark.parametrize(
    "name", ["a@b", "a@@V1", 'say "x"', "back\\slash", "été", "*/ int x;", "%s{0}", "x" * 3000, ""]
)
def test_any_node_name(name: str):
    m = compiled(
        [oh.make_node("Relu", ["x"], ["y"], name=name)], [info("x", TP.FLOAT, [2])], [info("y", TP.FLOAT, [2])]
    )
    assert np.array_equal(m.run({"x": np.array([-1, 1], np.float32)})["y"], [0, 1])


def test_loop_stacks_slices_whose_size_data_shows():
    """All turns must give the same size."""
    body = loop_body(
        [
            oh.make_node("Mul", ["i", "step"], ["from"]),
            oh.make_node("Add", ["from", "length"], ["to"]),
            oh.make_node("Slice", ["x", "from", "to"], ["slice"]),
        ],
        [],
        [info("slice", TP.FLOAT, ["K"])],
    )
    m = compiled(
        [oh.make_node("Loop", ["n", ""], ["all"], body=body)],
        [
            info("n", TP.INT64, []),
            info("x", TP.FLOAT, ["N"]),
            info("step", TP.INT64, [1]),
            info("length", TP.INT64, [1]),
        ],
        [info("all", TP.FLOAT, ["T", "K"])],
    )
    x = np.arange(12, dtype=np.float32)
    feeds = {"x": x, "step": np.array([2]), "length": np.array([4])}
    want = np.stack([x[2 * i : 2 * i + 4] for i in range(4)])
    assert np.array_equal(m.run({"n": np.array(4), **feeds})["all"], want)
    assert m.run({"n": np.array(0), **feeds})["all"].shape == (0, 0)
    with pytest.raises(RuntimeError, match="the turns of the loop stack slices of different sizes, 4 and 2"):
        m.run({"n": np.array(6), **feeds})
