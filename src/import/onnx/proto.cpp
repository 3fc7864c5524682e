#include "import/onnx/proto.hpp"

#include <fmt/format.h>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include <cstring>

namespace cuvil::onnx {
namespace {

using Reader = protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr int deepest_graph = 64;
constexpr size_t most_dims = 1024;

// protozero checks the wire type of a field by assert only, so each getter below looks at it first. A field of the
// wrong wire type is an unknown field.
bool has(Reader& field, pbf_wire_type type) {
    if (field.wire_type() == type) return true;
    field.skip();
    return false;
}

std::string_view text(Reader& field) {
    if (!has(field, pbf_wire_type::length_delimited)) return {};
    protozero::data_view view = field.get_view();
    return {view.data(), view.size()};
}

int64_t integer(Reader& field) { return has(field, pbf_wire_type::varint) ? field.get_int64() : 0; }

float real(Reader& field) { return has(field, pbf_wire_type::fixed32) ? field.get_float() : 0; }

// Calls `take` for each number of a repeated field, which may be packed or not.
template <class Take> void each_integer(Reader& field, const Take& take) {
    if (field.wire_type() != pbf_wire_type::length_delimited) {
        if (has(field, pbf_wire_type::varint)) take(field.get_int64());
        return;
    }
    for (int64_t value : field.get_packed_int64()) take(value);
}

template <class T, class Take> void each_fixed(Reader& field, const Take& take) {
    constexpr pbf_wire_type wire = sizeof(T) == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64;
    if (field.wire_type() != pbf_wire_type::length_delimited) {
        if (!has(field, wire)) return;
        if constexpr (sizeof(T) == 4)
            take(field.get_float());
        else
            take(field.get_double());
        return;
    }
    std::string_view packed = text(field);
    if (packed.size() % sizeof(T) != 0) throw MalformedModel("a list of numbers has a broken length");
    for (size_t at = 0; at < packed.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, packed.data() + at, sizeof value);
        take(value);
    }
}

Reader message(std::string_view bytes) { return Reader{bytes.data(), bytes.size()}; }

std::pair<std::string_view, std::string_view> decode_entry(std::string_view bytes) {
    std::pair<std::string_view, std::string_view> entry;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: entry.first = text(m); break;
        case 2: entry.second = text(m); break;
        default: m.skip();
        }
    }
    return entry;
}

OpsetProto decode_opset(std::string_view bytes) {
    OpsetProto opset;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: opset.domain = text(m); break;
        case 2: opset.version = integer(m); break;
        default: m.skip();
        }
    }
    return opset;
}

TensorProto decode_tensor(std::string_view bytes) {
    TensorProto tensor;
    tensor.message = bytes;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1:
            each_integer(m, [&](int64_t size) {
                if (tensor.dims.size() == most_dims) throw MalformedModel("a tensor has more than 1024 axes");
                tensor.dims.push_back(size);
            });
            break;
        case 2: tensor.data_type = integer(m); break;
        case 3:
            tensor.is_segment = true;
            m.skip();
            break;
        case 8: tensor.name = text(m); break;
        case 9: tensor.raw_data = text(m); break;
        case 13: tensor.external_data.push_back(decode_entry(text(m))); break;
        case 14: tensor.is_external = integer(m) == 1; break;
        default: m.skip();
        }
    }
    return tensor;
}

std::string_view decode_sparse_name(std::string_view bytes) {
    std::string_view name;
    for (Reader m = message(bytes); m.next();) {
        if (m.tag() == 1)
            name = decode_tensor(text(m)).name;
        else
            m.skip();
    }
    return name;
}

DimensionProto decode_dimension(std::string_view bytes) {
    DimensionProto dimension;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: dimension.value = integer(m); break;
        case 2:
            dimension.param = text(m);
            // Some exporters write a question mark for each size that they do not know.
            if (dimension.param == "?") dimension.param = {};
            break;
        default: m.skip();
        }
    }
    return dimension;
}

