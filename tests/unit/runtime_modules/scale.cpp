// y = 2 * x + weights, x: f32[N,4]; `level` tells which level ran. Goes through the workspace, a row per item.
#include "module.hpp"

static int32_t bind(const cuvil_value* in, int64_t* dims, cuvil_failure*) {
    dims[0] = size(in[0], 0);
    return CUVIL_OK;
}

static uint64_t workspace_size(const int64_t* dims, int32_t) { return dims[0] * 16; }

static void double_row(void* context, int64_t row, int32_t) {
    const cuvil_call* call = static_cast<const cuvil_call*>(context);
    const float* x = data<float>(call->in[0]) + row * 4;
    float* scratch = static_cast<float*>(call->workspace) + row * 4;
    for (int i = 0; i < 4; i++) scratch[i] = 2 * x[i];
}

static int32_t run(const cuvil_call* call, int32_t level) {
    const int64_t rows = call->dims[0];
    call->host->parallel_for(call->host, rows, double_row, const_cast<cuvil_call*>(call));
    const float* weights = static_cast<const float*>(call->weights);
    const float* scratch = static_cast<const float*>(call->workspace);
    float* y = data<float>(call->out[0]);
    for (int64_t i = 0; i < rows * 4; i++) y[i] = scratch[i] + (weights ? weights[i % 4] : 0);
    *data<int32_t>(call->out[1]) = level;
    return CUVIL_OK;
}

CUVIL_EXPORT const cuvil_program cuvil_program_1 = program<run>(1, bind, workspace_size);
