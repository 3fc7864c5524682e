// The host inside static libraries: what the loader, libcuvil_rt.so, does for modules, for models that are linked into
// a program. Needs four functions of the C library and nothing of C++'s. Cuvil compiles this text beside each model; a
// program with several models keeps one copy, for which the names that begin with cuvil_ are weak.
#include "runtime/cpu_levels.hpp"
#include "runtime/static/memory.hpp"
#include "runtime/static/model.hpp"
#include "runtime/static/sentence.hpp"

extern "C" char* getenv(const char* name);

#define SHARED [[gnu::weak, gnu::visibility("hidden")]]

namespace cuvil::rt {
namespace {

thread_local char message[Sentence::size];

// ---- The host functions of programs that bring none

void run_each(const cuvil_host*, int64_t n, void (*fn)(void*, int64_t, int32_t), void* context) {
    for (int64_t i = 0; i < n; i++) fn(context, i, 0);
}

constexpr cuvil_host own_host = {sizeof(cuvil_host), run_each, allocate, release, call_nothing, nullptr, nullptr};

// ---- The level

bool same(const char* a, const char* b) {
    while (*a != 0 && *a == *b) a++, b++;
    return *a == *b;
}

// "v2, v3 and v4", of the first `count` names that name(i) gives.
template <class Name> void add_list(Sentence& text, int count, Name name) {
    if (count == 0) text.add("none");
    for (int i = 0; i < count; i++) text.add(i == 0 ? "" : i + 1 == count ? " and " : ", ").add(name(i));
}

// The best level that model and processor have, or the one that CUVIL_ISA names; null with a sentence. Threads that
// come here at once find the same.
const cuvil_level* level_of(const StaticModel& model) {
    if (const cuvil_level* known = __atomic_load_n(model.level, __ATOMIC_ACQUIRE)) return known;
    const cuvil_program& program = *model.program;
    const int offered = count_levels(this_cpu());
    const auto is_offered = [&](const char* name) {
        for (int i = 0; i < offered; i++)
            if (same(cpu_level_table[i].name, name)) return true;
        return false;
    };
    const char* forced = getenv("CUVIL_ISA");
    if (forced != nullptr && *forced == 0) forced = nullptr;
    const cuvil_level* found = nullptr;
    bool is_known = false;
    for (uint32_t i = 0; i < program.level_count; i++) {
        const cuvil_level& level = program.levels[i];
        if (forced != nullptr && !same(forced, level.name)) continue;
        is_known = true;
        if (is_offered(level.name)) found = &level;
    }
    if (found != nullptr) {
        __atomic_store_n(model.level, found, __ATOMIC_RELEASE);
        return found;
    }
    Sentence text(message);
    if (forced != nullptr) text.add("CUVIL_ISA asks for level ").add(forced).add(", ");
    if (forced == nullptr || !is_known) {
        text.add(model.name).add(" has code for the levels ");
        add_list(text, static_cast<int>(program.level_count), [&](int i) { return program.levels[i].name; });
    }
    if (forced == nullptr) text.add(", ");
    if (forced == nullptr || is_known) {
        text.add("this processor has ");
        add_list(text, offered, [](int i) { return cpu_level_table[i].name; });
    }
    return nullptr;
}

// ---- Values

// "input 'x' ", and the rest is for the caller to add.
Sentence about(const char* role, const StaticValue& spec) {
    Sentence text(message);
    text.add(role).add(" '").add(spec.name).add("' ");
    return text;
}

int64_t item_bytes(cuvil_dtype dtype) { return dtype.bits / 8; }

// The bytes of a tensor of these sizes; -1 for negative sizes, and where 63 bits do not hold them.
int64_t checked_bytes(const int64_t* shape, int32_t rank, int64_t item) {
    bool is_empty = false;
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] < 0) return -1;
        is_empty |= shape[i] == 0;
    }
    int64_t bytes = item;
    for (int32_t i = 0; i < rank && !is_empty; i++)
        if (__builtin_mul_overflow(bytes, shape[i], &bytes)) return -1;
    return is_empty ? 0 : bytes;
}

