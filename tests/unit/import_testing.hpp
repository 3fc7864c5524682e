// What the tests of the importers share.
#pragma once

#include "import/importer.hpp"
#include "ir/printer.hpp"
#include "ops/op_table.hpp"

#include <regex>
#include <string>

namespace cuvil {

inline Program import_bytes(const std::string& bytes, const CompileOptions& options = {},
                            const std::filesystem::path& path = "model.onnx") {
    Diagnostics diag;
    return import_model({.path = path, .bytes = bytes}, options, builtin_op_table(), diag);
}

// The main function's text without places.
inline std::string main_of(const std::string& bytes, const CompileOptions& options = {}) {
    Program program = import_bytes(bytes, options);
    return "\n" + std::regex_replace(print(program.main()), std::regex(R"(  loc "[^"]*"( "[^"]*")?)"), "");
}

// What the importer says; empty when it accepts the model.
inline std::string refusal(const std::string& bytes, const CompileOptions& options = {},
                           const std::filesystem::path& path = "model.onnx") {
    try {
        import_bytes(bytes, options, path);
        return "";
    } catch (const Refused& refused) {
        return std::string("\n") + refused.what();
    }
}

} // namespace cuvil
