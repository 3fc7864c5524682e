// Steps as an ONNX file. The numbers are those of the fields in onnx.proto.
#include "describe_plan.hpp"

#include <protozero/pbf_writer.hpp>

#include <charconv>
#include <utility>

namespace cuvil::cli {
namespace {

using Json = nlohmann::ordered_json;
using protozero::pbf_writer;

constexpr const char* domain = "cuvil";

// The type's words: "f32[N,4]" and what follows of a layout.
struct TypeText {
    std::string dtype;
    bool has_rank = false;
    std::vector<std::string> sizes;
};

TypeText parse_type(const std::string& text) {
    TypeText type;
    const size_t open = text.find('[');
    type.dtype = text.substr(0, open);
    type.has_rank = open != std::string::npos && text.find("...") == std::string::npos;
    if (!type.has_rank) return type;
    int depth = 0;
    std::string size;
    for (size_t i = open + 1; i < text.size(); i++) {
        const char c = text[i];
        const bool is_end = depth == 0 && (c == ']' || c == ',');
        if (is_end && !size.empty()) type.sizes.push_back(std::exchange(size, ""));
        if (is_end && c == ']') break;
        depth += (c == '(') - (c == ')');
        if (!is_end && c != ' ') size += c;
    }
    return type;
}

// TensorProto.DataType.
int32_t data_type(const std::string& dtype) {
    constexpr std::pair<const char*, int32_t> types[] = {
        {"f32", 1},  {"u8", 2},   {"i8", 3},    {"u16", 4},   {"i16", 5},   {"i32", 6},
        {"i64", 7},  {"str", 8},  {"bool", 9},  {"f16", 10},  {"f64", 11},  {"u32", 12},
        {"u64", 13}, {"c64", 14}, {"c128", 15}, {"bf16", 16}, {"string", 8}};
    for (const auto& [name, number] : types)
        if (dtype == name) return number;
    return 0;
}

std::string value_info(const std::string& name, const TypeText& type, const std::string& doc) {
    std::string shape, tensor, type_proto, info;
    for (const std::string& size : type.sizes) {
        std::string dim;
        int64_t number = 0;
        const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), number);
        if (error == std::errc() && end == size.data() + size.size())
            pbf_writer(dim).add_int64(1, number);
        else
            pbf_writer(dim).add_string(2, size);
        pbf_writer(shape).add_message(1, dim);
    }
    pbf_writer(tensor).add_int32(1, data_type(type.dtype));
    if (type.has_rank) pbf_writer(tensor).add_message(2, shape);
    pbf_writer(type_proto).add_message(1, tensor);
    pbf_writer writer(info);
    writer.add_string(1, name);
    writer.add_message(2, type_proto);
    if (!doc.empty()) writer.add_string(3, doc);
    return info;
}

std::string port_info(const Json& port) {
    TypeText type;
    type.dtype = port.value("dtype", "");
    type.has_rank = port.at("shape").is_array();
    if (type.has_rank)
        for (const Json& size : port.at("shape"))
            type.sizes.push_back(size.is_string() ? size.get<std::string>() : size.dump());
    return value_info(port.at("name").get<std::string>(), type, "");
}

std::string string_attribute(const std::string& name, const std::string& value) {
    std::string attribute;
    pbf_writer writer(attribute);
    writer.add_string(1, name);
    writer.add_string(4, value);
    writer.add_int32(20, 3); // AttributeProto.STRING
    return attribute;
}

std::string node(const Json& step) {
    std::string out, ops;
    pbf_writer writer(out);
    for (const Json& name : step.at("reads")) writer.add_string(1, name.get<std::string>());
    for (const Json& value : step.at("writes")) writer.add_string(2, value.at("name").get<std::string>());
    writer.add_string(3, step.at("name").get<std::string>());
    writer.add_string(4, step.at("kernel").get<std::string>());
    for (const Json& op : step.at("ops")) ops += (ops.empty() ? "" : " ") + op.get<std::string>();
    writer.add_message(5, string_attribute("ops", ops));
    writer.add_message(5, string_attribute("step", step.at("number").dump()));
    writer.add_string(7, domain);
    return out;
}

// An output that is another value under a second name.
std::string identity(const std::string& from, const std::string& to) {
    std::string out;
    pbf_writer writer(out);
    writer.add_string(1, from);
    writer.add_string(2, to);
    writer.add_string(4, "Identity");
    return out;
}

std::string opset(const std::string& name, int64_t version) {
    std::string out;
    pbf_writer writer(out);
    writer.add_string(1, name);
    writer.add_int64(2, version);
    return out;
}

} // namespace

std::string graph_onnx(const Json& manifest) {
    std::string graph, model;
    pbf_writer writer(graph);
    for (const Json& step : manifest.at("steps"))
        if (step.value("depth", 0) == 0) writer.add_message(1, node(step));
    for (const Json& port : manifest.at("outputs"))
        if (port.at("value") != port.at("name"))
            writer.add_message(1, identity(port.at("value").get<std::string>(), port.at("name").get<std::string>()));
    writer.add_string(2, manifest.at("name").get<std::string>());
    for (const Json& port : manifest.at("inputs")) writer.add_message(11, port_info(port));
    for (const Json& port : manifest.at("outputs")) writer.add_message(12, port_info(port));
    for (const Json& step : manifest.at("steps"))
        for (const Json& value : step.value("depth", 0) == 0 ? step.at("writes") : Json::array()) {
            const std::string type = value.at("type").get<std::string>();
            writer.add_message(13, value_info(value.at("name").get<std::string>(), parse_type(type), type));
        }

    pbf_writer top(model);
    top.add_int64(1, 8); // IR version
    top.add_string(2, "cuvil");
    top.add_string(3, manifest.at("cuvil").get<std::string>());
    top.add_message(7, graph);
    top.add_message(8, opset("", 17));
    top.add_message(8, opset(domain, 1));
    return model;
}

} // namespace cuvil::cli