bool is_row_major(const cuvil_tensor& tensor) {
    for (int32_t i = 0; i < tensor.ndim; i++)
        if (tensor.shape[i] == 0) return true;
    int64_t expected = 1;
    for (int32_t i = tensor.ndim - 1; i >= 0 && tensor.strides != nullptr; i--) {
        if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
        expected *= tensor.shape[i];
    }
    return true;
}

// Device, dtype, order and place of a tensor whose rank is right.
int32_t check_tensor(const char* role, const StaticValue& spec, cuvil_tensor& tensor) {
    const int64_t bytes = checked_bytes(tensor.shape, tensor.ndim, item_bytes(spec.dtype));
    if (tensor.device_type != 1) {
        about(role, spec).add("is not in the CPU's memory: DLPack device type ").add(int64_t{tensor.device_type});
        return CUVIL_ERROR_TYPE;
    }
    if (tensor.dtype.code != spec.dtype.code || tensor.dtype.bits != spec.dtype.bits ||
        tensor.dtype.lanes != spec.dtype.lanes) {
        about(role, spec).add("is ").add_dtype(tensor.dtype).add(", expected ").add_dtype(spec.dtype);
        return CUVIL_ERROR_TYPE;
    }
    if (bytes < 0) {
        about(role, spec).add("has shape ").add_sizes(tensor.shape, tensor.ndim).add(", which no memory holds");
        return CUVIL_ERROR_SHAPE;
    }
    if (bytes > 0 && tensor.data == nullptr) {
        about(role, spec).add("has no data");
        return CUVIL_ERROR_TYPE;
    }
    if (!is_row_major(tensor)) {
        about(role, spec).add("must be row-major without gaps");
        return CUVIL_ERROR_SHAPE;
    }
    tensor.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    tensor.byte_offset = 0;
    tensor.strides = nullptr;
    const int64_t unit = item_bytes(spec.dtype) < 8 ? item_bytes(spec.dtype) : 8;
    if (reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uint64_t>(unit) != 0) {
        about(role, spec).add("must start at a multiple of its element's size");
        return CUVIL_ERROR_SHAPE;
    }
    return CUVIL_OK;
}

int32_t check_strings(const StaticValue& spec, const cuvil_strings& strings) {
    const int64_t count = checked_bytes(strings.shape, strings.ndim, 1);
    if (count < 0 || strings.offsets == nullptr) {
        about("input", spec).add(count < 0 ? "has a shape that no memory holds" : "has no offsets");
        return count < 0 ? CUVIL_ERROR_SHAPE : CUVIL_ERROR_TYPE;
    }
    for (int64_t i = 0; i <= count; i++) {
        if (strings.offsets[i] >= (i == 0 ? 0 : strings.offsets[i - 1])) continue;
        about("input", spec).add("has offsets that fall at element ").add(i);
        return CUVIL_ERROR_TYPE;
    }
    return CUVIL_OK;
}

// Kind and rank, which bind() takes for granted.
int32_t check_kind(const StaticValue& spec, const cuvil_value& value) {
    if (value.tag == CUVIL_NONE && spec.is_optional) return CUVIL_OK;
    if (value.tag == CUVIL_NONE) {
        about("input", spec).add("is missing");
        return CUVIL_ERROR_NAME;
    }
    if (value.tag != spec.tag) {
        about("input", spec).add(spec.tag == CUVIL_TENSOR ? "must be a tensor" : "must be a string tensor");
        return CUVIL_ERROR_TYPE;
    }
    const int32_t rank = value.tag == CUVIL_TENSOR ? value.as.tensor.ndim : value.as.strings.ndim;
    if (rank != spec.rank) {
        const char* axes = rank == 1 ? " axis, expected " : " axes, expected ";
        about("input", spec).add("has ").add(int64_t{rank}).add(axes).add(int64_t{spec.rank});
        return CUVIL_ERROR_SHAPE;
    }
    return CUVIL_OK;
}

// Fills call.inputs with what came as memory and sizes.
void make_inputs(const StaticModel& model, const StaticCall& call) {
    int64_t* shape = call.in_sizes;
    for (int32_t i = 0; i < model.input_count; i++) {
        const StaticValue& spec = model.inputs[i];
        cuvil_value& value = call.inputs[i] = {};
        void* data = call.in_data == nullptr ? nullptr : const_cast<void*>(call.in_data[i]);
        value.tag = data == nullptr && spec.is_optional ? CUVIL_NONE : spec.tag;
        if (value.tag == CUVIL_TENSOR) value.as.tensor = {data, 1, 0, spec.rank, spec.dtype, shape, nullptr, 0};
        if (value.tag == CUVIL_STRINGS) value.as.strings = {nullptr, nullptr, spec.rank, shape};
        shape += spec.rank;
    }
}

