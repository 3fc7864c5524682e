#include "runtime/cpu.hpp"
#include "runtime_fixture.hpp"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace cuvil::test {
namespace {

std::string message() { return cuvil_error_message(); }

std::string load_error(const std::string& path) {
    cuvil_module* module = nullptr;
    EXPECT_EQ(cuvil_load(path.c_str(), 1, &module), CUVIL_ERROR_FILE);
    EXPECT_EQ(module, nullptr);
    return message();
}

// Runs `scale` on x and returns y; both outputs are allocated by the loader.
std::vector<float> run_scale(cuvil_module* module, cuvil_value x) {
    cuvil_value out[2] = {};
    EXPECT_EQ(cuvil_run(module, &x, out), CUVIL_OK) << message();
    if (out[0].tag != CUVIL_TENSOR) return {};
    EXPECT_EQ(reinterpret_cast<uintptr_t>(out[0].as.tensor.data) % 64, 0u);
    std::vector<float> y = elements<float>(out[0]);
    for (cuvil_value& value : out) cuvil_value_release(&value);
    EXPECT_EQ(out[0].tag, CUVIL_NONE);
    return y;
}

TEST(Loader, RunsAFile) {
    const TemporaryFolder folder;
    const std::string path = folder.write("scale.cuvil", module_bytes("scale", {10, 20, 30, 40}));
    cuvil_module* raw = nullptr;
    ASSERT_EQ(cuvil_load(path.c_str(), 1, &raw), CUVIL_OK) << message();
    const ModulePointer module(raw);
    EXPECT_STREQ(cuvil_manifest(raw), manifest_of("scale", 64).c_str());
    EXPECT_EQ(cuvil_input_count(raw), 1);
    EXPECT_EQ(cuvil_output_count(raw), 2);
    EXPECT_STREQ(cuvil_input_name(raw, 0), "x");
    EXPECT_STREQ(cuvil_output_name(raw, 1), "level");
    EXPECT_EQ(cuvil_input_name(raw, 1), nullptr);
    EXPECT_EQ(cuvil_output_name(raw, -1), nullptr);

    auto x = counting<float>({2, 4});
    EXPECT_EQ(run_scale(raw, x.value()), (std::vector<float>{10, 22, 34, 46, 18, 30, 42, 54}));
    auto none = counting<float>({0, 4});
    EXPECT_EQ(run_scale(raw, none.value()), std::vector<float>{});
}

TEST(Loader, ANegativeNumberOfThreadsIsRefused) {
    const std::string bytes = module_bytes("scale");
    cuvil_module* module = nullptr;
    EXPECT_EQ(cuvil_load_memory(bytes.data(), bytes.size(), -1, &module), CUVIL_ERROR_FILE);
    EXPECT_EQ(message(), "the number of threads is negative: 0 stands for all");
}

TEST(Loader, WritesGivenOutputs) {
    const ModulePointer module = load(module_bytes("scale"));
    auto x = counting<float>({2, 4});
    Tensor<float> y{{2, 4}, std::vector<float>(8, -1)};
    Tensor<int32_t> level{{}, {0}};
    cuvil_value in = x.value(), out[2] = {y.value(), level.value()};
    ASSERT_EQ(cuvil_run(module.get(), &in, out), CUVIL_OK) << message();
    EXPECT_EQ(y.data, (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14}));
    EXPECT_EQ(out[0].owner, nullptr);
    EXPECT_EQ("v" + std::to_string(level.data[0]), cuvil_level_name(module.get()));
}

TEST(Loader, AnOutputMayLieOverAnInput) {
    const ModulePointer module = load(module_bytes("pick"));
    // y is written over the index from its start: without a copy the later indices would be read as floats.
    std::vector<int64_t> index = {3, 2, 1, 0};
    Tensor<float> table{{4}, {0, 10, 20, 30}};
    Tensor<int64_t> unused{{4}, index};
    cuvil_value in[4] = {table.value(), unused.value(), {}, {}};
    in[1].as.tensor.data = index.data();
    cuvil_value out = table.value();
    int64_t shape = 4;
    out.as.tensor.shape = &shape;
    out.as.tensor.data = index.data();
    ASSERT_EQ(cuvil_run(module.get(), in, &out), CUVIL_OK) << message();
    const float* y = reinterpret_cast<const float*>(index.data());
    EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{30, 20, 10, 0}));
}

