/* A program that loads a module with libcuvil_rt, runs it once on one thread, and tells when it was done.
 *
 *     first_output MODULE.cuvil OUTPUT.raw TYPE:SHAPE=FILE.raw...      a word for each input, as i64:1x128=tokens.raw
 *
 * Prints the time on the machine's steady clock, in seconds, and the most memory that the process has had, in bytes.
 * OUTPUT.raw takes the values of the first output.
 */
#include <cuvil/cuvil.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 16, MOST_AXES = 8 };

static void fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static size_t bytes_of(const cuvil_tensor* tensor) {
    size_t bytes = tensor->dtype.bits / 8;
    for (int32_t i = 0; i < tensor->ndim; i++) bytes *= (size_t)tensor->shape[i];
    return bytes;
}

static void read_input(const char* text, int64_t* shape, cuvil_value* value) {
    cuvil_tensor* tensor = &value->as.tensor;
    value->tag = CUVIL_TENSOR;
    tensor->device_type = 1; /* the CPU */
    tensor->dtype.code = *text == 'f' ? 2 : 0;
    tensor->dtype.lanes = 1;
    tensor->shape = shape;
    char* end;
    tensor->dtype.bits = (uint8_t)strtol(text + 1, &end, 10);
    while (*end == ':' || *end == 'x') {
        if (tensor->ndim == MOST_AXES) fail("too many axes");
        shape[tensor->ndim++] = strtoll(end + 1, &end, 10);
    }
    if (*end != '=') fail("an input reads TYPE:SHAPE=FILE");
    const size_t bytes = bytes_of(tensor);
    tensor->data = malloc(bytes);
    FILE* file = fopen(end + 1, "rb");
    if (!tensor->data || !file || fread(tensor->data, 1, bytes, file) != bytes) fail("cannot read an input");
    fclose(file);
}

static long long peak_bytes(void) {
    char line[128];
    long long kilobytes = 0;
    FILE* file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "VmHWM: %lld", &kilobytes) != 1) {
    }
    if (file) fclose(file);
    return kilobytes * 1024;
}

int main(int argc, char** argv) {
    const int inputs = argc - 3;
    if (inputs < 0 || inputs > MOST) fail("usage: first_output MODULE OUTPUT [TYPE:SHAPE=FILE]...");
    static int64_t shapes[MOST][MOST_AXES];
    static cuvil_value in[MOST], out[MOST]; /* CUVIL_NONE: the loader allocates */
    cuvil_module* module;
    if (cuvil_load(argv[1], 1, &module) != CUVIL_OK) fail(cuvil_error_message());
    if (cuvil_input_count(module) != inputs || cuvil_output_count(module) > MOST) fail("another number of inputs");
    for (int i = 0; i < inputs; i++) read_input(argv[3 + i], shapes[i], &in[i]);
    if (cuvil_run(module, in, out) != CUVIL_OK) fail(cuvil_error_message());

    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    printf("%lld.%09ld %lld\n", (long long)time.tv_sec, time.tv_nsec, peak_bytes());
    FILE* file = fopen(argv[2], "wb");
    const size_t bytes = bytes_of(&out[0].as.tensor);
    if (!file || fwrite(out[0].as.tensor.data, 1, bytes, file) != bytes || fclose(file) != 0) fail("cannot write");
    return 0;
}
