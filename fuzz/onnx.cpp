// ONNX models: each is refused in words or becomes a program that prints, reads back, and passes through all passes. No
// model takes much time or memory to find that out.
#include "program.hpp"
#include "target.hpp"

#include "import/importer.hpp"

using namespace cuvil;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try {
        Diagnostics diag;
        Program program = import_model({.path = "model.onnx", .bytes = bytes}, {}, builtin_op_table(), diag);
        fuzz::check_text(program);
        fuzz::check_passes(std::move(program));
    } catch (const Refused&) { // in words
    } catch (const std::exception& error) {
        fuzz::fault(error.what());
    }
    return 0;
}