TEST(Loader, InputsMayHaveAnyStrides) {
    const ModulePointer module = load(module_bytes("scale"));
    auto x = counting<float>({4, 4});
    auto with = [&](std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t first) {
        Tensor<float> view{std::move(shape), {}, std::move(strides)};
        cuvil_value value = view.value();
        value.as.tensor.data = x.data.data();
        value.as.tensor.byte_offset = first * sizeof(float);
        return run_scale(module.get(), value);
    };
    EXPECT_EQ(with({2, 4}, {4, 1}, 4), (std::vector<float>{8, 10, 12, 14, 16, 18, 20, 22}));     // rows 1 and 2
    EXPECT_EQ(with({2, 4}, {1, 4}, 0), (std::vector<float>{0, 8, 16, 24, 2, 10, 18, 26}));       // transposed
    EXPECT_EQ(with({2, 4}, {-4, -1}, 15), (std::vector<float>{30, 28, 26, 24, 22, 20, 18, 16})); // reversed
    EXPECT_EQ(with({2, 4}, {0, 1}, 0), (std::vector<float>{0, 2, 4, 6, 0, 2, 4, 6}));            // broadcast
    EXPECT_EQ(with({1, 4}, {999, 1}, 4), (std::vector<float>{8, 10, 12, 14}));                   // an axis of size 1
    EXPECT_EQ(with({0, 4}, {7, 7}, 0), std::vector<float>{});
    EXPECT_EQ(x.data, counting<float>({4, 4}).data) << "inputs are never written";

    std::vector<char> bytes(1 + 4 * sizeof(float)); // elements at odd addresses
    memcpy(bytes.data() + 1, x.data.data(), 4 * sizeof(float));
    Tensor<float> odd{{1, 4}, {}};
    cuvil_value value = odd.value();
    value.as.tensor.data = bytes.data() + 1;
    EXPECT_EQ(run_scale(module.get(), value), (std::vector<float>{0, 2, 4, 6}));
}

TEST(Loader, WrongInputsAreSentences) {
    const ModulePointer module = load(module_bytes("scale"));
    cuvil_value out[2] = {};
    auto error = [&](int32_t status, cuvil_value in) {
        EXPECT_EQ(cuvil_run(module.get(), &in, out), status);
        EXPECT_EQ(out[0].tag, CUVIL_NONE);
        return message();
    };
    Tensor<float> wrong_size = counting<float>({3, 63}), wrong_rank = counting<float>({4});
    Tensor<double> doubles = counting<double>({3, 4});
    EXPECT_EQ(error(CUVIL_ERROR_SHAPE, wrong_size.value()), "input 'x' has shape [3,63], expected [N,4]");
    EXPECT_EQ(error(CUVIL_ERROR_SHAPE, wrong_rank.value()), "input 'x' has shape [4], expected [N,4]");
    EXPECT_EQ(error(CUVIL_ERROR_TYPE, doubles.value()), "input 'x' is f64, expected f32");
    EXPECT_EQ(error(CUVIL_ERROR_NAME, {}), "input 'x' is missing");

    auto x = counting<float>({3, 4});
    cuvil_value value = x.value();
    value.tag = CUVIL_LIST;
    EXPECT_EQ(error(CUVIL_ERROR_TYPE, value), "input 'x' is a list, expected a tensor");
    value.tag = 77;
    EXPECT_EQ(error(CUVIL_ERROR_TYPE, value), "input 'x' is of no known kind, expected a tensor");
    value = x.value();
    value.as.tensor.device_type = 2;
    EXPECT_EQ(error(CUVIL_ERROR_TYPE, value), "input 'x' is not in the CPU's memory: DLPack device type 2");
    value = x.value();
    value.as.tensor.data = nullptr;
    EXPECT_EQ(error(CUVIL_ERROR_TYPE, value), "input 'x' has no data");
    value = x.value();
    int64_t negative[] = {-1, 4}, enormous[] = {int64_t{1} << 61, 4};
    value.as.tensor.shape = negative;
    EXPECT_EQ(error(CUVIL_ERROR_SHAPE, value), "input 'x' has shape [-1,4], expected [N,4]");
    value.as.tensor.shape = enormous;
    EXPECT_EQ(error(CUVIL_ERROR_SHAPE, value),
              "input 'x' has shape [2305843009213693952,4], more than memory can hold");
    EXPECT_EQ(cuvil_run(module.get(), nullptr, out), CUVIL_ERROR_NAME);
}