void decode_shape(std::string_view bytes, ValueInfoProto& info) {
    info.has_shape = true;
    info.shape.clear();
    for (Reader m = message(bytes); m.next();) {
        if (m.tag() != 1) {
            m.skip();
            continue;
        }
        if (info.shape.size() == most_dims) throw MalformedModel("a shape has more than 1024 axes");
        info.shape.push_back(decode_dimension(text(m)));
    }
}

void decode_type(std::string_view bytes, ValueInfoProto& info) {
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: {
            info.kind = "tensor";
            std::string_view tensor = text(m);
            for (Reader t = message(tensor); t.next();) {
                switch (t.tag()) {
                case 1: info.element_type = integer(t); break;
                case 2: decode_shape(text(t), info); break;
                default: t.skip();
                }
            }
            break;
        }
        case 4:
            info.kind = "sequence";
            m.skip();
            break;
        case 5:
            info.kind = "map";
            m.skip();
            break;
        case 7:
            info.kind = "opaque value";
            m.skip();
            break;
        case 8:
            info.kind = "sparse tensor";
            m.skip();
            break;
        case 9:
            info.kind = "optional";
            m.skip();
            break;
        default: m.skip();
        }
    }
}

ValueInfoProto decode_value_info(std::string_view bytes) {
    ValueInfoProto info;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: info.name = text(m); break;
        case 2: decode_type(text(m), info); break;
        default: m.skip();
        }
    }
    return info;
}

GraphProto decode_graph(std::string_view bytes, int depth);

AttributeType attribute_type(int64_t number) {
    return number >= 1 && number <= 8 ? static_cast<AttributeType>(number) : AttributeType::Other;
}

// Files of the first IR versions name no type: it is that of the field that is there.
AttributeProto decode_attribute(std::string_view bytes, int depth) {
    AttributeProto attribute;
    AttributeType seen = AttributeType::Undefined;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: attribute.name = text(m); break;
        case 2:
            attribute.f = real(m);
            seen = AttributeType::Float;
            break;
        case 3:
            attribute.i = integer(m);
            seen = AttributeType::Int;
            break;
        case 4:
            attribute.s = text(m);
            seen = AttributeType::String;
            break;
        case 5:
            attribute.tensor = std::make_unique<TensorProto>(decode_tensor(text(m)));
            seen = AttributeType::Tensor;
            break;
        case 6:
            attribute.graph = std::make_unique<GraphProto>(decode_graph(text(m), depth + 1));
            seen = AttributeType::Graph;
            break;
        case 7:
            each_fixed<float>(m, [&](float value) { attribute.floats.push_back(value); });
            seen = AttributeType::Floats;
            break;
        case 8:
            each_integer(m, [&](int64_t value) { attribute.ints.push_back(value); });
            seen = AttributeType::Ints;
            break;
        case 9:
            attribute.strings.push_back(text(m));
            seen = AttributeType::Strings;
            break;
        case 20: attribute.type = attribute_type(integer(m)); break;
        case 21: attribute.reference = text(m); break;
        default: m.skip();
        }
    }
    if (attribute.type == AttributeType::Undefined) attribute.type = seen;
    if (attribute.reference.empty() && attribute.type == AttributeType::Tensor && !attribute.tensor)
        attribute.tensor = std::make_unique<TensorProto>();
    if (attribute.reference.empty() && attribute.type == AttributeType::Graph && !attribute.graph)
        attribute.graph = std::make_unique<GraphProto>();
    return attribute;
}

NodeProto decode_node(std::string_view bytes, int depth) {
    NodeProto node;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: node.inputs.push_back(text(m)); break;
        case 2: node.outputs.push_back(text(m)); break;
        case 3: node.name = text(m); break;
        case 4: node.op_type = text(m); break;
        case 5: node.attributes.push_back(decode_attribute(text(m), depth)); break;
        case 7: node.domain = text(m); break;
        case 8: node.overload = text(m); break;
        default: m.skip();
        }
    }
    return node;
}

