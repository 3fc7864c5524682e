// What the code of a statically linked model tells the host that runs it, static/host.cpp: the manifest as tables.
// Freestanding, since both are compiled together with the model, without a standard library.
#pragma once

#include "cuvil/cuvil.h"

namespace cuvil::rt {

struct StaticAxis {
    static constexpr int32_t fixed = -1;
    static constexpr int32_t known_after_run = -2;

    int32_t dim;  // index into the table of dims, or one of the above
    int64_t size; // of a fixed axis
};

struct StaticValue {
    const char* name;
    int32_t tag;       // CUVIL_TENSOR or CUVIL_STRINGS
    cuvil_dtype dtype; // of tensors
    bool is_optional;
    int32_t rank;
    const StaticAxis* axes;
};

struct StaticCheck {
    const char* message; // "index {0} is out of range for axis 0 of size {1}"
    const char* node;
};

struct StaticModel {
    const char* name;
    const cuvil_program* program;
    const void* weights;
    const cuvil_level** level; // where the host keeps the level that it has chosen; null at first
    int32_t input_count, output_count, check_count;
    const StaticValue* inputs;
    const StaticValue* outputs;
    const StaticCheck* checks;
};

// One call of a model, and the memory for it, which the model's code has on its stack.
struct StaticCall {
    const cuvil_host* host; // null: the caller's thread and the C library's memory
    int32_t threads;
    const cuvil_value* in; // null: the inputs are the memory at in_data, with the sizes at in_sizes one after the other
    int64_t* in_sizes;
    const void* const* in_data; // null: an input that is left out
    cuvil_value* out;           // null: the outputs are the memory at out_data, of the shapes that bind() computes
    void* const* out_data;
    void* workspace;       // at any address; null: from the host
    const int32_t* cancel; // or null
    int64_t* dims;         // one for each of the program's
    cuvil_value* inputs;   // one for each input, output, ...
    cuvil_value* outputs;
    int64_t* out_sizes; // of all outputs one after the other
    bool* copied;       // one for each input
};

// The workspace that a caller gives may lie anywhere: its first multiple of this is taken.
inline constexpr uint64_t workspace_alignment = 64;

} // namespace cuvil::rt

// The number is the version of the structs above: programs link one host for all their models.
extern "C" {
// Checks the inputs, sizes them, runs the best level of this processor. A CUVIL_* status.
int32_t cuvil_static_run_1(const cuvil::rt::StaticModel* model, const cuvil::rt::StaticCall* call);
// Bytes of workspace, wherever it lies, for inputs of the sizes at call->in_sizes; UINT64_MAX where the model cannot
// take them.
uint64_t cuvil_static_workspace_1(const cuvil::rt::StaticModel* model, const cuvil::rt::StaticCall* call);
// The sentence of this thread's latest failure, of any model.
const char* cuvil_static_message_1(void);
}
