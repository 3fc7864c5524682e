// The door of a module: what callers hand over, checked against the manifest and brought into the form the ABI asks
// for.
#pragma once

#include "cuvil/cuvil.h"
#include "runtime/arena.hpp"
#include "runtime/manifest.hpp"

#include <cstdint>
#include <string>

namespace cuvil::rt {

// A call that cannot be run, or failed: a CUVIL_ERROR_* and a sentence.
struct CallError {
    int32_t status;
    std::string message;
};

// Fills taken[i] with input i, row-major without gaps and aligned to its elements: the caller's memory where it is so
// already, else a copy in `arena`. Kind, dtype, rank, fixed sizes and the equality of sizes with one name are checked.
// dims has an entry for each of the manifest's; it is scratch. Throws CallError.
void take_inputs(const Manifest& manifest, const cuvil_value* in, ArenaAllocator& arena, int64_t* dims,
                 cuvil_value* taken);

// After bind: the sizes of the inputs against the dimensions that bind computed. Throws CallError.
void check_bound_dims(const Manifest& manifest, const cuvil_value* taken, const int64_t* dims);

// The output as the module gets it. `given` is the caller's: a tensor that fits is written in place; CUVIL_NONE becomes
// a tensor of our own where the shape is known (owner set), and stays where it is not. Throws CallError.
cuvil_value take_output(const ValueSpec& spec, const cuvil_value& given, const int64_t* dims);

// Copies into `arena` those inputs that a given output overlaps, since the module may write before it has read all.
void separate_inputs(const Manifest& manifest, const cuvil_value* out, ArenaAllocator& arena, cuvil_value* taken);

// Gives back the blocks of a value and of a list's items; leaves CUVIL_NONE.
void release_value(cuvil_value& value);

} // namespace cuvil::rt