GraphProto decode_graph(std::string_view bytes, int depth) {
    if (depth > deepest_graph) throw MalformedModel(fmt::format("graphs are nested more than {} deep", deepest_graph));
    GraphProto graph;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: graph.nodes.push_back(decode_node(text(m), depth)); break;
        case 2: graph.name = text(m); break;
        case 5: graph.initializers.push_back(decode_tensor(text(m))); break;
        case 11: graph.inputs.push_back(decode_value_info(text(m))); break;
        case 12: graph.outputs.push_back(decode_value_info(text(m))); break;
        case 13: graph.values.push_back(decode_value_info(text(m))); break;
        case 15: graph.sparse_initializers.push_back(decode_sparse_name(text(m))); break;
        default: m.skip();
        }
    }
    return graph;
}

FunctionProto decode_function(std::string_view bytes) {
    FunctionProto function;
    for (Reader m = message(bytes); m.next();) {
        switch (m.tag()) {
        case 1: function.name = text(m); break;
        case 4: function.inputs.push_back(text(m)); break;
        case 5: function.outputs.push_back(text(m)); break;
        case 6: function.attributes.push_back(text(m)); break;
        case 7: function.nodes.push_back(decode_node(text(m), 1)); break;
        case 9: function.opsets.push_back(decode_opset(text(m))); break;
        case 10: function.domain = text(m); break;
        case 11: function.defaults.push_back(decode_attribute(text(m), 1)); break;
        case 13: function.overload = text(m); break;
        default: m.skip();
        }
    }
    return function;
}

// Runs a decoder of an inner message: when it meets the end of its bytes early, the model is broken and not just cut
// off.
template <class Decode> auto inner(const Decode& decode) {
    try {
        return decode();
    } catch (const protozero::exception&) {
        throw MalformedModel("a message inside it is broken");
    }
}

void append_string(std::string& out, std::string_view element) {
    uint64_t length = element.size();
    out.append(reinterpret_cast<const char*>(&length), sizeof length);
    out.append(element);
}

} // namespace

std::string typed_data(const TensorProto& tensor, DType dtype) {
    enum Field { Floats = 4, Int32s = 5, Strings = 6, Int64s = 7, Doubles = 10, Uint64s = 11 };
    Field wanted = Int32s;
    if (dtype == DType::F32 || dtype == DType::C64) wanted = Floats;
    if (dtype == DType::F64 || dtype == DType::C128) wanted = Doubles;
    if (dtype == DType::I64) wanted = Int64s;
    if (dtype == DType::U64 || dtype == DType::U32) wanted = Uint64s;
    if (dtype == DType::String) wanted = Strings;

    std::string out;
    auto append = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
    // Little-endian: the low bytes are the narrow integer, or the bits of a half.
    auto append_low = [&](int64_t value) { out.append(reinterpret_cast<const char*>(&value), size_of(dtype)); };
    return inner([&] {
        for (Reader m = message(tensor.message); m.next();) {
            if (m.tag() != wanted) {
                m.skip();
                continue;
            }
            switch (wanted) {
            case Floats: each_fixed<float>(m, append); break;
            case Doubles: each_fixed<double>(m, append); break;
            case Strings: append_string(out, text(m)); break;
            case Int32s:
            case Int64s:
            case Uint64s: each_integer(m, append_low); break;
            }
        }
        return std::move(out);
    });
}

ModelProto decode_model(std::string_view bytes) {
    ModelProto model;
    try {
        for (Reader m = message(bytes); m.next();) {
            switch (m.tag()) {
            case 1: model.ir_version = integer(m); break;
            case 2: model.producer_name = text(m); break;
            case 3: model.producer_version = text(m); break;
            case 7: {
                std::string_view graph = text(m);
                model.graph = inner([&] { return decode_graph(graph, 0); });
                break;
            }
            case 8: {
                std::string_view opset = text(m);
                model.opsets.push_back(inner([&] { return decode_opset(opset); }));
                break;
            }
            case 25: {
                std::string_view function = text(m);
                model.functions.push_back(inner([&] { return decode_function(function); }));
                break;
            }
            default: m.skip();
            }
        }
    } catch (const protozero::end_of_buffer_exception&) {
        throw TruncatedModel("it ends in the middle of a field");
    } catch (const protozero::exception&) {
        throw MalformedModel("its fields cannot be read");
    }
    return model;
}

} // namespace cuvil::onnx