TEST(Loader, WrongOutputsAreSentences) {
    const ModulePointer module = load(module_bytes("scale"));
    auto x = counting<float>({2, 4});
    const cuvil_value in = x.value();
    auto error = [&](int32_t status, cuvil_value y) {
        cuvil_value out[2] = {y, {}};
        EXPECT_EQ(cuvil_run(module.get(), &in, out), status);
        return message();
    };
    auto wrong = counting<float>({3, 4}), y = counting<float>({2, 4});
    auto wrong_type = counting<int32_t>({2, 4});
    EXPECT_EQ(error(CUVIL_ERROR_SHAPE, wrong.value()), "output 'y' has shape [3,4], expected [2,4]");
    EXPECT_EQ(error(CUVIL_ERROR_TYPE, wrong_type.value()), "output 'y' is i32, expected f32");
    y.strides = {8, 1};
    EXPECT_EQ(error(CUVIL_ERROR_SHAPE, y.value()), "output 'y' must be row-major without gaps");
}

TEST(Loader, SymbolsMustAgree) {
    const ModulePointer module = load(module_bytes("pick"));
    auto table = counting<float>({5}), added = counting<float>({7}), same = counting<float>({5, 2});
    Tensor<int64_t> index{{2}, {4, 0}};
    cuvil_value out{};
    auto run = [&](cuvil_value third, cuvil_value fourth) {
        const cuvil_value in[] = {table.value(), index.value(), third, fourth};
        return cuvil_run(module.get(), in, &out);
    };
    ASSERT_EQ(run({}, {}), CUVIL_OK) << message();
    EXPECT_EQ(elements<float>(out), (std::vector<float>{4, 0}));
    cuvil_value_release(&out);
    ASSERT_EQ(run(added.value(), same.value()), CUVIL_OK) << message();
    EXPECT_EQ(elements<float>(out), (std::vector<float>{4, 1}));
    cuvil_value_release(&out);

    auto short_added = counting<float>({6}), other = counting<float>({4, 2});
    EXPECT_EQ(run(short_added.value(), {}), CUVIL_ERROR_SHAPE);
    EXPECT_EQ(message(), "input 'added' has shape [6], expected [N+M] with N+M = 7");
    EXPECT_EQ(run({}, other.value()), CUVIL_ERROR_SHAPE);
    EXPECT_EQ(message(), "input 'same' has shape [4,2], expected [N,2] with N = 5 from input 'table'");

    index.data = {4, 5};
    EXPECT_EQ(run({}, {}), CUVIL_ERROR_MODEL);
    EXPECT_EQ(message(), "index 5 is out of range for axis 0 of size 5 (in 'gather_1')");
    EXPECT_EQ(out.tag, CUVIL_NONE);
}

TEST(Loader, ModulesAllocateWhatTheyAloneKnow) {
    const ModulePointer module = load(module_bytes("nonzero"));
    Tensor<int64_t> x{{5}, {0, 3, 0, 1, 9}};
    cuvil_value in = x.value(), out[2] = {};
    ASSERT_EQ(cuvil_run(module.get(), &in, out), CUVIL_OK) << message();
    EXPECT_EQ(elements<int64_t>(out[0]), (std::vector<int64_t>{1, 3, 4}));
    ASSERT_EQ(out[1].tag, CUVIL_LIST);
    ASSERT_EQ(out[1].as.list.count, 3);
    EXPECT_EQ(elements<int64_t>(out[1].as.list.items[2]), std::vector<int64_t>{4});
    for (cuvil_value& value : out) cuvil_value_release(&value);

    x.data = {0, 3, -8, 1, 9}; // fails half-way: what was built is given back
    EXPECT_EQ(cuvil_run(module.get(), &in, out), CUVIL_ERROR_MODEL);
    EXPECT_EQ(message(), "-8 is negative");
    EXPECT_EQ(out[1].tag, CUVIL_NONE);

    out[0] = x.value();
    EXPECT_EQ(cuvil_run(module.get(), &in, out), CUVIL_ERROR_TYPE);
    EXPECT_EQ(message(), "output 'y' is a tensor whose size is known only after the run: leave it to the module");
}

