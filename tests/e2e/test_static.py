"""Models inside of C programs: archives, objects and headers, by every compiler, with the bits of the module."""

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto as TP
from onnx import helper as oh
from onnx import numpy_helper as nh
from samples import MLP, TWO, compile_with, program

import cuvil

ROOT = Path(__file__).parents[2]
FUNCTIONS = {"error_message", "program", "run", "run_on", "run_values", "weights", "workspace_size"}
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def need(tool: str) -> str:
    found = shutil.which(tool)
    if not found:
        pytest.skip(f"{tool} is not installed")
    return found


def output_of(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def emit(model: Path | str | onnx.ModelProto, out: Path, what: str = "static", *options: str) -> Path:
    if isinstance(model, str):
        path = out.with_suffix(".cuir")
        path.write_text(model)
    elif isinstance(model, onnx.ModelProto):
        path = out.with_suffix(".onnx")
        onnx.save(model, path)
    else:
        path = model
    return compile_with(path, out, f"--emit={what}", *options)


def info(name: str, dtype: int, shape: list):
    return oh.make_tensor_value_info(name, dtype, shape)


def onnx_model(nodes: list, inputs: list, outputs: list, initializers: tuple = ()) -> onnx.ModelProto:
    graph = oh.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8)


# ---- A program that calls any model: the archive becomes a shared library, whose functions Python calls


