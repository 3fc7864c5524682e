// What a module is compared with.
#pragma once

#include "cuvil/compile.hpp"
#include "ir/program.hpp"
#include "session.hpp"
#include "tensors.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cuvil::cli {

struct OtherSide {
    std::string name;            // "the reference interpreter", "onnxruntime 1.27.0"
    std::vector<Tensor> outputs; // in the order of the module's

    // For --bisect, else empty: the program as imported, whether a value of its main function can be asked for, and
    // what some of them are.
    std::shared_ptr<const Program> program = {};
    std::function<bool(const Value&)> has = {};
    std::function<std::vector<Tensor>(const std::vector<const Value*>&)> values = {};
};

// The model as imported, run node by node by src/eval. With `keeps_all` every value can be asked for. Throws Refused,
// InputError.
OtherSide reference(const std::string& model, const CompileOptions& options, const Session& session, const Feeds& feeds,
                    bool keeps_all, Console& console);
// The .onnx file in ONNX Runtime.
OtherSide onnxruntime(const std::string& model, const CompileOptions& options, const Session& session,
                      const Feeds& feeds, bool keeps_all);
// What a file holds under the names of the outputs: all of them and nothing else. A single array is for the only
// output, whatever its name.
OtherSide expected(const std::string& path, const Session& session);

} // namespace cuvil::cli
