// What must hold of every program that a reader makes.
#pragma once

#include "expect.hpp"

#include "eval/evaluate.hpp"
#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "ops/op_table.hpp"
#include "optimize/pass.hpp"
#include "plan/plan.hpp"

namespace cuvil::fuzz {

// It prints, and the text reads back as the same program.
inline void check_text(const Program& program) {
    const std::string printed = print(program);
    Diagnostics diag;
    const std::optional<Program> again = parse(printed, "printed.cuir", builtin_op_table(), diag);
    if (!again) fault("the printed text is refused:\n" + printed + diag.render());
    if (!verify(*again).empty()) fault("the program that was read back is broken:\n" + printed);
    if (print(*again) != printed) fault("the printed text reads back as another program:\n" + printed);
}

// It passes through all passes and is planned, or is refused. The passes verify what they leave.
inline void check_passes(Program program) {
    try {
        Diagnostics diag;
        run_passes(program, {}, evaluate, diag);
        diag.stop_if_errors();
        check_text(program);
        Plan plan = choose_algorithms(program);
        choose_layouts(program, plan);
        fuse_loops(program, plan);
        plan_memory(program, plan);
    } catch (const Refused&) {     // in words
    } catch (const DimOverflow&) { // which compile() refuses: planned sizes exceed 64 bits
    } catch (const std::exception& error) {
        fault(error.what());
    }
}

} // namespace cuvil::fuzz