int32_t take_inputs(const StaticModel& model, const StaticCall& call) {
    if (call.in == nullptr) make_inputs(model, call);
    for (int32_t i = 0; i < model.input_count; i++) {
        const StaticValue& spec = model.inputs[i];
        cuvil_value& value = call.inputs[i];
        if (call.in != nullptr) value = call.in[i];
        call.copied[i] = false;
        int32_t status = check_kind(spec, value);
        if (status == CUVIL_OK && value.tag == CUVIL_TENSOR) status = check_tensor("input", spec, value.as.tensor);
        if (status == CUVIL_OK && value.tag == CUVIL_STRINGS) status = check_strings(spec, value.as.strings);
        if (status != CUVIL_OK) return status;
    }
    return CUVIL_OK;
}

// The sentence of a check that failed: {0} to {5} in the message are its values.
int32_t tell(const StaticModel& model, int32_t status, const cuvil_failure& failure) {
    Sentence text(message);
    if (status == CUVIL_ERROR_MEMORY) text.add("out of memory: the model could not allocate an output");
    if (status == CUVIL_ERROR_CANCELLED) text.add("the run was cancelled");
    if (status == CUVIL_ERROR_MEMORY || status == CUVIL_ERROR_CANCELLED) return status;
    if (failure.check < 0 || failure.check >= model.check_count) {
        text.add("check ").add(failure.check).add(" of the model failed");
        return status;
    }
    const StaticCheck& check = model.checks[failure.check];
    for (const char* at = check.message; *at != 0; at++) {
        if (at[0] == '{' && at[1] >= '0' && at[1] <= '5' && at[2] == '}') {
            text.add(failure.values[at[1] - '0']);
            at += 2;
        } else {
            text.add(*at);
        }
    }
    if (*check.node != 0) text.add(" (in '").add(check.node).add("')");
    return status;
}

// The sizes of an output; false where they are known only after the run.
bool known_shape(const StaticValue& spec, const int64_t* dims, int64_t* shape) {
    if (spec.tag != CUVIL_TENSOR) return false;
    for (int32_t i = 0; i < spec.rank; i++) {
        const StaticAxis& axis = spec.axes[i];
        shape[i] = axis.dim >= 0 ? dims[axis.dim] : axis.size;
        if (axis.dim == StaticAxis::known_after_run || shape[i] < 0) return false;
    }
    return true;
}

