// y[i] = table[index[i]], table: f32[N], index: i64[M], and an optional input of N+M elements that is added.
#include "module.hpp"

static int32_t bind(const cuvil_value* in, int64_t* dims, cuvil_failure*) {
    dims[0] = size(in[0], 0);
    dims[1] = size(in[1], 0);
    dims[2] = dims[0] + dims[1];
    return CUVIL_OK;
}

static uint64_t workspace_size(const int64_t*, int32_t) { return 0; }

static int32_t run(const cuvil_call* call, int32_t) {
    const int64_t* index = data<int64_t>(call->in[1]);
    for (int64_t i = 0; i < call->dims[1]; i++) {
        if (index[i] < 0 || index[i] >= call->dims[0]) {
            *call->failure = {0, {index[i], call->dims[0]}};
            return CUVIL_ERROR_MODEL;
        }
        data<float>(call->out[0])[i] = data<float>(call->in[0])[index[i]];
        if (call->in[2].tag != CUVIL_NONE) data<float>(call->out[0])[i] += data<float>(call->in[2])[i];
    }
    return CUVIL_OK;
}

CUVIL_EXPORT const cuvil_program cuvil_program_1 = program<run>(3, bind, workspace_size);
