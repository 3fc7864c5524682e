// Attributes of a node: compile-time values whose kind the op's record declares.
#pragma once

#include "ir/type.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cuvil {

// Row-major element bytes of a constant; its dtype and shape are those of the node's result. Strings: each element is
// a 64-bit length followed by its bytes.
struct Data {
    std::shared_ptr<const std::string> bytes;
    bool operator==(const Data& other) const { return *bytes == *other.bytes; }
};

enum class AttributeKind { Int, Float, Bool, String, DType, Ints, Floats, Strings, Dims, Data };

// In the order of AttributeKind.
using Attribute = std::variant<int64_t, double, bool, std::string, DType, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Shape, Data>;

inline AttributeKind kind_of(const Attribute& a) { return static_cast<AttributeKind>(a.index()); }
std::string_view name(AttributeKind kind);

using Attributes = std::map<std::string, Attribute, std::less<>>;

} // namespace cuvil