TEST(Loader, Strings) {
    const ModulePointer module = load(module_bytes("upper"));
    int64_t offsets[] = {0, 3, 3, 8}, shape[] = {3};
    char text[] = "onethree";
    cuvil_value in{}, out{};
    in.tag = CUVIL_STRINGS;
    in.as.strings = {offsets, text, 1, shape};
    ASSERT_EQ(cuvil_run(module.get(), &in, &out), CUVIL_OK) << message();
    ASSERT_EQ(out.tag, CUVIL_STRINGS);
    const cuvil_strings& y = out.as.strings;
    EXPECT_EQ(std::string(y.bytes + y.offsets[0], y.bytes + y.offsets[3]), "ONETHREE");
    EXPECT_EQ(y.shape[0], 3);
    cuvil_value_release(&out);

    offsets[1] = 9;
    EXPECT_EQ(cuvil_run(module.get(), &in, &out), CUVIL_ERROR_TYPE);
    EXPECT_EQ(message(), "input 'x' has offsets that fall at element 2");
    auto tensor = counting<float>({3});
    in = tensor.value();
    EXPECT_EQ(cuvil_run(module.get(), &in, &out), CUVIL_ERROR_TYPE);
    EXPECT_EQ(message(), "input 'x' is a tensor, expected a string tensor");
}

TEST(Loader, MemoryThatIsNotThereIsASentence) {
    const ModulePointer module = load(module_bytes("huge"));
    auto none = counting<float>({0}), one = counting<float>({1});
    cuvil_value in = none.value();
    EXPECT_EQ(cuvil_run(module.get(), &in, nullptr), CUVIL_ERROR_MEMORY);
    EXPECT_EQ(message(), "the workspace for these shapes is larger than any memory");
    if (is_sanitized) return;
    in = one.value();
    EXPECT_EQ(cuvil_run(module.get(), &in, nullptr), CUVIL_ERROR_MEMORY);
    EXPECT_EQ(message(), "out of memory: the workspace for these shapes has 1152921504606846976 bytes");
}

TEST(Loader, FilesThatAreNoModulesAreSentences) {
    const TemporaryFolder folder;
    EXPECT_EQ(load_error(folder.file("absent")),
              "cannot open '" + folder.file("absent") + "': No such file or directory");
    EXPECT_EQ(load_error(folder.path()), "'" + folder.path().string() + "' is a directory");
    EXPECT_EQ(load_error(folder.write("t", "text")),
              "'" + folder.file("t") + "' is not a Cuvil module: it does not start with an ELF header");
    EXPECT_EQ(load_error(folder.write("f", module_bytes("future"))),
              "'" + folder.file("f") + "' has version 2 of Cuvil's interface; this loader knows versions up to 1");
    const std::string good = module_bytes("scale");
    EXPECT_NE(load_error(folder.write("cut", good.substr(0, good.size() - 1))).find("is truncated"), std::string::npos);
    cuvil_module* module = nullptr;
    EXPECT_EQ(cuvil_load_memory(nullptr, 0, 1, &module), CUVIL_ERROR_FILE);
    EXPECT_EQ(message(), "the module in memory is empty");
    EXPECT_EQ(cuvil_load(nullptr, 1, &module), CUVIL_ERROR_FILE);

    const MappedFile object(object_path("scale"));
    auto with_manifest = [&](const std::string& manifest) {
        return load_error(folder.write("m", artifact_bytes({object.text(), manifest, {}, {}})));
    };
    EXPECT_NE(with_manifest("{").find("the manifest of '" + folder.file("m") + "' cannot be read"), std::string::npos);
    EXPECT_NE(with_manifest(manifest_of("pick")).find("do not belong together"), std::string::npos);
    EXPECT_NE(with_manifest(manifest_of("scale", 64)).find("has 0 bytes of weights, its manifest says 64"),
              std::string::npos);
}

