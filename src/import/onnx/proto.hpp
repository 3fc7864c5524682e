// The parts of ONNX's protobuf schema that the importer reads, as plain structs. Names and tensor data are views into
// the model's bytes. Defined in onnx.proto of the ONNX project; the numbers stand in proto.cpp.
#pragma once

#include "ir/type.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuvil::onnx {

// The bytes are not a message of this schema.
class MalformedModel : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The bytes end inside a field of the outermost message.
class TruncatedModel : public MalformedModel {
public:
    using MalformedModel::MalformedModel;
};

struct TensorProto {
    std::string_view name;
    std::vector<int64_t> dims;
    int64_t data_type = 0;
    std::optional<std::string_view> raw_data;
    bool is_external = false;
    std::vector<std::pair<std::string_view, std::string_view>> external_data;
    bool is_segment = false;
    std::string_view message; // this message; typed_data reads the elements that stand in it one by one
};

// The elements that `tensor` holds in its typed fields, in memory form (strings: see ir/attribute.hpp), as many as
// there are. Throws MalformedModel.
std::string typed_data(const TensorProto& tensor, DType dtype);

struct DimensionProto {
    std::optional<int64_t> value;
    std::string_view param;
};

struct ValueInfoProto {
    std::string_view name;
    std::string_view kind = "no type"; // "tensor", "sequence", ...
    int64_t element_type = 0;
    bool has_shape = false;
    std::vector<DimensionProto> shape;
};

struct GraphProto;

enum class AttributeType { Undefined, Float, Int, String, Tensor, Graph, Floats, Ints, Strings, Other };

struct AttributeProto {
    std::string_view name;
    std::string_view reference; // inside a function: the attribute of the call that gives the value
    AttributeType type = AttributeType::Undefined;
    float f = 0;
    int64_t i = 0;
    std::string_view s;
    std::unique_ptr<TensorProto> tensor;
    std::unique_ptr<GraphProto> graph;
    std::vector<float> floats;
    std::vector<int64_t> ints;
    std::vector<std::string_view> strings;
};

struct NodeProto {
    std::string_view name, op_type, domain, overload;
    std::vector<std::string_view> inputs, outputs; // an empty name: left out
    std::vector<AttributeProto> attributes;
};

struct GraphProto {
    std::string_view name;
    std::vector<NodeProto> nodes;
    std::vector<TensorProto> initializers;
    std::vector<std::string_view> sparse_initializers;
    std::vector<ValueInfoProto> inputs, outputs;
    std::vector<ValueInfoProto> values; // what the file says of results between the nodes
};

struct OpsetProto {
    std::string_view domain;
    int64_t version = 0;
};

struct FunctionProto {
    std::string_view name, domain, overload;
    std::vector<std::string_view> inputs, outputs, attributes;
    std::vector<AttributeProto> defaults;
    std::vector<NodeProto> nodes;
    std::vector<OpsetProto> opsets;
};

struct ModelProto {
    int64_t ir_version = 0;
    std::vector<OpsetProto> opsets;
    std::string_view producer_name, producer_version;
    std::optional<GraphProto> graph;
    std::vector<FunctionProto> functions;
};

// Throws MalformedModel. The result refers to `bytes`.
ModelProto decode_model(std::string_view bytes);

} // namespace cuvil::onnx
