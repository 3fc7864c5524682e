/* A host without libcuvil_rt.so: a module of float32 tensors on one thread, in C99 with nothing but the C library,
 * glibc or musl. It trusts the file and checks neither its hash nor its manifest: the caller knows the shapes.
 *
 *     gcc -I include examples/c/minimal_host.c -ldl -o minimal_host
 *     ./minimal_host ./resnet18.cuvil v2 1x3x224x224=cat.raw : 1x1000
 *
 * takes the module, as a path with a slash, the level (it cannot ask the processor), the inputs, a colon, and the
 * outputs; an output written as - is one whose shape the module finds while running, all others need their sizes.
 */
#include "cuvil/cuvil.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, MOST_AXES = 8, MOST_DIMS = 1024, SHOWN = 8 };

static void* allocate(uint64_t bytes) { /* at a multiple of 64, zeroed; never given back */
    char* block = calloc(1, bytes + 64);
    if (!block) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return block + (64 - (uintptr_t)block % 64) % 64;
}

static void fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* The bytes of section .cuvil.weights: it is in the file, but the dynamic linker does not map it. */
static const void* read_weights(const char* path) {
    FILE* file = fopen(path, "rb");
    Elf64_Ehdr header;
    if (!file || fread(&header, sizeof header, 1, file) != 1) fail("cannot read the module");
    Elf64_Shdr* sections = allocate(sizeof *sections * header.e_shnum);
    fseek(file, (long)header.e_shoff, SEEK_SET);
    if (fread(sections, sizeof *sections, header.e_shnum, file) != header.e_shnum) fail("cannot read the sections");
    const Elf64_Shdr* table = &sections[header.e_shstrndx];
    char* names = allocate(table->sh_size + 1);
    fseek(file, (long)table->sh_offset, SEEK_SET);
    if (fread(names, 1, table->sh_size, file) != table->sh_size) fail("cannot read the section names");
    void* weights = NULL;
    for (int i = 0; i < header.e_shnum; i++) {
        if (strcmp(names + sections[i].sh_name, ".cuvil.weights") != 0) continue;
        weights = allocate(sections[i].sh_size);
        fseek(file, (long)sections[i].sh_offset, SEEK_SET);
        if (fread(weights, 1, sections[i].sh_size, file) != sections[i].sh_size) fail("cannot read the weights");
    }
    fclose(file);
    return weights;
}

/* "1x3x224x224=cat.raw": a float tensor, zero without a file; "-": CUVIL_NONE. */
static cuvil_value make_value(const char* text) {
    cuvil_value value;
    memset(&value, 0, sizeof value);
    if (strcmp(text, "-") == 0) return value;
    int64_t count = 1, *shape = allocate(MOST_AXES * sizeof *shape);
    int32_t axes = 0;
    while (*text && *text != '=' && axes < MOST_AXES) {
        char* end;
        shape[axes] = strtoll(text, &end, 10);
        count *= shape[axes++];
        if (end == text || count < 0) fail("a shape reads 1x3x224x224");
        text = *end == 'x' ? end + 1 : end;
    }
    value.tag = CUVIL_TENSOR;
    value.as.tensor.data = allocate((uint64_t)count * sizeof(float));
    value.as.tensor.device_type = 1;
    value.as.tensor.ndim = axes;
    value.as.tensor.dtype.code = 2;
    value.as.tensor.dtype.bits = 32;
    value.as.tensor.dtype.lanes = 1;
    value.as.tensor.shape = shape;
    if (*text == '=') {
        FILE* file = fopen(text + 1, "rb");
        if (!file || fread(value.as.tensor.data, sizeof(float), (size_t)count, file) != (size_t)count)
            fail("the file does not hold that many floats");
        fclose(file);
    }
    return value;
}

/* The host's side of the interface. */
static void run_each(const cuvil_host* host, int64_t n, void (*fn)(void*, int64_t, int32_t), void* context) {
    (void)host;
    for (int64_t i = 0; i < n; i++) fn(context, i, 0);
}
static void* host_alloc(const cuvil_host* host, uint64_t bytes) {
    (void)host;
    return allocate(bytes);
}
static void host_free(const cuvil_host* host, void* block) {
    (void)host;
    (void)block;
}

int main(int argc, char** argv) {
    static int64_t dims[MOST_DIMS];
    static cuvil_value in[MOST], out[MOST];
    if (argc < 3) fail("usage: minimal_host ./MODULE.cuvil LEVEL INPUT... : OUTPUT...");
    int inputs = 0, outputs = 0, arg = 3;
    for (; arg < argc && strcmp(argv[arg], ":") != 0 && inputs < MOST; arg++) in[inputs++] = make_value(argv[arg]);
    for (arg++; arg < argc && outputs < MOST; arg++) out[outputs++] = make_value(argv[arg]);

    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(dlerror());
    const cuvil_program* program = dlsym(library, "cuvil_program_1");
    if (!program || program->abi_version != CUVIL_ABI_VERSION) fail("not a module of this interface");
    const cuvil_level* level = NULL;
    for (uint32_t i = 0; i < program->level_count; i++)
        if (strcmp(program->levels[i].name, argv[2]) == 0) level = &program->levels[i];
    if (!level) fail("the module has no such level");

    cuvil_failure failure = {-1, {0}};
    if (program->dim_count > MOST_DIMS || program->bind(in, dims, &failure) != CUVIL_OK)
        fail("these shapes do not fit");
    const cuvil_host host = {sizeof host, run_each, host_alloc, host_free, NULL, NULL, NULL};
    cuvil_call call = {sizeof call, &host, read_weights(argv[1]), NULL, dims, in, out, NULL, NULL, &failure, 1};
    call.workspace = allocate(program->workspace_size(dims, 1));
    const int32_t status = level->run(&call);
    if (status != CUVIL_OK) {
        fprintf(stderr, "the module failed with status %d, check %lld\n", (int)status, (long long)failure.check);
        return 1;
    }
    for (int i = 0; i < outputs; i++) {
        const cuvil_tensor* tensor = &out[i].as.tensor;
        int64_t count = 1;
        for (int32_t axis = 0; axis < tensor->ndim; axis++) count *= tensor->shape[axis];
        for (int64_t k = 0; k < count && k < SHOWN; k++) printf("%g ", ((const float*)tensor->data)[k]);
        printf("%s\n", count > SHOWN ? "..." : "");
    }
    dlclose(library);
    return 0;
}
