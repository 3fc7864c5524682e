/* Runs a module once to warm up, then once between two marks that a tracer sees, and counts allocations between them.
 *
 *     steady_run MODULE THREADS INPUT_SHAPE OUTPUT_SHAPE      (shapes: 1x3x224x224; f32)
 *
 * The marks are calls of getppid. Exits with 1 if the marked run allocated, or failed.
 */
#include "cuvil/cuvil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_memalign(size_t, size_t);
static long allocations;

void* malloc(size_t bytes) {
    allocations++;
    return __libc_malloc(bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
    allocations++;
    return __libc_memalign(alignment, bytes);
}

static cuvil_value tensor(const char* text, int64_t* shape) {
    cuvil_value v;
    memset(&v, 0, sizeof v);
    v.tag = CUVIL_TENSOR;
    int64_t count = 1;
    while (*text) {
        char* end;
        shape[v.as.tensor.ndim] = strtoll(text, &end, 10);
        count *= shape[v.as.tensor.ndim++];
        text = *end ? end + 1 : end;
    }
    float* data = __libc_memalign(64, (size_t)count * sizeof *data);
    for (int64_t i = 0; i < count; i++) data[i] = (float)(i % 251) / 251;
    v.as.tensor.data = data;
    v.as.tensor.device_type = 1;
    v.as.tensor.dtype = (cuvil_dtype){2, 32, 1};
    v.as.tensor.shape = shape;
    return v;
}

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    cuvil_module* module;
    if (cuvil_load(argv[1], atoi(argv[2]), &module) != CUVIL_OK) {
        fprintf(stderr, "%s\n", cuvil_error_message());
        return 1;
    }
    int64_t in_shape[8], out_shape[8];
    cuvil_value in = tensor(argv[3], in_shape), out = tensor(argv[4], out_shape);
    if (cuvil_run(module, &in, &out) != CUVIL_OK) {
        fprintf(stderr, "%s\n", cuvil_error_message());
        return 1;
    }
    allocations = 0;
    getppid();
    int32_t status = cuvil_run(module, &in, &out);
    getppid();
    long counted = allocations;
    printf("status %d, allocations %ld\n", status, counted);
    cuvil_unload(module);
    return status != CUVIL_OK || counted != 0;
}
