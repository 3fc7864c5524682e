#include "tuning.hpp"

#include "console.hpp"
#include "foreign_json.hpp"
#include "support/file.hpp"

#include <fmt/format.h>

namespace cuvil::cli {
namespace {

constexpr const char* member = "cuvil_kernels";

} // namespace

Kernels read_tuning(const std::filesystem::path& path) {
    Diagnostics diag;
    const auto file = open_named(path, diag);
    const auto json = parse_foreign(file->text());
    if (!json || !json->is_object() || !json->contains(member) || !json->at(member).is_object())
        throw InputError(fmt::format("'{}' is no tuning file: cuvil tune writes them", path.string()));
    Kernels kernels;
    for (const auto& [choice, kernel] : json->at(member).items()) {
        if (!kernel.is_string())
            throw InputError(
                fmt::format("'{}' names no kernel for '{}', but {}", path.string(), choice, kernel.dump()));
        kernels[choice] = kernel.get<std::string>();
    }
    return kernels;
}

std::string tuning_text(const Kernels& kernels) {
    return nlohmann::ordered_json{{member, kernels}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
           "\n";
}

} // namespace cuvil::cli
