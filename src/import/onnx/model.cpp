#include "import/onnx/onnx.hpp"

#include "import/onnx/graph.hpp"
#include "import/onnx/rows.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil {
namespace onnx {
namespace {

bool looks_like_text(std::string_view bytes) {
    return std::all_of(bytes.begin(), bytes.begin() + static_cast<int64_t>(std::min<size_t>(bytes.size(), 512)),
                       [](unsigned char c) { return c >= 0x20 || c == '\n' || c == '\r' || c == '\t'; });
}

// What the bytes are, if not a model; for users who gave the wrong file.
std::optional<std::pair<std::string, std::string>> other_format(std::string_view bytes) {
    if (bytes.starts_with("version https://git-lfs"))
        return std::pair("this is a Git LFS pointer, not the model", "fetch the file itself with `git lfs pull`");
    if (bytes.starts_with("PK\x03\x04")) return std::pair("this is a zip archive, not an ONNX model", "");
    if (bytes.starts_with("\x89HDF"))
        return std::pair("this is an HDF5 file, not an ONNX model", "convert it to ONNX first");
    if (bytes.starts_with("\x7f"
                          "ELF"))
        return std::pair("this is a compiled module or program, not an ONNX model", "");
    if (looks_like_text(bytes)) return std::pair("this is a text file, not an ONNX model", "");
    return std::nullopt;
}

void report_broken(std::string_view bytes, const MalformedModel& error, bool is_truncated, const std::string& file,
                   Diagnostics& diag) {
    if (auto other = other_format(bytes)) {
        diag.error("not-a-model", other->first, {file, ""}).help = other->second;
    } else if (static_cast<unsigned char>(bytes[0]) != 0x08) { // the IR version comes first in all models
        diag.error("not-a-model", "this is not an ONNX model", {file, ""});
    } else if (is_truncated) {
        diag.error("truncated-model",
                   fmt::format("the model is cut off after {} bytes: {}", bytes.size(), error.what()), {file, ""})
            .suggest("copy or download the file again");
    } else {
        diag.error("malformed-model", fmt::format("the model cannot be read: {}", error.what()), {file, ""});
    }
}

void check_opsets(const ModelProto& model, const std::string& file, Diagnostics& diag) {
    const OpsetProto* found = find_opset(model.opsets, "");
    if (!found) {
        // A graph of other domains' operators alone needs none.
        auto is_default = [](const NodeProto& node) { return is_default_domain(node.domain); };
        if (std::any_of(model.graph->nodes.begin(), model.graph->nodes.end(), is_default))
            diag.error("unsupported-opset", "the model does not say which operator set it uses", {file, ""});
    } else if (found->version < oldest_opset) {
        diag.error("unsupported-opset", fmt::format("operator set {} is older than {}", found->version, oldest_opset),
                   {file, ""})
            .suggest("onnx.version_converter can convert the model");
    } else if (found->version > newest_opset) {
        diag.error("unsupported-opset", fmt::format("operator set {} is newer than {}", found->version, newest_opset),
                   {file, ""})
            .suggest("export the model for an older operator set, or use a newer Cuvil");
    }
}

} // namespace

std::map<std::string, std::string> metadata_of(const ModelProto& model) {
    std::map<std::string, std::string> out = {{"format", "onnx"}, {"ir_version", std::to_string(model.ir_version)}};
    if (!model.producer_name.empty())
        out["producer"] = std::string(model.producer_name) +
                          (model.producer_version.empty() ? "" : " " + std::string(model.producer_version));
    for (const OpsetProto& opset : model.opsets)
        out[is_default_domain(opset.domain) ? "opset" : "opset " + std::string(opset.domain)] =
            std::to_string(opset.version);
    return out;
}

} // namespace onnx

Program import_onnx(std::string_view bytes, const std::shared_ptr<const void>& storage, const std::string& file,
                    const std::optional<std::filesystem::path>& folder, const CompileOptions& options,
                    const OpTable& ops, Diagnostics& diag) {
    onnx::ModelProto model;
    try {
        model = onnx::decode_model(bytes);
    } catch (const onnx::TruncatedModel& error) {
        onnx::report_broken(bytes, error, true, file, diag);
    } catch (const onnx::MalformedModel& error) {
        onnx::report_broken(bytes, error, false, file, diag);
    }
    diag.stop_if_errors();
    if (!model.graph) {
        if (auto other = onnx::other_format(bytes))
            diag.error("not-a-model", other->first, {file, ""}).help = other->second;
        else
            diag.error("not-a-model", "there is no graph in this file", {file, ""})
                .suggest("it is no ONNX model, or one that is cut off");
        diag.stop_if_errors();
    }
    onnx::check_opsets(model, file, diag);
    diag.stop_if_errors();

    Program program(ops);
    program.metadata = onnx::metadata_of(model);
    onnx::GraphImporter(model, program, onnx::TensorReader(storage, folder), file, options, diag).import();
    diag.stop_if_errors();
    return program;
}

} // namespace cuvil
