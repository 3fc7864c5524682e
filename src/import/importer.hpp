// Foreign model -> IR. Recognises the format by content, then by name.
#pragma once

#include "cuvil/compile.hpp"
#include "ir/program.hpp"

namespace cuvil {

// "FrontendParse": the whole model as one Program, verified. Reports every unsupported op and every other fault at
// once and throws Refused. `options` gives input_shapes, dynamic_shapes and cancel.
Program import_model(const Source& source, const CompileOptions& options, const OpTable& ops, Diagnostics& diag);

} // namespace cuvil
