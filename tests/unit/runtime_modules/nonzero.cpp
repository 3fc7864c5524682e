// y = the indices of the nonzero elements of x: i64[N]; `parts` = a list with each of them as a tensor of its own.
#include "module.hpp"

static int32_t bind(const cuvil_value* in, int64_t* dims, cuvil_failure*) {
    dims[0] = size(in[0], 0);
    return CUVIL_OK;
}

static uint64_t workspace_size(const int64_t*, int32_t) { return 0; }

static bool new_vector(const cuvil_host* host, int64_t count, cuvil_value* value) {
    int64_t* block = static_cast<int64_t*>(host->alloc(host, (count + 1) * 8));
    if (!block) return false;
    block[count] = count;
    value->tag = CUVIL_TENSOR;
    value->owner = block;
    value->as.tensor = {block, 1, 0, 1, {0, 64, 1}, block + count, nullptr, 0};
    return true;
}

static int32_t run(const cuvil_call* call, int32_t) {
    const int64_t* x = data<int64_t>(call->in[0]);
    int64_t found = 0;
    for (int64_t i = 0; i < call->dims[0]; i++) found += x[i] != 0;
    cuvil_value* items = static_cast<cuvil_value*>(call->host->alloc(call->host, found * sizeof(cuvil_value)));
    if (!items) return CUVIL_ERROR_MEMORY;
    call->out[1].tag = CUVIL_LIST;
    call->out[1].owner = items;
    call->out[1].as.list = {0, items};
    if (!new_vector(call->host, found, &call->out[0])) return CUVIL_ERROR_MEMORY;
    for (int64_t i = 0, at = 0; i < call->dims[0]; i++) {
        if (x[i] == 0) continue;
        items[at] = {};
        if (!new_vector(call->host, 1, &items[at])) return CUVIL_ERROR_MEMORY;
        call->out[1].as.list.count++;
        *data<int64_t>(items[at]) = i;
        data<int64_t>(call->out[0])[at++] = i;
        if (x[i] < 0) { // fails with both outputs half built
            *call->failure = {0, {x[i]}};
            return CUVIL_ERROR_MODEL;
        }
    }
    return CUVIL_OK;
}

CUVIL_EXPORT const cuvil_program cuvil_program_1 = program<run>(1, bind, workspace_size);
