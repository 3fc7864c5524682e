#include "attributes.hpp"

#include "errors.hpp"
#include "ir/parser.hpp"

#include <nanobind/stl/string.h>

namespace cuvil::python {
namespace {

nb::object numpy() { return nb::module_::import_("numpy"); }

// DType's name by NumPy's.
std::optional<DType> dtype_from_numpy(const std::string& name) {
    static constexpr std::pair<std::string_view, DType> names[] = {
        {"float64", DType::F64}, {"float32", DType::F32},   {"float16", DType::F16},     {"bfloat16", DType::BF16},
        {"int64", DType::I64},   {"int32", DType::I32},     {"int16", DType::I16},       {"int8", DType::I8},
        {"uint64", DType::U64},  {"uint32", DType::U32},    {"uint16", DType::U16},      {"uint8", DType::U8},
        {"bool", DType::Bool},   {"complex64", DType::C64}, {"complex128", DType::C128},
    };
    for (const auto& [known, dtype] : names)
        if (known == name) return dtype;
    return std::nullopt;
}

[[noreturn]] void wrong(nb::handle value, const AttributeDef& def) {
    const std::string text = "attribute '" + std::string(def.name) + "' is a " + std::string(name(def.kind)) +
                             ", not " + nb::cast<std::string>(nb::repr(value));
    raise(PyExc_TypeError, "%s", text.c_str());
}

int64_t integer_from(nb::handle value, const AttributeDef& def) {
    if (PyBool_Check(value.ptr())) wrong(value, def);
    const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        wrong(value, def);
    }
    const int64_t result = PyLong_AsLongLong(index.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    return result;
}

double float_from(nb::handle value, const AttributeDef& def) {
    const double result = PyFloat_AsDouble(value.ptr());
    if (!PyErr_Occurred()) return result;
    PyErr_Clear();
    wrong(value, def);
}

std::string string_from(nb::handle value, const AttributeDef& def) {
    if (PyBytes_Check(value.ptr()))
        return {PyBytes_AS_STRING(value.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(value.ptr()))};
    if (!PyUnicode_Check(value.ptr())) wrong(value, def);
    return nb::cast<std::string>(value);
}

template <class T, class Read> std::vector<T> list_from(nb::handle value, const AttributeDef& def, Read read) {
    if (PyUnicode_Check(value.ptr()) || !PyIter_Check(value.ptr())) {
        const nb::object iterator = nb::steal(PyUnicode_Check(value.ptr()) ? nullptr : PyObject_GetIter(value.ptr()));
        if (!iterator.is_valid()) {
            PyErr_Clear();
            wrong(value, def);
        }
    }
    std::vector<T> items;
    for (const nb::handle item : nb::borrow(value)) items.push_back(read(item));
    return items;
}

template <class List> nb::list list_of(const List& items) {
    nb::list out;
    for (const auto& item : items) out.append(item);
    return out;
}

} // namespace

Type type_from(const std::string& text) {
    const std::optional<Type> type = parse_type(text);
    if (!type) raise(PyExc_ValueError, "'%s' is no type; write one as \"f32[N,4]\"", text.c_str());
    return *type;
}

Dim dim_from(nb::handle value) {
    if (PyUnicode_Check(value.ptr())) {
        const std::string text = nb::cast<std::string>(value);
        const std::optional<Dim> dim = parse_dim(text);
        if (!dim) raise(PyExc_ValueError, "'%s' is no size; write one as \"2*N + 1\"", text.c_str());
        return *dim;
    }
    const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    const int64_t size = PyLong_AsLongLong(index.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    return size;
}

DType dtype_from(nb::handle value) {
    if (PyUnicode_Check(value.ptr()))
        if (const auto known = dtype_from_name(nb::cast<std::string>(value))) return *known;
    const nb::object dtype = numpy().attr("dtype")(nb::borrow(value));
    const auto known = dtype_from_numpy(nb::cast<std::string>(dtype.attr("name")));
    if (!known) raise(PyExc_TypeError, "%R is no dtype of a tensor", value.ptr());
    return *known;
}

Attribute attribute_from(nb::handle value, const AttributeDef& def) {
    const auto integer = [&](nb::handle v) { return integer_from(v, def); };
    const auto floating = [&](nb::handle v) { return float_from(v, def); };
    const auto string = [&](nb::handle v) { return string_from(v, def); };
    switch (def.kind) {
    case AttributeKind::Int: return integer(value);
    case AttributeKind::Float: return floating(value);
    case AttributeKind::Bool:
        if (!PyBool_Check(value.ptr())) wrong(value, def);
        return value.ptr() == Py_True;
    case AttributeKind::String: return string(value);
    case AttributeKind::DType: return dtype_from(value);
    case AttributeKind::Ints: return list_from<int64_t>(value, def, integer);
    case AttributeKind::Floats: return list_from<double>(value, def, floating);
    case AttributeKind::Strings: return list_from<std::string>(value, def, string);
    case AttributeKind::Dims: return list_from<Dim>(value, def, dim_from);
    case AttributeKind::Data: return Data{std::make_shared<const std::string>(constant_from(value).bytes)};
    }
    wrong(value, def);
}

nb::object attribute_to(const Attribute& attribute) {
    struct ToPython {
        nb::object operator()(int64_t v) const { return nb::int_(v); }
        nb::object operator()(double v) const { return nb::float_(v); }
        nb::object operator()(bool v) const { return nb::bool_(v); }
        nb::object operator()(const std::string& v) const { return nb::str(v.data(), v.size()); }
        nb::object operator()(DType v) const { return nb::str(name(v).data(), name(v).size()); }
        nb::object operator()(const std::vector<int64_t>& v) const { return list_of(v); }
        nb::object operator()(const std::vector<double>& v) const { return list_of(v); }
        nb::object operator()(const std::vector<std::string>& v) const { return list_of(v); }
        nb::object operator()(const Shape& v) const {
            nb::list out;
            for (const Dim& d : v) {
                if (const auto constant = d.constant())
                    out.append(*constant);
                else
                    out.append(d.text());
            }
            return out;
        }
        nb::object operator()(const Data& v) const { return nb::bytes(v.bytes->data(), v.bytes->size()); }
    };
    return std::visit(ToPython{}, attribute);
}

Constant constant_from(nb::handle value) {
    const nb::object array = numpy().attr("ascontiguousarray")(numpy().attr("asarray")(nb::borrow(value)));
    // ascontiguousarray gives a scalar one axis.
    const nb::tuple sizes = nb::tuple(numpy().attr("shape")(nb::borrow(value)));
    Shape shape;
    for (const nb::handle size : sizes) shape.push_back(dim_from(size));
    const nb::object little = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("<"));
    const nb::bytes bytes = nb::bytes(little.attr("tobytes")());
    return {Type::tensor(dtype_from(array.attr("dtype")), std::move(shape)), std::string(bytes.c_str(), bytes.size())};
}

} // namespace cuvil::python