class Dtype(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", Dtype),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Strings(ctypes.Structure):
    _fields_ = (
        ("offsets", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.POINTER(ctypes.c_char)),  # no zero ends them
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    )


class Payload(ctypes.Union):
    _fields_ = (("tensor", Tensor), ("strings", Strings))


class Value(ctypes.Structure):
    _fields_ = (
        ("tag", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("owner", ctypes.c_void_p),
        ("payload", Payload),
    )


KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}


def sizes(shape: tuple[int, ...]) -> ctypes.Array:
    return (ctypes.c_int64 * max(1, len(shape)))(*shape)


def as_value(array: np.ndarray | None) -> Value:
    if array is None:
        return Value()
    value = Value(tag=1)
    if array.dtype == object:
        words = [str(word).encode() for word in array.ravel()]
        offsets = np.cumsum([0, *map(len, words)])
        value.tag = 2
        text = ctypes.create_string_buffer(b"".join(words))
        value.payload.strings = Strings(sizes(tuple(offsets)), text, array.ndim, sizes(array.shape))
        return value
    dtype = Dtype(KINDS[array.dtype.kind], array.dtype.itemsize * 8, 1)
    strides = sizes(tuple(s // array.itemsize for s in array.strides))
    value.payload.tensor = Tensor(array.ctypes.data, 1, 0, array.ndim, dtype, sizes(array.shape), strides, 0)
    return value


def as_array(value: Value) -> np.ndarray:
    if value.tag == 2:
        strings = value.payload.strings
        shape = strings.shape[: strings.ndim]
        raw = ctypes.string_at(strings.bytes, strings.offsets[int(np.prod(shape))])
        ends = strings.offsets[: int(np.prod(shape)) + 1]
        words = [raw[a:b].decode() for a, b in itertools.pairwise(ends)]
        return np.array(words, object).reshape(shape)
    assert value.tag == 1
    tensor = value.payload.tensor
    kind = {code: kind for kind, code in KINDS.items()}[tensor.dtype.code]
    dtype = np.dtype(bool if kind == "b" else f"{kind}{tensor.dtype.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim])
    return np.frombuffer(ctypes.string_at(tensor.data, int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


class Static:
    """A model by its general functions, and beside it the module of the same model."""

    def __init__(self, model: str | onnx.ModelProto, folder: Path):
        archive = emit(model, folder / "m.a")
        library = folder / "libm_shared.so"
        whole = ["-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive"]
        subprocess.run([need("gcc"), "-shared", "-o", str(library), *whole], check=True)
        self.library = ctypes.CDLL(str(library))
        self.library.m_error_message.restype = ctypes.c_char_p
        self.library.m_workspace_size.restype = ctypes.c_uint64
        self.module = cuvil.compile(model.encode() if isinstance(model, str) else model)

    def run(self, *arrays: np.ndarray | None) -> tuple[int, list[np.ndarray]]:
        given = (Value * len(arrays))(*map(as_value, arrays))
        results = (Value * len(self.module.outputs))()
        status = self.library.m_run_values(given, results)
        if status:
            assert all(result.tag == 0 for result in results)
            return status, []
        found = [as_array(result) for result in results]
        for result in results:
            ctypes.CDLL(None).free(ctypes.c_void_p(result.owner))
        return status, found

    def check(self, *arrays: np.ndarray | None):
        """The same outputs as the module's, to the bit."""
        status, found = self.run(*arrays)
        assert status == 0, self.message()
        feeds = {spec.name: array for spec, array in zip(self.module.inputs, arrays, strict=True) if array is not None}
        want = self.module.run(feeds)
        for spec, array in zip(self.module.outputs, found, strict=True):
            assert array.dtype == want[spec.name].dtype
            assert array.shape == want[spec.name].shape
            assert array.tobytes() == want[spec.name].tobytes() or array.dtype == object
            assert np.array_equal(array, want[spec.name]) or array.dtype != object

    def message(self) -> str:
        return self.library.m_error_message().decode()


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def mlp(tmp_path_factory: pytest.TempPathFactory) -> Static:
    return Static(MLP, tmp_path_factory.mktemp("static"))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_open_sizes(mlp: Static, n: int):
    mlp.check(random(n, 4))
    size = mlp.library.m_workspace_size
    size.restype = ctypes.c_uint64
    assert 64 <= size(ctypes.c_int64(n)) < 2**20


def test_two_outputs_and_one_size(tmp_path: Path):
    two = Static(TWO, tmp_path)
    two.check(random(7), random(7))
    assert two.run(random(7), random(6))[0] == 4
    assert two.message() == "input 'b' has size 6 at axis 0, expected 7"
    # In place: an output lies over the inputs.
    a, b = random(5), random(6)[:5].copy()
    want, difference = a + b, np.empty_like(a)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, a, difference)]
    assert two.library.m_run(ctypes.c_int64(5), *pointers, None) == 0
    assert np.array_equal(a, want)


@pytest.mark.parametrize(
    ("arrays", "status", "says"),
    [
        ((None,), 2, "input 'x' is missing"),
        ((np.zeros((2, 4)),), 3, "input 'x' is f64, expected f32"),
        ((np.zeros(4, np.float32),), 4, "input 'x' has 1 axis, expected 2"),
        ((np.zeros((2, 5), np.float32),), 4, "input 'x' has size 5 at axis 1, expected 4"),
        ((np.zeros((4, 2), np.float32).T,), 4, "input 'x' must be row-major without gaps"),
        ((np.array([["a"] * 4], object),), 3, "input 'x' must be a tensor"),
    ],
)
def test_what_does_not_fit_is_a_sentence(mlp: Static, arrays: tuple, status: int, says: str):
    assert mlp.run(*arrays) == (status, [])
    assert mlp.message() == says


def test_sizes_that_no_memory_holds(mlp: Static):
    for n in (-1, 2**62):
        assert mlp.library.m_workspace_size(ctypes.c_int64(n)) == 2**64 - 1
        assert mlp.library.m_run(ctypes.c_int64(n), None, None, None) == 4
        assert mlp.message() == f"input 'x' has shape [{n},4], which no memory holds"
    assert mlp.library.m_run(ctypes.c_int64(1), None, None, None) == 3
    assert mlp.message() == "input 'x' has no data"


def test_sizes_that_data_shows(tmp_path: Path):
    nonzero = oh.make_node("NonZero", ["x"], ["y"])
    model = onnx_model([nonzero], [info("x", TP.FLOAT, ["N", "M"])], [info("y", TP.INT64, [2, "K"])])
    static = Static(model, tmp_path)
    for shape in ((0, 3), (1, 1), (4, 5)):
        static.check((random(*shape) > 0).astype(np.float32))
    text = (tmp_path / "m.h").read_text()
    assert "m_run(" not in text
    assert "m_run_values(" in text


def test_strings(tmp_path: Path):
    same = oh.make_node("Identity", ["s"], ["t"])
    static = Static(onnx_model([same], [info("s", TP.STRING, ["N", 2])], [info("t", TP.STRING, ["N", 2])]), tmp_path)
    static.check(np.array([["a", "été"], ["", "x" * 1000]], object))
    static.check(np.empty((0, 2), object))


def test_a_check_of_the_model_that_fails(tmp_path: Path):
    table = nh.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "table")
    lookup = oh.make_node("Gather", ["table", "i"], ["y"], name='look "up"??/')
    static = Static(
        onnx_model([lookup], [info("i", TP.INT64, ["N"])], [info("y", TP.FLOAT, ["N", 3])], (table,)), tmp_path
    )
    static.check(np.array([0, 3, -4]))
    assert static.run(np.array([1, 4])) == (5, [])
    with pytest.raises(RuntimeError) as error:
        static.module.run({"i": np.array([1, 4])})
    assert static.message() == str(error.value)


def test_every_dtype_and_inputs_that_may_be_left_out(tmp_path: Path):
    dtypes = {TP.DOUBLE: np.float64, TP.INT32: np.int32, TP.INT8: np.int8, TP.UINT16: np.uint16, TP.BOOL: np.bool_}
    nodes = [oh.make_node("Cast", ["sum"], [f"y{to}"], to=to) for to in dtypes]
    model = onnx_model(
        [oh.make_node("Add", ["x", "double"], ["sum"]), *nodes],
        [info("x", TP.FLOAT, [2, 3]), info("double", TP.FLOAT, [3])],
        [info(f"y{to}", to, [2, 3]) for to in dtypes],
        (nh.from_array(np.array([1, 2, 3], np.float32), "double"),),
    )
    static = Static(model, tmp_path)
    static.check(np.ones((2, 3), np.float32), None)
    static.check(np.ones((2, 3), np.float32), np.zeros(3, np.float32))
    header = (tmp_path / "m.h").read_text()
    assert "const float* v_double," in header, "a keyword is no name of a parameter"
    assert '"double": f32 [3]; may be left out' in header
    assert "#define m_WORKSPACE_SIZE" in header
    assert "#define m_x_COUNT 6 " in header


# ---- Compilers


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory, digits_onnx: Path, resnet18_onnx: Path) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    for model in (digits_onnx, resnet18_onnx):
        emit(model, folder / (model.stem + ".a"))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "gcc -std=c99",
        "gcc -no-pie -O2",
        "gcc -static",
        "gcc -Wl,--gc-sections",
        "clang-19 -fuse-ld=lld-19",
        "musl-gcc",
        "musl-gcc -static",
        "g++ -xc++",
    ],
)
def test_the_example_with_two_models(archives: Path, command: str, tmp_path: Path):
    compiler, *options = command.split()
    built = tmp_path / "two_models"
    source = ROOT / "examples/c/two_models.c"
    if compiler == "g++":  # C++ asks for casts that C does not need
        source = tmp_path / "main.cpp"
        source.write_text(CXX)
    libraries = [archives / "digits.a", archives / "resnet18.a"]
    output_of(need(compiler), *WARNINGS, f"-I{archives}", *options, source, "-xnone", *libraries, "-o", built)
    first, second, third = output_of(built).splitlines()
    lines = np.zeros((2, 1, 8, 8), np.float32)
    lines[1, :, :, 3:5] = 1
    scores = cuvil.compile(ROOT / "examples/digits/digits.onnx").run({"image": lines})["scores"]
    for line, row in zip((first, second), scores, strict=True):
        assert line == f"digit {row.argmax()}, score {row.max():g}"
    assert third.startswith("class ")
    has_threads = "cuvil_threads" in output_of(need("nm"), built)
    assert has_threads == (compiler != "g++"), "threads are linked where they are asked for"


