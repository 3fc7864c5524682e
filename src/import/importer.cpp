#include "import/importer.hpp"

#include "import/onnx/onnx.hpp"
#include "ir/parser.hpp"
#include "ir/verifier.hpp"
#include "support/diagnostics.hpp"
#include "support/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>

namespace cuvil {
namespace {

struct Bytes {
    std::string_view bytes;
    std::shared_ptr<const void> storage;
};

// The program outlives the caller's bytes, so it takes a copy of them.
Bytes read(const Source& source, Diagnostics& diag) {
    if (source.bytes.data()) {
        auto copy = std::make_shared<const std::string>(source.bytes);
        return {*copy, copy};
    }
    auto file = open_named(source.path, diag);
    return {file->text(), file};
}

// The first word of the text that is not a comment is one that IR text starts with.
bool is_ir_text(std::string_view bytes, const std::filesystem::path& path) {
    if (path.extension() == ".cuir") return true;
    while (!bytes.empty()) {
        size_t start = bytes.find_first_not_of(" \t\r\n");
        if (start == std::string_view::npos) return false;
        bytes.remove_prefix(start);
        if (bytes[0] != '#') break;
        bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size()));
    }
    return std::ranges::any_of(std::array<std::string_view, 4>{"func @", "weight \"", "program \"", "metadata \""},
                               [&](std::string_view start) { return bytes.starts_with(start); });
}

// Numbers from -1/8 to 1/8 for f32 and f64, 0 to 3 for integers, the bits of 0 to 3 for all else, by a generator that
// starts from the name.
std::string made_up(const Weight& weight, int64_t bytes) {
    uint64_t state = content_hash(std::as_bytes(std::span(weight.name))).low;
    auto next = [&] {
        state = state * 6364136223846793005 + 1442695040888963407;
        return state >> 40; // 24 bits
    };
    std::string out(static_cast<size_t>(bytes), '\0');
    size_t size = size_of(weight.type.dtype());
    for (size_t at = 0; at + size <= out.size(); at += size) {
        double real = static_cast<double>(next()) / (1 << 26) - 0.125;
        auto single = static_cast<float>(real);
        auto integer = static_cast<uint64_t>(next() & (weight.type.dtype() == DType::Bool ? 1 : 3));
        const void* element = &integer;
        if (weight.type.dtype() == DType::F64) element = &real;
        if (weight.type.dtype() == DType::F32) element = &single;
        std::memcpy(out.data() + at, element, std::min(size, sizeof integer));
    }
    return out;
}

void fill_missing(Program& program) {
    std::vector<Weight> missing;
    for (const auto& [name, weight] : program.weights())
        if (weight.missing) missing.push_back(weight);
    for (const Weight& weight : missing) {
        auto bytes = weight.type.has_rank() ? weight.type.bytes().constant() : std::nullopt;
        if (!bytes || weight.type.dtype() == DType::String) continue;
        program.remove_weight(weight.name);
        program.add_weight(weight.name, weight.type, made_up(weight, *bytes));
    }
}

Program import_text(std::string_view text, const std::string& file, const CompileOptions& options, const OpTable& ops,
                    Diagnostics& diag) {
    if (!options.input_shapes.empty() || !options.dynamic_shapes.empty())
        diag.error("input-shape", "shapes of inputs cannot be given for IR text", {file, ""});
    std::optional<Program> program = parse(text, file, ops, diag);
    diag.stop_if_errors();
    if (options.fill_weights) fill_missing(*program);
    for (const std::string& broken : verify(*program)) diag.error("invalid-ir", broken, {file, ""});
    diag.stop_if_errors();
    return std::move(*program);
}

} // namespace

Program import_model(const Source& source, const CompileOptions& options, const OpTable& ops, Diagnostics& diag) {
    auto [bytes, storage] = read(source, diag);
    std::string file = source.path.filename().string();
    if (file.empty()) file = "model";
    if (bytes.empty()) diag.error("empty-file", "the file is empty", {file, ""});
    diag.stop_if_errors();

    std::optional<std::filesystem::path> folder;
    if (!source.bytes.data() || source.path.has_parent_path()) folder = source.path.parent_path();
    bool is_text = is_ir_text(bytes, source.path);
    Program program = is_text ? import_text(bytes, file, options, ops, diag)
                              : import_onnx(bytes, storage, file, folder, options, ops, diag);
    program.name = source.path.stem().empty() ? "model" : source.path.stem().string();
    if (std::vector<std::string> broken = verify(program); !broken.empty())
        throw InternalError("the imported program is broken: " + broken[0]);
    return program;
}

} // namespace cuvil
