// Types of values: tensors with dimensions, and the few other kinds that models hold.
#pragma once

#include "ir/dim.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

enum class DType : uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool, String, C64, C128 };

// "f32", "bool", "str", ...
std::string_view name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
// Bytes of one element in memory; 0 for strings.
size_t size_of(DType dtype);
// The C++ type of the kernels: "f32", "i64", "bool", ...
std::string_view cxx_name(DType dtype);

inline bool is_floating(DType t) { return t <= DType::BF16; }
inline bool is_signed_integer(DType t) { return t >= DType::I64 && t <= DType::I8; }
inline bool is_unsigned_integer(DType t) { return t >= DType::U64 && t <= DType::U8; }
inline bool is_integer(DType t) { return t >= DType::I64 && t <= DType::U8; }

// How a tensor lies in memory. Plain (row-major) everywhere until planning.
struct Layout {
    // Plain; Blocked: f32 [N][ceil(C/16)][top+H+bottom][left+W+right][16]; Padded: [N][C][top+H+bottom][left+W+right];
    // Phased: Blocked, of an image whose 4 C channels are the four pixels (2 y, 2 x) to (2 y + 1, 2 x + 1) of each.
    // Halo and lanes beyond C hold 0.
    enum Kind { Plain, Blocked, Padded, Phased } kind = Plain;
    Dim top, left, bottom, right;

    bool is_plain() const { return kind == Plain; }
    bool operator==(const Layout&) const = default;
};
// "blocked", "padded", "phased"; none for the plain one.
std::string_view name(Layout::Kind kind);
std::optional<Layout::Kind> layout_kind(std::string_view name);

class Type {
public:
    enum class Kind : uint8_t { None, Tensor, Scalar, String, List, Tuple, Optional, Object };

    Type() = default;
    static Type tensor(DType dtype, Shape shape);
    static Type tensor_of_unknown_rank(DType dtype);
    static Type scalar(DType dtype);
    static Type string();
    static Type list(Type element);
    static Type tuple(std::vector<Type> elements);
    static Type optional(Type element);
    static Type object(std::string class_name);

    Kind kind() const { return kind_; }
    bool is_tensor() const { return kind_ == Kind::Tensor; }
    bool has_rank() const { return is_tensor() && has_rank_; }

    // Tensors (and scalars: dtype only). Asking others is a bug.
    DType dtype() const;
    const Shape& shape() const;
    int64_t rank() const { return static_cast<int64_t>(shape().size()); }
    const Dim& dim(int64_t axis) const; // negative axes count from the end
    const Layout& layout() const { return layout_; }
    const std::vector<Type>& elements() const { return elements_; } // list: 1, tuple: n, optional: 1
    const std::string& class_name() const { return class_name_; }

    Type with_dtype(DType dtype) const;
    Type with_shape(Shape shape) const;
    Type with_layout(Layout layout) const;

    // Bytes in memory, layout included.
    Dim bytes() const;
    // "f32[N,3,8,8]", "list<i64[2]>", "f32[1,64,56,56]{blocked, halo=[1,1,1,1]}"
    std::string text() const;
    bool operator==(const Type&) const = default;

private:
    Kind kind_ = Kind::None;
    DType dtype_ = DType::F32;
    bool has_rank_ = true;
    Shape shape_;
    Layout layout_;
    std::vector<Type> elements_;
    std::string class_name_;
};

} // namespace cuvil
