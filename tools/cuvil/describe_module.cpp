#include "console.hpp"
#include "describe.hpp"
#include "describe_plan.hpp"
#include "feeds.hpp"
#include "foreign_json.hpp"

#include "artifact/reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

namespace cuvil::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string word_of(const Json& json) { return json.is_string() ? json.get<std::string>() : json.dump(); }

std::string as_text(const Json& json) {
    const Json& manifest = json.at("manifest");
    std::string text = fmt::format("{}: a module, {}\n", json.at("file").get<std::string>(),
                                   size_text(json.at("size").get<uint64_t>()));
    const auto line = [&](std::string_view key, const std::string& value) {
        if (!value.empty()) text += fmt::format("  {:<10} {}\n", key, value);
    };
    const auto word = [&](const char* key) { return manifest.contains(key) ? word_of(manifest.at(key)) : ""; };
    line("name", word("name"));
    line("made by", fmt::format("cuvil {}", word("cuvil")));
    line("from", word("producer"));
    std::vector<std::string> levels;
    for (const Json& level : manifest.value("levels", Json::array())) levels.push_back(word_of(level));
    line("target", fmt::format("{}, levels {}", word("target"), fmt::join(levels, ", ")));
    line("code", size_text(json.at("code_bytes").get<uint64_t>()));
    const std::string precision = manifest.value("weights", Json::object()).value("precision", "f32");
    line("weights", size_text(json.at("weights_bytes").get<uint64_t>()) + (precision == "f32" ? "" : ", " + precision));
    line("workspace", word("workspace"));
    for (const char* key : {"inputs", "outputs"}) {
        text += fmt::format("{}\n", key);
        for (const Port& port : ports(manifest.at(key)))
            text += fmt::format("  {}{}\n", port.text(), port.optional ? " (may be left out)" : "");
    }
    if (manifest.contains("steps"))
        text += fmt::format("steps: {}\n{}", manifest.at("steps").size(), kernels_text(manifest));
    for (const Json& file : json.at("files"))
        text += fmt::format("file {}: {}\n", file.at("name").get<std::string>(),
                            size_text(file.at("bytes").get<uint64_t>()));
    if (json.contains("weights_ok"))
        text += json.at("weights_ok").get<bool>() ? "The weights are those that were written.\n"
                                                  : "The weights are damaged.\n";
    return text;
}

} // namespace

bool holds_module(const std::filesystem::path& path) {
    char magic[4] = {};
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) // opening a pipe would wait for its writer
        std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
    return std::string_view(magic, sizeof magic) == "\x7f"
                                                    "ELF" ||
           path.extension() == ".cuvil";
}

Description describe_module(const std::filesystem::path& path, bool check) {
    Description d;
    const std::unique_ptr<ArtifactFile> file = read_artifact(path, d.diagnostics);
    d.diagnostics.stop_if_errors();
    const ArtifactView& view = file->view();
    std::optional<Json> manifest = parse_foreign(view.manifest());
    if (!manifest || !manifest->is_object())
        throw InputError(fmt::format("'{}' has a manifest that is no JSON", path.string()));
    Json files = Json::array();
    for (const AttachedView& attached : view.files())
        files.push_back({{"name", attached.name}, {"bytes", attached.bytes.size()}});
    d.json = {{"file", path.string()},
              {"kind", "module"},
              {"size", file->size()},
              {"code_bytes", view.code_bytes()},
              {"weights_bytes", view.weights().size()},
              {"files", std::move(files)}};
    if (check) d.json["weights_ok"] = check_weights(*file, d.diagnostics);
    d.json["manifest"] = std::move(*manifest);
    try {
        d.text = as_text(d.json);
    } catch (const Json::exception& error) {
        throw InputError(fmt::format("'{}' has a manifest that cannot be read: {}", path.string(), error.what()));
    }
    return d;
}

} // namespace cuvil::cli
