#include "optimize/constants.hpp"

#include <algorithm>
#include <cstring>

namespace cuvil {
namespace {

template <class T> std::string bytes_of(T value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

// Small whole numbers only, so every dtype holds them.
std::optional<std::string> encode(double number, DType dtype) {
    if (dtype == DType::F64) return bytes_of(number);
    if (dtype == DType::F32) return bytes_of(static_cast<float>(number));
    if (!is_integer(dtype)) return std::nullopt;
    return bytes_of(static_cast<int64_t>(number)).substr(0, size_of(dtype)); // little-endian
}

template <class T> std::vector<double> decode(std::span<const std::byte> bytes) {
    std::vector<double> elements(bytes.size() / sizeof(T));
    for (size_t i = 0; i < elements.size(); i++) {
        T element;
        std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
        elements[i] = element;
    }
    return elements;
}

} // namespace

const Value& behind_broadcast(const Value& value) {
    const OpNode* producer = value.producer();
    return producer && producer->op() == "broadcast" ? *producer->operand(0) : value;
}

bool is_filled_with(const Program& program, const Value& value, double number) {
    const Value& constant = behind_broadcast(value);
    auto bytes = constant_bytes(program, constant);
    if (!bytes || bytes->empty() || !constant.type().is_tensor()) return false;
    auto pattern = encode(number, constant.type().dtype());
    if (!pattern) return false;
    for (size_t at = 0; at < bytes->size(); at += pattern->size())
        if (std::memcmp(bytes->data() + at, pattern->data(), pattern->size()) != 0) return false;
    return true;
}

std::optional<std::vector<double>> constant_floats(const Program& program, const Value& value) {
    auto bytes = constant_bytes(program, value);
    if (!bytes || !value.type().is_tensor()) return std::nullopt;
    if (value.type().dtype() == DType::F32) return decode<float>(*bytes);
    if (value.type().dtype() == DType::F64) return decode<double>(*bytes);
    return std::nullopt;
}

std::optional<int64_t> constant_integer(const Program& program, const Value& value, int64_t at) {
    auto bytes = constant_bytes(program, value);
    DType dtype = value.type().is_tensor() ? value.type().dtype() : DType::Bool;
    if (!bytes || (dtype != DType::I64 && dtype != DType::I32)) return std::nullopt;
    return integer_at(bytes->data(), dtype, at);
}

std::optional<double> only_number(const Program& program, const Value& value) {
    auto elements = constant_floats(program, behind_broadcast(value));
    if (!elements || elements->empty()) return std::nullopt;
    bool is_one_number = std::ranges::all_of(*elements, [&](double e) { return e == elements->front(); });
    return is_one_number ? std::optional(elements->front()) : std::nullopt;
}

std::string float_bytes(std::span<const double> elements, DType dtype) {
    std::string bytes;
    bytes.reserve(elements.size() * size_of(dtype));
    for (double element : elements)
        bytes += dtype == DType::F64 ? bytes_of(element) : bytes_of(static_cast<float>(element));
    return bytes;
}

Value* number_of(Rewriter& rewriter, DType dtype, double number) {
    auto bytes = encode(number, dtype);
    return bytes ? &rewriter.constant(Type::tensor(dtype, {}), std::move(*bytes)) : nullptr;
}

std::string folded_name(const Value& from) {
    const OpNode* producer = from.producer();
    const std::string& name = producer && producer->op() == "weight" ? producer->get<std::string>("name") : from.name();
    return (name.empty() ? "constant" : name) + "/folded";
}

} // namespace cuvil
