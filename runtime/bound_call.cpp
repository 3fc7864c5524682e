#include "runtime/bound_call.hpp"

#include "runtime/values.hpp"

#include <algorithm>

namespace cuvil::rt {
namespace {

const char* first_byte(const cuvil_tensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

void keep_shape(cuvil_value& value, ArenaAllocator& arena) {
    if (value.tag != CUVIL_TENSOR) return;
    auto* shape = arena.array<int64_t>(static_cast<uint64_t>(value.as.tensor.ndim));
    std::copy_n(value.as.tensor.shape, value.as.tensor.ndim, shape);
    value.as.tensor.shape = shape;
}

} // namespace

BoundCall::BoundCall(Module& module, const cuvil_value* in, cuvil_value* out)
    : module_(module), frame_(module.manifest(), module.threads_) {
    const Manifest& manifest = module.manifest();
    if ((!in && !manifest.inputs.empty()) || (!out && !manifest.outputs.empty()))
        throw CallError{CUVIL_ERROR_NAME, !in ? "there are no inputs" : "there is no room for the outputs"};
    const auto release_own = [&] {
        for (size_t i = 0; i < frame_.out.size(); i++)
            if (out[i].tag == CUVIL_NONE) release_value(frame_.out[i]);
    };
    try {
        module.prepare(frame_, in, out);
        for (size_t i = 0; i < frame_.out.size(); i++)
            if (frame_.out[i].tag == CUVIL_NONE)
                throw CallError{CUVIL_ERROR_TYPE, "output '" + manifest.outputs[i].name +
                                                      "' has a size that is known only after the run: it cannot be "
                                                      "bound"};
        expect_in_place(in);
        for (cuvil_value& value : frame_.in) keep_shape(value, shapes_);
        for (cuvil_value& value : frame_.out) keep_shape(value, shapes_);
    } catch (...) {
        release_own();
        throw;
    }
    for (size_t i = 0; i < frame_.out.size(); i++) {
        if (out[i].tag == CUVIL_NONE) out[i] = frame_.out[i];
        frame_.out[i].owner = nullptr; // the caller's
    }
}

// What had to be copied would not follow what the caller writes later.
void BoundCall::expect_in_place(const cuvil_value* in) const {
    for (size_t i = 0; i < frame_.in.size(); i++) {
        const std::string subject = "input '" + module_.manifest().inputs[i].name + "'";
        if (frame_.in[i].tag == CUVIL_LIST || frame_.in[i].tag == CUVIL_STRINGS)
            throw CallError{CUVIL_ERROR_TYPE, subject + " is no tensor: it cannot be bound"};
        if (frame_.in[i].tag == CUVIL_TENSOR && frame_.in[i].as.tensor.data != first_byte(in[i].as.tensor))
            throw CallError{CUVIL_ERROR_SHAPE, subject +
                                                   " cannot be bound: it must be row-major without gaps, start at "
                                                   "a multiple of its element's size, and overlap no output"};
    }
}

void BoundCall::run(const cuvil_run_options& options) {
    frame_.options = options;
    frame_.threads.enter();
    try {
        module_.start(frame_);
    } catch (...) {
        frame_.threads.leave();
        throw;
    }
    frame_.threads.leave();
}

} // namespace cuvil::rt
