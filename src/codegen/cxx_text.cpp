#include "codegen/cxx_text.hpp"

#include "support/diagnostics.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cuvil {
namespace {

int symbol_index(const Plan& plan, const std::string& name) {
    auto found = plan.dim_index.find(Dim::symbol(name));
    CUVIL_ASSERT(found != plan.dim_index.end(), "the size '" + name + "' is bound by nothing");
    return found->second;
}

// The four operations that a size needs, as C++ in one of two dialects.
struct Dialect {
    std::string (*add)(const std::string&, const std::string&);
    std::string (*multiply)(const std::string&, const std::string&);
    std::string_view floordiv;
};

const Dialect plain = {
    [](const std::string& a, const std::string& b) {
        return b.starts_with('-') ? a + " - " + b.substr(1) : a + " + " + b;
    },
    [](const std::string& a, const std::string& b) { return a + " * " + b; },
    "floordiv",
};
const Dialect checked = {
    [](const std::string& a, const std::string& b) { return "sizes.add(" + a + ", " + b + ")"; },
    [](const std::string& a, const std::string& b) { return "sizes.mul(" + a + ", " + b + ")"; },
    "sizes.div",
};

std::string expression(const Plan& plan, const Dim& dim, const Dialect& dialect) {
    std::string sum;
    for (const DimTerm& term : dim.terms()) {
        std::string product;
        if (term.coefficient != 1 || term.atoms.empty()) product = std::to_string(term.coefficient);
        for (const DimAtom& atom : term.atoms) {
            std::string factor;
            if (atom.kind == DimAtom::Symbol) {
                factor = fmt::format("d[{}]", symbol_index(plan, atom.name));
            } else {
                std::string_view call = atom.kind == DimAtom::Min   ? "smaller"
                                        : atom.kind == DimAtom::Max ? "larger"
                                                                    : dialect.floordiv;
                factor = fmt::format("{}({}, {})", call, expression(plan, atom.args[0], dialect),
                                     expression(plan, atom.args[1], dialect));
            }
            product = product.empty() ? factor : dialect.multiply(product, factor);
        }
        sum = sum.empty() ? product : dialect.add(sum, product);
    }
    return sum.empty() ? "0" : sum;
}

template <class T> T read(std::span<const std::byte> bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

std::string float_text(std::string_view type, double value, uint64_t bits, std::string_view bits_type) {
    if (std::isnan(value)) return fmt::format("__builtin_bit_cast({}, {}({:#x}))", type, bits_type, bits);
    return fmt::format("{}({})", type, number_text(value));
}

} // namespace

void CxxText::paste(const std::string& lines) {
    for (size_t begin = 0; begin < lines.size();) {
        size_t end = std::min(lines.find('\n', begin), lines.size());
        line("{}", std::string_view(lines).substr(begin, end - begin));
        begin = end + 1;
    }
}

std::string size_text(const Plan& plan, const Dim& dim) { return expression(plan, dim, plain); }
std::string factor_text(const Plan& plan, const Dim& dim) {
    std::string text = size_text(plan, dim);
    return dim.terms().size() > 1 ? "(" + text + ")" : text;
}
std::string checked_size_text(const Plan& plan, const Dim& dim) { return expression(plan, dim, checked); }

std::string wrapping_size_text(const Plan& plan, const Dim& dim) {
    if (dim.constant() || dim.as_symbol()) return size_text(plan, dim);
    return fmt::format("[&] {{ CheckedSizes sizes; return {}; }}()", checked_size_text(plan, dim));
}

std::string block_bytes_text(const Plan& plan, const Dim& bytes) {
    if (bytes.constant()) return bytes.text();
    return fmt::format("[&] {{ CheckedSizes sizes; const i64 bytes = {}; return sizes.overflow ? -1 : bytes; }}()",
                       checked_size_text(plan, bytes));
}

std::string sizes_text(const Plan& plan, const Shape& shape) {
    std::string out = "{";
    for (size_t i = 0; i < shape.size(); i++) out += (i ? ", " : "") + size_text(plan, shape[i]);
    return out + "}";
}

std::string number_text(double value) {
    if (std::isnan(value)) return "__builtin_nan(\"\")";
    if (std::isinf(value)) return value < 0 ? "-__builtin_inf()" : "__builtin_inf()";
    return fmt::format("{:a}", value);
}

std::string literal_text(const Program& program, const Value& value) {
    auto found = constant_bytes(program, value);
    CUVIL_ASSERT(found && is_literal(value), "a literal of " + value.type().text());
    std::span<const std::byte> bytes = *found;
    switch (value.type().dtype()) {
    case DType::F32: return float_text("f32", read<float>(bytes), read<uint32_t>(bytes), "u32");
    case DType::F64: return float_text("f64", read<double>(bytes), read<uint64_t>(bytes), "u64");
    case DType::I64: {
        auto v = read<int64_t>(bytes);
        return v == INT64_MIN ? "i64(-9223372036854775807 - 1)" : fmt::format("i64({})", v);
    }
    case DType::I32: return fmt::format("i32({})", read<int32_t>(bytes));
    case DType::I16: return fmt::format("i16({})", read<int16_t>(bytes));
    case DType::I8: return fmt::format("i8({})", read<int8_t>(bytes));
    case DType::U64: return fmt::format("u64({}u)", read<uint64_t>(bytes));
    case DType::U32: return fmt::format("u32({}u)", read<uint32_t>(bytes));
    case DType::U16: return fmt::format("u16({})", read<uint16_t>(bytes));
    case DType::U8: return fmt::format("u8({})", read<uint8_t>(bytes));
    case DType::Bool: return fmt::format("u8({})", read<uint8_t>(bytes) != 0 ? 1 : 0);
    default: break;
    }
    CUVIL_ASSERT(false, "a literal of " + value.type().text());
}

std::string cxx_dtype(DType dtype) {
    int code = dtype == DType::Bool         ? 6
               : dtype == DType::BF16       ? 4
               : is_floating(dtype)         ? 2
               : is_unsigned_integer(dtype) ? 1
               : is_signed_integer(dtype)   ? 0
                                            : 5;
    return fmt::format("{{{}, {}, 1}}", code, size_of(dtype) * 8);
}

std::string harmless(std::string_view text) {
    std::string out;
    // The linker would read what follows an @ as a version.
    for (char c : text.substr(0, 200)) out += c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '@' ? c : '_';
    return out;
}

} // namespace cuvil