CXX = """
#include "digits.h"
#include "resnet18.h"
#include <cstdio>
#include <vector>

int main() {
    std::vector<float> images(128), scores(20), image(resnet18_input_COUNT), classes(resnet18_output_COUNT);
    for (int i = 0; i < 64; i++) images[64 + i] = i % 8 == 3 || i % 8 == 4;
    if (digits_run(2, images.data(), scores.data(), nullptr) != CUVIL_OK) return 1;
    for (int k = 0; k < 2; k++) {
        int best = 0;
        for (int i = 0; i < 10; i++) best = scores[10 * k + i] > scores[10 * k + best] ? i : best;
        std::printf("digit %d, score %g\\n", best, scores[10 * k + best]);
    }
    if (resnet18_run(image.data(), classes.data(), nullptr) != CUVIL_OK) return 1;
    std::printf("class of an empty image\\n");
}
"""


def test_threads_change_no_bits(archives: Path, tmp_path: Path):
    (tmp_path / "main.c").write_text(THREADS)
    options = ["-std=c99", "-pedantic", *WARNINGS, f"-I{archives}"]
    output_of(need("gcc"), *options, tmp_path / "main.c", archives / "resnet18.a", "-o", tmp_path / "main")
    assert output_of(tmp_path / "main") == "same\n"


