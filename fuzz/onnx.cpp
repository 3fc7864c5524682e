// ONNX models: each is refused in words or becomes a program that prints, reads back, passes through all passes and is
// planned. No model takes much time or memory to find that out.
#include "expect.hpp"
#include "target.hpp"

#include "eval/evaluate.hpp"
#include "import/importer.hpp"
#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"
#include "plan/plan.hpp"

using namespace cuvil;

namespace {

void check_text(const Program& program) {
    const std::string printed = print(program);
    Diagnostics diag;
    const std::optional<Program> again = parse(printed, "printed.cuir", builtin_op_table(), diag);
    if (!again) fuzz::fault("the printed text is refused:\n" + printed + diag.render());
    if (print(*again) != printed) fuzz::fault("the printed text reads back as another program:\n" + printed);
}

void compile(std::string_view bytes) {
    Diagnostics diag;
    const CompileOptions options;
    Program program = import_model({.path = "model.onnx", .bytes = bytes}, options, builtin_op_table(), diag);
    check_text(program);
    run_passes(program, options, evaluate, diag);
    diag.stop_if_errors();
    check_text(program);
    Plan plan = choose_algorithms(program);
    choose_layouts(program, plan);
    fuse_loops(program, plan);
    plan_memory(program, plan);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        compile({reinterpret_cast<const char*>(data), size});
    } catch (const Refused&) {
    } catch (const std::exception& error) {
        fuzz::fault(error.what());
    }
    return 0;
}