// A tensor of this shape: at `data`, or in a block of the host's that holds the shape, too.
int32_t new_tensor(const cuvil_host& host, const StaticValue& spec, int64_t* shape, void* data, cuvil_value& value) {
    const int64_t bytes = checked_bytes(shape, spec.rank, item_bytes(spec.dtype));
    char* block = nullptr;
    if (data == nullptr && bytes >= 0) {
        const uint64_t shape_at = (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
        const uint64_t shape_bytes = static_cast<uint64_t>(spec.rank) * sizeof(int64_t);
        block = static_cast<char*>(host.alloc(&host, shape_at + shape_bytes));
        if (block == nullptr) {
            about("output", spec).add("needs ").add(bytes).add(" bytes: out of memory");
            return CUVIL_ERROR_MEMORY;
        }
        auto* own_shape = reinterpret_cast<int64_t*>(block + shape_at);
        for (int32_t i = 0; i < spec.rank; i++) own_shape[i] = shape[i];
        shape = own_shape;
        data = block;
    }
    value.tag = CUVIL_TENSOR;
    value.owner = block;
    value.as.tensor = {data, 1, 0, spec.rank, spec.dtype, shape, nullptr, 0};
    return bytes >= 0 ? CUVIL_OK : check_tensor("output", spec, value.as.tensor);
}

int32_t take_output(const cuvil_host& host, const StaticValue& spec, const cuvil_value& given, const int64_t* dims,
                    int64_t* shape, cuvil_value& value) {
    const bool is_known = known_shape(spec, dims, shape);
    if (given.tag == CUVIL_NONE) return is_known ? new_tensor(host, spec, shape, nullptr, value) : CUVIL_OK;
    if (!is_known) {
        about("output", spec).add("has a size that is known only after the run: leave it to the model");
        return CUVIL_ERROR_TYPE;
    }
    if (given.tag != CUVIL_TENSOR) {
        about("output", spec).add("must be a tensor");
        return CUVIL_ERROR_TYPE;
    }
    const cuvil_tensor& tensor = given.as.tensor;
    bool fits = tensor.ndim == spec.rank;
    for (int32_t i = 0; i < spec.rank && fits; i++) fits = tensor.shape[i] == shape[i];
    if (!fits) {
        about("output", spec)
            .add("has shape ")
            .add_sizes(tensor.shape, tensor.ndim < 0 ? 0 : tensor.ndim)
            .add(", expected ")
            .add_sizes(shape, spec.rank);
        return CUVIL_ERROR_SHAPE;
    }
    value = given;
    value.owner = nullptr;
    return check_tensor("output", spec, value.as.tensor);
}

int32_t take_outputs(const StaticModel& model, const StaticCall& call, const cuvil_host& host) {
    for (int32_t i = 0; i < model.output_count; i++) call.outputs[i] = {};
    int64_t* shape = call.out_sizes;
    for (int32_t i = 0; i < model.output_count; i++) {
        const StaticValue& spec = model.outputs[i];
        cuvil_value& value = call.outputs[i];
        int32_t status = CUVIL_OK;
        if (call.out != nullptr) {
            status = take_output(host, spec, call.out[i], call.dims, shape, value);
        } else {
            known_shape(spec, call.dims, shape);
            value.tag = CUVIL_TENSOR;
            value.as.tensor = {call.out_data[i], 1, 0, spec.rank, spec.dtype, shape, nullptr, 0};
            status = check_tensor("output", spec, value.as.tensor);
        }
        if (status != CUVIL_OK) return status;
        shape += spec.rank;
    }
    return CUVIL_OK;
}

// Copies inputs that an output of the caller's overlaps: the model may write before it has read all.
int32_t separate_inputs(const StaticModel& model, const StaticCall& call, const cuvil_host& host) {
    const auto bytes_of = [](const cuvil_tensor& t) { return checked_bytes(t.shape, t.ndim, item_bytes(t.dtype)); };
    for (int32_t i = 0; i < model.input_count; i++) {
        if (call.inputs[i].tag != CUVIL_TENSOR) continue;
        cuvil_tensor& tensor = call.inputs[i].as.tensor;
        const int64_t size = bytes_of(tensor);
        const auto* begin = static_cast<const char*>(tensor.data);
        bool overlaps = false;
        for (int32_t o = 0; o < model.output_count; o++) {
            if (call.outputs[o].tag != CUVIL_TENSOR || call.outputs[o].owner != nullptr) continue;
            const auto* out = static_cast<const char*>(call.outputs[o].as.tensor.data);
            overlaps |= size > 0 && begin < out + bytes_of(call.outputs[o].as.tensor) && out < begin + size;
        }
        if (!overlaps) continue;
        auto* copy = static_cast<char*>(host.alloc(&host, static_cast<uint64_t>(size)));
        if (copy == nullptr) {
            about("input", model.inputs[i]).add("overlaps an output, and there is no memory for a copy");
            return CUVIL_ERROR_MEMORY;
        }
        __builtin_memcpy(copy, begin, static_cast<uint64_t>(size));
        tensor.data = copy;
        call.copied[i] = true;
    }
    return CUVIL_OK;
}

int32_t run_level(const StaticModel& model, const StaticCall& call, const cuvil_host& host, const cuvil_level& level) {
    const int32_t threads = call.host == nullptr || call.threads < 1 ? 1 : call.threads;
    const uint64_t needed = model.program->workspace_size(call.dims, threads);
    void* own = nullptr;
    void* workspace = nullptr;
    if (call.workspace != nullptr) {
        const uint64_t past = reinterpret_cast<uintptr_t>(call.workspace) % workspace_alignment;
        workspace = static_cast<char*>(call.workspace) + (workspace_alignment - past) % workspace_alignment;
    } else {
        workspace = own = needed == UINT64_MAX ? nullptr : host.alloc(&host, needed);
        if (own == nullptr) {
            if (needed == UINT64_MAX)
                Sentence(message).add("the workspace for these shapes is larger than any memory");
            else
                Sentence(message)
                    .add("out of memory: the workspace for these shapes has ")
                    .add(static_cast<int64_t>(needed))
                    .add(" bytes");
            return CUVIL_ERROR_MEMORY;
        }
    }
    cuvil_failure failure = {-1, {}};
    const cuvil_call run = {sizeof run,   &host,   model.weights, workspace, call.dims, call.inputs,
                            call.outputs, nullptr, call.cancel,   &failure,  threads};
    const int32_t status = level.run(&run);
    if (own != nullptr) host.free(&host, own);
    return status == CUVIL_OK ? status : tell(model, status, failure);
}

int32_t run_bound(const StaticModel& model, const StaticCall& call, const cuvil_host& host, const cuvil_level& level) {
    int32_t status = take_outputs(model, call, host);
    if (status == CUVIL_OK) status = separate_inputs(model, call, host);
    if (status == CUVIL_OK) status = run_level(model, call, host, level);
    for (int32_t i = 0; i < model.input_count; i++)
        if (call.copied[i]) host.free(&host, call.inputs[i].as.tensor.data);
    for (int32_t i = 0; i < model.output_count && call.out != nullptr; i++) {
        if (call.out[i].tag != CUVIL_NONE) continue;
        if (status == CUVIL_OK)
            call.out[i] = call.outputs[i];
        else if (call.outputs[i].owner != nullptr)
            host.free(&host, call.outputs[i].owner);
    }
    return status;
}

} // namespace
} // namespace cuvil::rt