TEST(Loader, TheLevelCanBeForced) {
    const std::string bytes = module_bytes("scale");
    for (std::string_view name : rt::cpu_levels()) {
        setenv("CUVIL_ISA", std::string(name).c_str(), 1);
        const ModulePointer module = load(bytes);
        EXPECT_EQ(cuvil_level_name(module.get()), name);
        auto x = counting<float>({1, 4});
        Tensor<int32_t> level{{}, {0}};
        cuvil_value in = x.value(), out[2] = {{}, level.value()};
        ASSERT_EQ(cuvil_run(module.get(), &in, out), CUVIL_OK) << message();
        EXPECT_EQ("v" + std::to_string(level.data[0]), name);
        cuvil_value_release(&out[0]);
    }
    setenv("CUVIL_ISA", "v9", 1);
    cuvil_module* module = nullptr;
    EXPECT_EQ(cuvil_load_memory(bytes.data(), bytes.size(), 1, &module), CUVIL_ERROR_FILE);
    EXPECT_EQ(message(), "CUVIL_ISA asks for level v9, the module in memory has v2, v3 and v4");
    unsetenv("CUVIL_ISA");
    EXPECT_EQ(cuvil_level_name(load(bytes).get()), rt::cpu_levels().back());
}

TEST(Loader, AReplacedFileIsTheNewOne) {
    // Names and descriptor numbers come back; the code behind them must not.
    const TemporaryFolder folder;
    const std::string path = folder.write("m.cuvil", module_bytes("scale"));
    auto open = [&] {
        cuvil_module* module = nullptr;
        EXPECT_EQ(cuvil_load(path.c_str(), 1, &module), CUVIL_OK) << message();
        return ModulePointer(module);
    };
    const ModulePointer first = open();
    const ModulePointer second = open(); // the same file twice
    std::filesystem::rename(folder.write("new", module_bytes("pick")), path);
    const ModulePointer third = open();
    EXPECT_STREQ(cuvil_input_name(first.get(), 0), "x");
    EXPECT_STREQ(cuvil_input_name(third.get(), 0), "table");

    Tensor<float> table{{2}, {5, 6}};
    Tensor<int64_t> index{{1}, {1}};
    const cuvil_value in[] = {table.value(), index.value(), {}, {}};
    cuvil_value out{};
    ASSERT_EQ(cuvil_run(third.get(), in, &out), CUVIL_OK) << message();
    EXPECT_EQ(elements<float>(out), std::vector<float>{6});
    cuvil_value_release(&out);
    auto x = counting<float>({1, 4});
    EXPECT_EQ(run_scale(first.get(), x.value()), (std::vector<float>{0, 2, 4, 6}));
    EXPECT_EQ(run_scale(second.get(), x.value()), (std::vector<float>{0, 2, 4, 6}));
}

TEST(Loader, AllThreadCountsGiveTheSameBits) {
    const std::string bytes = module_bytes("steps");
    auto x = counting<int64_t>({1000});
    std::vector<int64_t> expected;
    for (int32_t threads : {1, 2, 3, 7}) {
        const ModulePointer module = load(bytes, threads);
        Tensor<int64_t> count{{}, {50}};
        const cuvil_value in[] = {x.value(), count.value()};
        cuvil_value out{};
        ASSERT_EQ(cuvil_run(module.get(), in, &out), CUVIL_OK) << message();
        if (expected.empty()) expected = elements<int64_t>(out);
        EXPECT_EQ(elements<int64_t>(out), expected) << threads;
        cuvil_value_release(&out);
    }
}