THREADS = """
#include "resnet18.h"
#include <stdio.h>
#include <string.h>

static float image[resnet18_input_COUNT], one[resnet18_output_COUNT], many[resnet18_output_COUNT];

int main(void) {
    for (int i = 0; i < resnet18_input_COUNT; i++) image[i] = (float)(i % 255) / 255;
    if (resnet18_run(image, one, NULL) != CUVIL_OK) return 1;
    int64_t shape[] = {1, 3, 224, 224}, out_shape[] = {1, 1000};
    cuvil_value in, out;
    memset(&in, 0, sizeof in);
    const cuvil_tensor x = {image, 1, 0, 4, {2, 32, 1}, shape, NULL, 0};
    const cuvil_tensor y = {many, 1, 0, 2, {2, 32, 1}, out_shape, NULL, 0};
    in.tag = CUVIL_TENSOR;
    in.as.tensor = x;
    out = in;
    out.as.tensor = y;
    for (int threads = 1; threads <= 5; threads++) {
        cuvil_host host = *cuvil_threads(threads); /* a copy serves as well */
        memset(many, 0, sizeof many);
        if (resnet18_run_on(&host, threads, &in, &out, NULL, NULL) != CUVIL_OK) return 1;
        if (memcmp(one, many, sizeof one) != 0) return 2;
    }
    const int32_t cancel = 1;
    if (resnet18_run_on(NULL, 1, &in, &out, NULL, &cancel) != CUVIL_ERROR_CANCELLED) return 3;
    puts(strcmp(resnet18_error_message(), "the run was cancelled") == 0 ? "same" : resnet18_error_message());
}
"""


def test_a_program_without_the_c_library(archives: Path, tmp_path: Path):
    (tmp_path / "main.c").write_text(BARE)
    options = ["-O1", "-nostdlib", "-static", "-fno-stack-protector", "-Wl,--gc-sections", f"-I{archives}"]
    output_of(need("gcc"), *options, tmp_path / "main.c", archives / "digits.a", "-o", tmp_path / "main")
    assert output_of(tmp_path / "main") == ""
    assert output_of("nm", "-u", tmp_path / "main") == ""


BARE = """
#include "digits.h"

static char workspace[1 << 18] __attribute__((aligned(64)));
static float image[64], scores[10];

static void each(const cuvil_host* host, int64_t n, void (*run)(void*, int64_t, int32_t), void* context) {
    (void)host;
    for (int64_t i = 0; i < n; i++) run(context, i, 0);
}

__attribute__((force_align_arg_pointer)) void _start(void) {
    int64_t dims[16], image_shape[] = {1, 1, 8, 8}, scores_shape[] = {1, 10};
    const cuvil_tensor x = {image, 1, 0, 4, {2, 32, 1}, image_shape, NULL, 0};
    const cuvil_tensor y = {scores, 1, 0, 2, {2, 32, 1}, scores_shape, NULL, 0};
    const cuvil_value in = {CUVIL_TENSOR, 0, NULL, {x}};
    cuvil_value out = {CUVIL_TENSOR, 0, NULL, {y}};
    const cuvil_host host = {sizeof host, each, NULL, NULL, NULL, NULL, NULL};
    cuvil_failure failure;
    int status = digits_program.dim_count <= 16 ? digits_program.bind(&in, dims, &failure) : 100;
    if (status == 0 && digits_program.workspace_size(dims, 1) > sizeof workspace) status = 101;
    const cuvil_call call = {sizeof call, &host, digits_weights, workspace, dims, &in, &out, NULL, NULL, &failure, 1};
    if (status == 0) status = digits_program.levels[0].run(&call);
    if (status == 0 && scores[0] == scores[1]) status = 102;
    __asm__ volatile("syscall" : : "a"(60), "D"(status)); /* exit */
}
"""