using namespace cuvil::rt;

extern "C" {

SHARED int32_t cuvil_static_run_1(const StaticModel* model, const StaticCall* call) {
    const cuvil_host& host = call->host != nullptr ? *call->host : own_host;
    const bool has_inputs = call->in != nullptr || call->in_data != nullptr || model->input_count == 0;
    if (!has_inputs || (call->out == nullptr && call->out_data == nullptr)) {
        Sentence(message).add(has_inputs ? "there is no room for the outputs" : "there are no inputs");
        return CUVIL_ERROR_NAME;
    }
    const cuvil_level* level = level_of(*model);
    if (level == nullptr) return CUVIL_ERROR_FILE;
    if (int32_t status = take_inputs(*model, *call); status != CUVIL_OK) return status;
    cuvil_failure failure = {-1, {}};
    if (int32_t status = model->program->bind(call->inputs, call->dims, &failure); status != CUVIL_OK)
        return tell(*model, status, failure);
    return run_bound(*model, *call, host, *level);
}

SHARED uint64_t cuvil_static_workspace_1(const StaticModel* model, const StaticCall* call) {
    if (level_of(*model) == nullptr) return UINT64_MAX;
    make_inputs(*model, *call);
    const int64_t* shape = call->in_sizes;
    for (int32_t i = 0; i < model->input_count; i++) {
        const StaticValue& spec = model->inputs[i];
        const int64_t item = spec.tag == CUVIL_TENSOR ? item_bytes(spec.dtype) : 1;
        if (call->inputs[i].tag != CUVIL_NONE && checked_bytes(shape, spec.rank, item) < 0) return UINT64_MAX;
        shape += spec.rank;
    }
    if (model->program->bind(call->inputs, call->dims, nullptr) != CUVIL_OK) return UINT64_MAX;
    const uint64_t bytes = model->program->workspace_size(call->dims, 1);
    return bytes > UINT64_MAX - workspace_alignment ? UINT64_MAX : bytes + workspace_alignment - 1;
}

SHARED const char* cuvil_static_message_1(void) { return message; }

// As in cuvil.h, for values whose memory came from this host.
SHARED void cuvil_value_release(cuvil_value* value) {
    if (value == nullptr) return;
    for (int64_t i = 0; value->tag == CUVIL_LIST && i < value->as.list.count; i++)
        cuvil_value_release(&value->as.list.items[i]);
    free(value->owner);
    *value = {};
}

} // extern "C"