TEST(Loader, EightThreadsRunOneModuleAtOnce) {
    const ModulePointer steps = load(module_bytes("steps"), 3), scale = load(module_bytes("scale"), 2);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++)
        threads.emplace_back([&, t] {
            for (int round = 0; round < 100; round++) {
                Tensor<int64_t> x{{64}, std::vector<int64_t>(64, t)}, count{{}, {3}};
                const cuvil_value in[] = {x.value(), count.value()};
                cuvil_value out{};
                if (cuvil_run(steps.get(), in, &out) != CUVIL_OK) {
                    wrong++;
                    continue;
                }
                const std::vector<int64_t> y = elements<int64_t>(out);
                for (int64_t i = 0; i < 64; i++) wrong += y[i] != 27 * t + 13 * i;
                cuvil_value_release(&out);
                auto rows = counting<float>({1 + round % 5, 4});
                wrong += run_scale(scale.get(), rows.value()).size() != rows.data.size();
                auto bad = counting<float>({t + 5});
                cuvil_value bad_in = bad.value(), none[2] = {};
                cuvil_run(scale.get(), &bad_in, none);
                wrong += message() != "input 'x' has shape [" + std::to_string(t + 5) + "], expected [N,4]";
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

int64_t resident_kilobytes() {
    std::ifstream file("/proc/self/statm");
    int64_t total = 0, resident = 0;
    file >> total >> resident;
    return resident * 4;
}

TEST(Loader, ARunIsTracedAndCancelled) {
    const ModulePointer module = load(module_bytes("steps"), 2);
    auto x = counting<int64_t>({3});
    Tensor<int64_t> count{{}, {4}};
    const cuvil_value in[2] = {x.value(), count.value()};
    const auto run = [&](const cuvil_run_options* options) {
        cuvil_value out{};
        const int32_t status = cuvil_run_with(module.get(), in, &out, options);
        EXPECT_EQ(out.tag == CUVIL_NONE, status != CUVIL_OK);
        cuvil_value_release(&out);
        return status;
    };
    struct Seen {
        std::vector<std::pair<int32_t, int32_t>> steps;
        int pieces = 0;
        int32_t cancel = 0;
    } seen;
    cuvil_run_options options{};
    options.size = sizeof options;
    options.cancel = &seen.cancel;
    options.context = &seen;
    options.trace = [](void* context, int32_t step, int32_t is_end) {
        Seen& seen = *static_cast<Seen*>(context);
        if (step < 0) seen.pieces++;
        if (step >= 0) seen.steps.emplace_back(step, is_end);
    };
    EXPECT_EQ(run(&options), CUVIL_OK) << message();
    EXPECT_EQ(seen.steps.size(), 8u);
    EXPECT_EQ(seen.steps.front(), std::make_pair(0, 0));
    EXPECT_EQ(seen.steps.back(), std::make_pair(3, 1));
    EXPECT_GT(seen.pieces, 0);

    seen = {};
    options.trace = [](void* context, int32_t step, int32_t) { static_cast<Seen*>(context)->cancel = step == 1; };
    EXPECT_EQ(run(&options), CUVIL_ERROR_CANCELLED);
    EXPECT_EQ(message(), "the run was cancelled");
    options.trace = nullptr;
    seen.cancel = 0;
    EXPECT_EQ(run(&options), CUVIL_OK);
    EXPECT_EQ(run(nullptr), CUVIL_OK);
    options.size = sizeof options.size; // a caller that knows none of the fields
    seen.cancel = 1;
    EXPECT_EQ(run(&options), CUVIL_OK);
}

TEST(Loader, LoadingAndUnloadingGivesEverythingBack) {
    const TemporaryFolder folder;
    const std::string path = folder.write("m.cuvil", module_bytes("scale", std::vector<float>(1 << 20, 1.0f)));
    auto x = counting<float>({1000, 4});
    auto count_entries = [](const char* name) {
        std::filesystem::directory_iterator entries(name), end;
        return std::distance(entries, end);
    };
    auto round = [&] {
        cuvil_module* module = nullptr;
        ASSERT_EQ(cuvil_load(path.c_str(), 2, &module), CUVIL_OK) << message();
        EXPECT_EQ(run_scale(module, x.value()).size(), 4000u);
        cuvil_unload(module);
    };
    for (int i = 0; i < 20; i++) round();
    const int64_t before = resident_kilobytes();
    const auto descriptors = count_entries("/proc/self/fd");
    for (int i = 0; i < 300; i++) round();
    if (!is_sanitized) {
        EXPECT_LT(resident_kilobytes() - before, 8 << 10);
        EXPECT_EQ(count_entries("/proc/self/task"), 1);
    }
    EXPECT_EQ(count_entries("/proc/self/fd"), descriptors);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find("m.cuvil"), std::string::npos) << line;
}

} // namespace
} // namespace cuvil::test
