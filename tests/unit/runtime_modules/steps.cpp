// `count` steps of y = y * 3 + i over y: i64[N], each on all threads; the first starts from x. Traced, and cancelled
// between steps, as compiled modules are.
#include "module.hpp"

static int32_t bind(const cuvil_value* in, int64_t* dims, cuvil_failure*) {
    dims[0] = size(in[0], 0);
    return CUVIL_OK;
}

// One word for each worker: set while it is inside an item, so two threads with one number are found out.
static uint64_t workspace_size(const int64_t*, int32_t threads) { return (threads + 1) * 64; }

static void step(void* context, int64_t i, int32_t worker) {
    const cuvil_call* call = static_cast<const cuvil_call*>(context);
    int64_t* words = static_cast<int64_t*>(call->workspace);
    int64_t* y = data<int64_t>(call->out[0]);
    if (worker < 0 || worker >= call->threads || __atomic_exchange_n(&words[8 * (worker + 1)], 1, __ATOMIC_ACQUIRE))
        __atomic_store_n(&words[0], 1, __ATOMIC_RELAXED);
    else
        y[i] = y[i] * 3 + i;
    __atomic_store_n(&words[8 * (worker + 1)], 0, __ATOMIC_RELEASE);
}

static int32_t run(const cuvil_call* call, int32_t) {
    int64_t* words = static_cast<int64_t*>(call->workspace);
    for (int32_t i = 0; i <= call->threads; i++) words[8 * i] = 0;
    const int64_t n = call->dims[0];
    for (int64_t i = 0; i < n; i++) data<int64_t>(call->out[0])[i] = data<int64_t>(call->in[0])[i];
    const cuvil_host* host = call->host;
    for (int64_t s = 0; s < *data<int64_t>(call->in[1]); s++) {
        if (host->trace) host->trace(host, static_cast<int32_t>(s), 0);
        host->parallel_for(host, n, step, const_cast<cuvil_call*>(call));
        if (host->trace) host->trace(host, static_cast<int32_t>(s), 1);
        if (call->cancel && __atomic_load_n(call->cancel, __ATOMIC_RELAXED)) return CUVIL_ERROR_CANCELLED;
    }
    if (words[0] == 0) return CUVIL_OK;
    *call->failure = {0, {}};
    return CUVIL_ERROR_MODEL;
}

CUVIL_EXPORT const cuvil_program cuvil_program_1 = program<run>(1, bind, workspace_size);
