// Writes ONNX models byte by byte, so that tests need neither Python nor the onnx package and can write what it
// refuses.
#pragma once

#include <protozero/pbf_writer.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cuvil::onnx_writer {

// Data types by their numbers in the schema.
enum : int32_t { F32 = 1, U8 = 2, I32 = 6, I64 = 7, String = 8, Bool = 9, F16 = 10, F64 = 11, F8 = 17 };

using Writer = protozero::pbf_writer;
using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;
using Size = std::variant<int64_t, std::string>; // a name with nothing in it: no size

template <class T> std::string raw(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string tensor(std::string_view name, int32_t type, const Ints& dims, std::string_view data) {
    std::string out;
    Writer w(out);
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, type);
    w.add_string(8, name.data(), name.size());
    w.add_string(9, data.data(), data.size());
    return out;
}

inline std::string floats(std::string_view name, const Ints& dims, float value = 1) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    return tensor(name, F32, dims, raw(std::vector<float>(static_cast<size_t>(count), value)));
}

inline std::string ints(std::string_view name, const Ints& values) {
    return tensor(name, I64, {static_cast<int64_t>(values.size())}, raw(values));
}

inline std::string external(std::string_view name, const Ints& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
    std::string out;
    Writer w(out);
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, F32);
    w.add_string(8, name.data(), name.size());
    for (const auto& [key, value] : entries) {
        Writer entry(w, 13);
        entry.add_string(1, key);
        entry.add_string(2, value);
    }
    w.add_int32(14, 1);
    return out;
}

inline std::string attribute(std::string_view name, int32_t type, const std::string& value_field) {
    std::string out;
    Writer w(out);
    w.add_string(1, name.data(), name.size());
    w.add_int32(20, type);
    return out + value_field;
}

inline std::string real(std::string_view name, float value) {
    std::string field;
    Writer(field).add_float(2, value);
    return attribute(name, 1, field);
}

inline std::string integer(std::string_view name, int64_t value) {
    std::string field;
    Writer(field).add_int64(3, value);
    return attribute(name, 2, field);
}

inline std::string text_attribute(std::string_view name, const std::string& value) {
    std::string field;
    Writer(field).add_string(4, value);
    return attribute(name, 3, field);
}

inline std::string tensor_attribute(std::string_view name, const std::string& value) {
    std::string field;
    Writer(field).add_message(5, value);
    return attribute(name, 4, field);
}

inline std::string graph_attribute(std::string_view name, const std::string& value) {
    std::string field;
    Writer(field).add_message(6, value);
    return attribute(name, 5, field);
}

inline std::string list(std::string_view name, const Ints& values) {
    std::string field;
    Writer w(field);
    for (int64_t value : values) w.add_int64(8, value);
    return attribute(name, 7, field);
}

// The attribute of a function's node that the call gives.
inline std::string reference(std::string_view name, int32_t type, const std::string& to) {
    std::string field;
    Writer(field).add_string(21, to);
    return attribute(name, type, field);
}

inline std::string node(const std::string& op, const Names& inputs, const Names& outputs, const Names& attributes = {},
                        const std::string& domain = "") {
    std::string out;
    Writer w(out);
    for (const std::string& input : inputs) w.add_string(1, input);
    for (const std::string& output : outputs) w.add_string(2, output);
    w.add_string(3, outputs.empty() ? op : "make_" + outputs[0]);
    w.add_string(4, op);
    for (const std::string& attribute : attributes) w.add_message(5, attribute);
    if (!domain.empty()) w.add_string(7, domain);
    return out;
}

inline std::string value_info(const std::string& name, int32_t type, const std::vector<Size>& shape) {
    // Message by message, as the writer leaves out those that stay empty.
    std::string dims, tensor_type, type_proto, out;
    for (const Size& size : shape) {
        std::string dim;
        if (const auto* fixed = std::get_if<int64_t>(&size))
            Writer(dim).add_int64(1, *fixed);
        else if (!std::get<std::string>(size).empty())
            Writer(dim).add_string(2, std::get<std::string>(size));
        Writer(dims).add_message(1, dim);
    }
    Writer(tensor_type).add_int32(1, type);
    Writer(tensor_type).add_message(2, dims);
    Writer(type_proto).add_message(1, tensor_type);
    Writer(out).add_string(1, name);
    Writer(out).add_message(2, type_proto);
    return out;
}

// An output of which nothing is said.
inline std::string untyped(const std::string& name) {
    std::string out;
    Writer(out).add_string(1, name);
    return out;
}

struct Graph {
    Names nodes, inputs, outputs, initializers = {}, values = {};

    std::string bytes() const {
        std::string out;
        Writer w(out);
        for (const std::string& n : nodes) w.add_message(1, n);
        w.add_string(2, "graph");
        for (const std::string& t : initializers) w.add_message(5, t);
        for (const std::string& i : inputs) w.add_message(11, i);
        for (const std::string& o : outputs) w.add_message(12, o);
        for (const std::string& v : values) w.add_message(13, v);
        return out;
    }
};

inline std::string opset(const std::string& domain, int64_t version) {
    std::string out;
    Writer w(out);
    if (!domain.empty()) w.add_string(1, domain);
    w.add_int64(2, version);
    return out;
}

inline std::string model(const Graph& graph, int64_t opset_version = 17, int64_t ir_version = 8,
                         const Names& functions = {}) {
    std::string out;
    Writer w(out);
    w.add_int64(1, ir_version);
    w.add_string(2, "test");
    w.add_message(7, graph.bytes());
    w.add_message(8, opset("", opset_version));
    for (const std::string& f : functions) {
        w.add_message(25, f);
        w.add_message(8, opset("local", 1));
    }
    return out;
}

inline std::string function(const std::string& name, const Names& inputs, const Names& outputs, const Names& attributes,
                            const Names& nodes) {
    std::string out;
    Writer w(out);
    w.add_string(1, name);
    for (const std::string& i : inputs) w.add_string(4, i);
    for (const std::string& o : outputs) w.add_string(5, o);
    for (const std::string& a : attributes) w.add_string(6, a);
    for (const std::string& n : nodes) w.add_message(7, n);
    w.add_message(9, opset("", 17));
    w.add_string(10, "local");
    return out;
}

} // namespace cuvil::onnx_writer
