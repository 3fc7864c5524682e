#include "ir/type.hpp"

#include "support/diagnostics.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace cuvil {
namespace {

struct DTypeRow {
    std::string_view name;
    size_t size;
    std::string_view cxx;
};

// In the order of their enumeration.
constexpr std::string_view layout_names[] = {"", "blocked", "padded", "phased"};

// In the order of the enumeration.
constexpr std::array<DTypeRow, 16> dtypes = {{
    {"f64", 8, "f64"},
    {"f32", 4, "f32"},
    {"f16", 2, "f16"},
    {"bf16", 2, "bf16"},
    {"i64", 8, "i64"},
    {"i32", 4, "i32"},
    {"i16", 2, "i16"},
    {"i8", 1, "i8"},
    {"u64", 8, "u64"},
    {"u32", 4, "u32"},
    {"u16", 2, "u16"},
    {"u8", 1, "u8"},
    {"bool", 1, "bool"},
    {"str", 0, ""},
    {"c64", 8, ""},
    {"c128", 16, ""},
}};

} // namespace

std::string_view name(DType dtype) { return dtypes[static_cast<size_t>(dtype)].name; }
size_t size_of(DType dtype) { return dtypes[static_cast<size_t>(dtype)].size; }
std::string_view cxx_name(DType dtype) { return dtypes[static_cast<size_t>(dtype)].cxx; }

std::optional<DType> dtype_from_name(std::string_view name) {
    for (size_t i = 0; i < dtypes.size(); i++)
        if (dtypes[i].name == name) return static_cast<DType>(i);
    return std::nullopt;
}

Type Type::tensor(DType dtype, Shape shape) {
    Type t;
    t.kind_ = Kind::Tensor;
    t.dtype_ = dtype;
    t.shape_ = std::move(shape);
    return t;
}

Type Type::tensor_of_unknown_rank(DType dtype) {
    Type t = tensor(dtype, {});
    t.has_rank_ = false;
    return t;
}

Type Type::scalar(DType dtype) {
    Type t;
    t.kind_ = Kind::Scalar;
    t.dtype_ = dtype;
    return t;
}

Type Type::string() {
    Type t;
    t.kind_ = Kind::String;
    t.dtype_ = DType::String;
    return t;
}

Type Type::list(Type element) {
    Type t;
    t.kind_ = Kind::List;
    t.elements_.push_back(std::move(element));
    return t;
}

Type Type::tuple(std::vector<Type> elements) {
    Type t;
    t.kind_ = Kind::Tuple;
    t.elements_ = std::move(elements);
    return t;
}

Type Type::optional(Type element) {
    Type t;
    t.kind_ = Kind::Optional;
    t.elements_.push_back(std::move(element));
    return t;
}

Type Type::object(std::string class_name) {
    Type t;
    t.kind_ = Kind::Object;
    t.class_name_ = std::move(class_name);
    return t;
}

DType Type::dtype() const {
    CUVIL_ASSERT(kind_ == Kind::Tensor || kind_ == Kind::Scalar, "dtype of " + text());
    return dtype_;
}

const Shape& Type::shape() const {
    CUVIL_ASSERT(has_rank(), "shape of " + text());
    return shape_;
}

const Dim& Type::dim(int64_t axis) const {
    if (axis < 0) axis += rank();
    CUVIL_ASSERT(axis >= 0 && axis < rank(), "no such axis in " + text());
    return shape_[static_cast<size_t>(axis)];
}

Type Type::with_dtype(DType dtype) const {
    Type t = *this;
    t.dtype_ = dtype;
    return t;
}

Type Type::with_shape(Shape shape) const {
    Type t = *this;
    t.shape_ = std::move(shape);
    t.has_rank_ = true;
    return t;
}

std::string_view name(Layout::Kind kind) { return layout_names[kind]; }

std::optional<Layout::Kind> layout_kind(std::string_view name) {
    const auto* found = std::find(std::begin(layout_names) + Layout::Blocked, std::end(layout_names), name);
    if (found == std::end(layout_names)) return std::nullopt;
    return static_cast<Layout::Kind>(found - std::begin(layout_names));
}

Type Type::with_layout(Layout layout) const {
    Type t = *this;
    t.layout_ = std::move(layout);
    return t;
}

Dim Type::bytes() const {
    Dim element = static_cast<int64_t>(size_of(dtype()));
    if (layout_.is_plain()) return element_count(shape()) * element;
    CUVIL_ASSERT(rank() == 4, "layout of a tensor that is not an image");
    const bool is_phased = layout_.kind == Layout::Phased;
    Dim channels = is_phased ? dim(1) * 4 : dim(1);
    if (layout_.kind != Layout::Padded) channels = Dim::ceildiv(channels, 16) * 16;
    Dim h = is_phased ? Dim::ceildiv(dim(2), 2) : dim(2), w = is_phased ? Dim::ceildiv(dim(3), 2) : dim(3);
    return dim(0) * channels * (layout_.top + h + layout_.bottom) * (layout_.left + w + layout_.right) * element;
}

std::string Type::text() const {
    auto joined = [&] {
        std::string out;
        for (size_t i = 0; i < elements_.size(); i++) out += (i ? ", " : "") + elements_[i].text();
        return out;
    };
    switch (kind_) {
    case Kind::None: return "none";
    case Kind::Scalar: return std::string(name(dtype_));
    case Kind::String: return "str";
    case Kind::List: return "list<" + joined() + ">";
    case Kind::Tuple: return "tuple<" + joined() + ">";
    case Kind::Optional: return "optional<" + joined() + ">";
    case Kind::Object: return "object<" + quoted(class_name_) + ">";
    case Kind::Tensor: break;
    }
    std::string out = std::string(name(dtype_)) + (has_rank_ ? cuvil::text(shape_) : "[*]");
    if (!layout_.is_plain())
        out += "{" + std::string(name(layout_.kind)) +
               ", halo=" + cuvil::text(Shape{layout_.top, layout_.left, layout_.bottom, layout_.right}) + "}";
    return out;
}

} // namespace cuvil
