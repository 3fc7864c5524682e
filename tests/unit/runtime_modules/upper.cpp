// y = x in capitals, strings[N].
#include "module.hpp"

static int32_t bind(const cuvil_value* in, int64_t* dims, cuvil_failure*) {
    dims[0] = in[0].as.strings.shape[0];
    return CUVIL_OK;
}

static uint64_t workspace_size(const int64_t*, int32_t) { return 0; }

static int32_t run(const cuvil_call* call, int32_t) {
    const cuvil_strings& x = call->in[0].as.strings;
    const int64_t count = call->dims[0];
    const int64_t bytes = x.offsets[count] - x.offsets[0];
    int64_t* block = static_cast<int64_t*>(call->host->alloc(call->host, (count + 2) * 8 + bytes));
    if (!block) return CUVIL_ERROR_MEMORY;
    char* text = reinterpret_cast<char*>(block + count + 2);
    block[0] = count;
    for (int64_t i = 0; i <= count; i++) block[1 + i] = x.offsets[i] - x.offsets[0];
    for (int64_t i = 0; i < bytes; i++) {
        const char c = x.bytes[x.offsets[0] + i];
        text[i] = c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
    }
    call->out[0].tag = CUVIL_STRINGS;
    call->out[0].owner = block;
    call->out[0].as.strings = {block + 1, text, 1, block};
    return CUVIL_OK;
}

CUVIL_EXPORT const cuvil_program cuvil_program_1 = program<run>(1, bind, workspace_size);