def test_only_names_of_the_model_and_of_the_host_are_visible(archives: Path):
    for name in ("digits", "resnet18"):
        defined = output_of(need("nm"), "-g", "--defined-only", "--format=just-symbols", archives / f"{name}.a").split()
        names = {symbol for symbol in defined if not symbol.endswith(".o:")}
        assert {symbol for symbol in names if not symbol.startswith("cuvil_")} == {f"{name}_{f}" for f in FUNCTIONS}
        undefined = set(output_of("nm", "-u", "--format=just-symbols", archives / f"{name}.a").split())
        libc = {symbol for symbol in undefined - names if not symbol.endswith(".o:")}
        threads = {"pthread_create", "pthread_detach", "pthread_sigmask", "syscall"}
        assert libc <= {"__tls_get_addr", "aligned_alloc", "free", "getenv", "memcpy", "memset"} | threads


def test_the_same_bytes_for_any_number_of_jobs(archives: Path, digits_onnx: Path, tmp_path: Path):
    emit(digits_onnx, tmp_path / "digits.a", "static", "-j", "1")
    assert (tmp_path / "digits.a").read_bytes() == (archives / "digits.a").read_bytes()
    assert (tmp_path / "digits.h").read_bytes() == (archives / "digits.h").read_bytes()


def test_objects_without_an_archive(tmp_path: Path):
    """Two objects bring the host twice, and the program keeps one; the header comes alone."""
    main = "#include <stdio.h>\nint main(void) {\n    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[6], z[6];\n"
    for name, out in (("one", "y"), ("other", "z")):
        emit(MLP, tmp_path / f"{name}.o", "obj", "--isa", "v2")
        assert not (tmp_path / f"{name}.h").exists()
        emit(MLP, tmp_path / f"{name}.h", "header")
        main = f'#include "{name}.h"\n{main}    if ({name}_run(2, x, {out}, NULL) != CUVIL_OK) return 1;\n'
    main += '    for (int i = 0; i < 6; i++) printf("%a %a\\n", y[i], z[i]);\n}\n'
    (tmp_path / "main.c").write_text(main)
    built = tmp_path / "main"
    objects = [tmp_path / "one.o", tmp_path / "other.o"]
    output_of(need("gcc"), "-std=c99", "-pedantic", *WARNINGS, tmp_path / "main.c", *objects, "-o", built)
    x = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    want = [float(v).hex() for v in cuvil.compile(MLP.encode()).run({"x": x})["y"].ravel()]
    for line, value in zip(output_of(built).splitlines(), want, strict=True):
        assert [float.fromhex(v).hex() for v in line.split()] == [value, value]


def test_a_level_that_is_not_there(tmp_path: Path):
    emit(MLP, tmp_path / "m.a", "static", "--isa", "v2,v3")
    (tmp_path / "main.c").write_text(
        '#include "m.h"\n#include <stdio.h>\n'
        "int main(void) {\n    float x[4] = {0}, y[3];\n    int status = m_run(1, x, y, NULL);\n"
        "    puts(m_error_message());\n    return status;\n}\n"
    )
    output_of(need("gcc"), tmp_path / "main.c", tmp_path / "m.a", "-o", tmp_path / "main")
    for level, says in (("v2", ""), ("v4", "CUVIL_ISA asks for level v4, m has code for the levels v2 and v3")):
        done = subprocess.run(
            [tmp_path / "main"], env={"CUVIL_ISA": level}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout.strip()) == (1 if says else 0, says)


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--emit=static", "--name", "int"], 1, "is taken, or no identifier of C"),
        (["--emit=static", "--name", "a-b"], 1, "such as 'a_b'"),
        (["--emit=static", "-o", "m.h"], 2, "this is what the header is called"),
        (["--emit=static", "-o", "-"], 2, "an object is no text"),
        (["--emit=static", "-o", "no/folder/m.a"], 1, "cannot write"),
        (["--emit=static", "--attach", "m.cuir"], 2, "--attach puts files into modules alone"),
        (["--name", "x"], 2, "--name is for --emit=static, obj and header"),
    ],
)
def test_wrong_uses_leave_nothing_behind(arguments: list[str], status: int, says: str, tmp_path: Path):
    (tmp_path / "m.cuir").write_text(MLP)
    done = subprocess.run(
        [*program(), "compile", "m.cuir", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert says in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.cuir"]


def test_a_header_that_cannot_be_written_leaves_no_archive(tmp_path: Path):
    (tmp_path / "m.cuir").write_text(MLP)
    (tmp_path / "m.h").mkdir()
    done = subprocess.run(
        [*program(), "compile", "m.cuir", "--emit=static"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "m.h" in done.stderr
    assert not (tmp_path / "m.a").exists()
