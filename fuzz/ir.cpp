// IR text: a text that parses and verifies prints as one that reads back as the same program.
#include "expect.hpp"
#include "target.hpp"

#include "ir/parser.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "ops/op_table.hpp"

using namespace cuvil;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Diagnostics diag;
    const std::optional<Program> program = parse(text, "model.cuir", builtin_op_table(), diag);
    fuzz::expect(program.has_value() != diag.has_errors(), "a text is refused if and only if there is an error");
    if (!program || !verify(*program).empty()) return 0;
    const std::string printed = print(*program);
    const std::optional<Program> again = parse(printed, "printed.cuir", builtin_op_table(), diag);
    if (!again) fuzz::fault("the printed text is refused:\n" + printed + diag.render());
    if (!verify(*again).empty()) fuzz::fault("the program that was read back is broken:\n" + printed);
    if (print(*again) != printed) fuzz::fault("the printed text reads back as another program:\n" + printed);
    return 0;
}
