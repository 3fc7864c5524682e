/* Runs a module through libcuvil_rt.so. One argument for each input, in the module's order: its shape, and optionally
 * a file of raw float32 values, zeros without one.
 *
 *     example resnet18.cuvil 1x3x224x224=cat.raw
 */
#include <cuvil/cuvil.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, MOST_AXES = 8, SHOWN = 8 };

static int fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    return 1;
}

/* "1x3x224x224=cat.raw" -> shape and data; 0 on success. */
static int make_input(const char* text, int64_t* shape, cuvil_value* value) {
    int32_t axes = 0;
    int64_t count = 1;
    while (*text && *text != '=') {
        char* end;
        if (axes == MOST_AXES) return fail("too many axes");
        shape[axes] = strtoll(text, &end, 10);
        if (end == text || shape[axes] < 0) return fail("a shape reads 1x3x224x224");
        count *= shape[axes++];
        text = *end == 'x' ? end + 1 : end;
        if (*end && *end != 'x' && *end != '=') return fail("a shape reads 1x3x224x224");
    }
    float* data = calloc(count ? count : 1, sizeof *data);
    if (!data) return fail("out of memory");
    if (*text == '=') {
        FILE* file = fopen(text + 1, "rb");
        size_t read = file ? fread(data, sizeof *data, count, file) : 0;
        if (!file || read != (size_t)count) return fail("the file does not hold that many floats");
        fclose(file);
    }
    memset(value, 0, sizeof *value);
    value->tag = CUVIL_TENSOR;
    value->as.tensor.data = data;
    value->as.tensor.device_type = 1; /* the CPU */
    value->as.tensor.ndim = axes;
    value->as.tensor.dtype.code = 2; /* float */
    value->as.tensor.dtype.bits = 32;
    value->as.tensor.dtype.lanes = 1;
    value->as.tensor.shape = shape;
    return 0;
}

static void show(const char* name, const cuvil_value* value) {
    printf("%s:", name);
    if (value->tag != CUVIL_TENSOR) {
        printf(" not a tensor\n");
        return;
    }
    const cuvil_tensor* tensor = &value->as.tensor;
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        printf("%s%lld", i ? "x" : " ", (long long)tensor->shape[i]);
        count *= tensor->shape[i];
    }
    printf(" =");
    for (int64_t i = 0; i < count && i < SHOWN; i++) {
        if (tensor->dtype.code == 2 && tensor->dtype.bits == 32)
            printf(" %g", ((const float*)tensor->data)[i]);
        else if (tensor->dtype.code == 0 && tensor->dtype.bits == 64)
            printf(" %lld", (long long)((const int64_t*)tensor->data)[i]);
        else
            printf(" ?");
    }
    printf("%s\n", count > SHOWN ? " ..." : "");
}

int main(int argc, char** argv) {
    if (argc < 2) return fail("usage: example MODULE.cuvil [SHAPE[=FILE.raw]]...");
    cuvil_module* module;
    if (cuvil_load(argv[1], 0, &module) != CUVIL_OK) return fail(cuvil_error_message());
    const int inputs = cuvil_input_count(module), outputs = cuvil_output_count(module);
    if (inputs > MOST || outputs > MOST) return fail("more inputs or outputs than this example has room for");
    printf("level %s\n", cuvil_level_name(module));
    for (int i = 0; i < inputs; i++) printf("input %s\n", cuvil_input_name(module, i));
    for (int i = 0; i < outputs; i++) printf("output %s\n", cuvil_output_name(module, i));
    if (argc != 2 + inputs) return fail("give a shape for each input");

    static int64_t shapes[MOST][MOST_AXES];
    cuvil_value in[MOST], out[MOST];
    memset(out, 0, sizeof out); /* CUVIL_NONE: the loader allocates */
    for (int i = 0; i < inputs; i++)
        if (make_input(argv[2 + i], shapes[i], &in[i]) != 0) return 1;
    if (cuvil_run(module, in, out) != CUVIL_OK) return fail(cuvil_error_message());
    for (int i = 0; i < outputs; i++) {
        show(cuvil_output_name(module, i), &out[i]);
        cuvil_value_release(&out[i]);
    }
    for (int i = 0; i < inputs; i++) free(in[i].as.tensor.data);
    cuvil_unload(module);
    return 0;
}
