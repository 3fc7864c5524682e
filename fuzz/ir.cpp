// IR text: a text that parses and verifies is a program that prints, reads back, and passes through all passes.
#include "program.hpp"
#include "target.hpp"

using namespace cuvil;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Diagnostics diag;
    std::optional<Program> program = parse(text, "model.cuir", builtin_op_table(), diag);
    fuzz::expect(program.has_value() != diag.has_errors(), "a text is refused if and only if there is an error");
    if (!program || !verify(*program).empty()) return 0;
    fuzz::check_text(*program);
    fuzz::check_passes(std::move(*program));
    return 0;
}
