#include "runtime/manifest.hpp"

#include "runtime/dtypes.hpp"

#include <nlohmann/json.hpp>

namespace cuvil::rt {
namespace {

using Json = nlohmann::json;

constexpr uint32_t manifest_format = 1;

Axis read_axis(const Json& size, const Json& dim, size_t dim_count) {
    Axis axis;
    axis.dim = dim.get<int32_t>();
    if (axis.dim < Axis::known_after_run || axis.dim >= static_cast<int64_t>(dim_count))
        throw ManifestError("names entry " + std::to_string(axis.dim) + " of " + std::to_string(dim_count) +
                            " dimensions");
    if (axis.dim == Axis::fixed) {
        axis.size = size.get<int64_t>();
        axis.text = std::to_string(axis.size);
    } else {
        axis.text = size.get<std::string>();
    }
    return axis;
}

ValueSpec read_value(const Json& json, size_t dim_count) {
    ValueSpec spec;
    spec.name = json.at("name").get<std::string>();
    spec.optional = json.value("optional", false);
    spec.dtype_name = json.value("dtype", "");
    const std::string kind = json.at("kind").get<std::string>();
    if (kind == "strings")
        spec.tag = CUVIL_STRINGS;
    else if (kind == "list")
        spec.tag = CUVIL_LIST;
    else if (kind != "tensor")
        throw ManifestError("has a value '" + spec.name + "' of unknown kind \"" + kind + "\"");
    spec.dtype = dtype_of(spec.dtype_name);
    if (spec.tag == CUVIL_TENSOR && spec.dtype.bits == 0)
        throw ManifestError("has a tensor '" + spec.name + "' of unknown dtype \"" + spec.dtype_name + "\"");
    const auto shape = json.find("shape");
    spec.any_rank = spec.tag == CUVIL_LIST || shape == json.end() || shape->is_null();
    if (spec.any_rank) return spec;
    const Json& dims = json.at("dims");
    if (shape->size() != dims.size())
        throw ManifestError("gives '" + spec.name + "' a shape and dims of different lengths");
    for (size_t i = 0; i < dims.size(); i++) spec.shape.push_back(read_axis(shape->at(i), dims.at(i), dim_count));
    return spec;
}

} // namespace

Manifest read_manifest(std::string_view text) {
    try {
        const Json json = Json::parse(text);
        const uint32_t format = json.at("format").get<uint32_t>();
        if (format != manifest_format)
            throw ManifestError("has format " + std::to_string(format) + "; this Cuvil reads format " +
                                std::to_string(manifest_format));
        Manifest manifest;
        manifest.dims = json.at("dims").get<std::vector<std::string>>();
        for (const Json& value : json.at("inputs")) manifest.inputs.push_back(read_value(value, manifest.dims.size()));
        for (const Json& value : json.at("outputs"))
            manifest.outputs.push_back(read_value(value, manifest.dims.size()));
        for (const Json& check : json.at("checks"))
            manifest.checks.push_back({check.at("message").get<std::string>(), check.value("node", "")});
        if (const auto weights = json.find("weights"); weights != json.end())
            manifest.weights_bytes = weights->at("bytes").get<uint64_t>();
        return manifest;
    } catch (const Json::exception& error) {
        throw ManifestError(std::string("cannot be read: ") + error.what());
    }
}

std::string shape_text(const ValueSpec& spec) {
    if (spec.any_rank) return "[...]";
    std::string out = "[";
    for (const Axis& axis : spec.shape) out += (out.size() > 1 ? "," : "") + axis.text;
    return out + "]";
}

std::string failure_text(const Manifest& manifest, const cuvil_failure& failure) {
    if (failure.check < 0 || failure.check >= static_cast<int64_t>(manifest.checks.size()))
        return "check " + std::to_string(failure.check) + " of the model failed";
    const CheckText& check = manifest.checks[failure.check];
    std::string out;
    for (size_t i = 0; i < check.message.size(); i++) {
        const std::string_view rest = std::string_view(check.message).substr(i, 3);
        if (rest.size() == 3 && rest[0] == '{' && rest[1] >= '0' && rest[1] <= '5' && rest[2] == '}') {
            out += std::to_string(failure.values[rest[1] - '0']);
            i += 2;
        } else {
            out += rest[0];
        }
    }
    return check.node.empty() ? out : out + " (in '" + check.node + "')";
}

std::string dtype_text(cuvil_dtype dtype) {
    for (const NamedDtype& known : dtypes)
        if (known.dtype.code == dtype.code && known.dtype.bits == dtype.bits && known.dtype.lanes == dtype.lanes)
            return std::string(known.name);
    return "dtype code " + std::to_string(dtype.code) + " with " + std::to_string(dtype.bits) + " bits and " +
           std::to_string(dtype.lanes) + " lanes";
}

} // namespace cuvil::rt
