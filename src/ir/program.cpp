#include "ir/program.hpp"

#include "support/diagnostics.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cctype>
#include <cstring>

namespace cuvil {

std::string Hash128::text() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 content_hash(std::span<const std::byte> bytes) {
    XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
    return {h.high64, h.low64};
}

FuncIR& Program::add_function(std::string name) {
    functions_.push_back(std::make_unique<FuncIR>(std::move(name)));
    return *functions_.back();
}

std::string Program::add_weight(std::string name, Type type, std::string bytes) {
    auto owner = std::make_shared<const std::string>(std::move(bytes));
    auto view = std::as_bytes(std::span(*owner));
    return add_weight(std::move(name), std::move(type), view, std::move(owner));
}

std::string Program::add_weight(std::string name, Type type, std::span<const std::byte> bytes,
                                std::shared_ptr<const void> storage) {
    std::string unique = name;
    for (int i = 1; weights_.contains(unique); i++) unique = fmt::format("{}_{}", name, i);
    weights_[unique] = {unique, std::move(type), content_hash(bytes), bytes, std::move(storage), false};
    return unique;
}

void Program::declare_weight(const std::string& name, Type type, Hash128 hash) {
    weights_[name] = {name, std::move(type), hash, {}, nullptr, true};
}

void Program::remove_weight(std::string_view name) {
    if (auto found = weights_.find(name); found != weights_.end()) weights_.erase(found);
}

std::string Program::fresh_symbol(std::string_view hint) {
    std::string base;
    for (char c : hint) base += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base.insert(0, "d");
    // Words of the grammar are no symbols.
    std::string unique = base == "min" || base == "max" || base == "floordiv" || base == "_" ? base + "_0" : base;
    for (int i = 1; symbols_.contains(unique); i++) unique = fmt::format("{}_{}", base, i);
    symbols_.insert(unique);
    return unique;
}

bool is_constant(const Value& value) {
    return value.producer() && (value.producer()->op() == "constant" || value.producer()->op() == "weight");
}

std::optional<std::span<const std::byte>> constant_bytes(const Program& program, const Value& value) {
    if (!is_constant(value)) return std::nullopt;
    const OpNode& node = *value.producer();
    if (node.op() == "constant") return std::as_bytes(std::span(*node.get<Data>("value").bytes));
    auto weight = program.weights().find(node.get<std::string>("name"));
    if (weight == program.weights().end() || weight->second.missing) return std::nullopt;
    return weight->second.bytes;
}

int64_t integer_at(const std::byte* elements, DType dtype, int64_t at) {
    const std::byte* element = elements + at * static_cast<int64_t>(size_of(dtype));
    if (dtype == DType::I32) {
        int32_t narrow = 0;
        std::memcpy(&narrow, element, sizeof narrow);
        return narrow;
    }
    int64_t wide = 0;
    std::memcpy(&wide, element, sizeof wide);
    return wide;
}

} // namespace cuvil
