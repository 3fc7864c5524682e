/* Cuvil's C interface. The first half is the ABI between a compiled module and whoever runs it; the second half is
 * the loader, libcuvil_rt.so, which plays that host. Structs start with their size and only ever grow at the end. */
#ifndef CUVIL_CUVIL_H
#define CUVIL_CUVIL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUVIL_ABI_VERSION 1u

/* ---- Values ------------------------------------------------------------------------------------------------- */

typedef struct cuvil_dtype { /* DLPack's DLDataType: code 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool */
    uint8_t code;
    uint8_t bits;
    uint16_t lanes; /* 1 */
} cuvil_dtype;

typedef struct cuvil_tensor { /* the memory layout of DLPack's DLTensor */
    void* data;
    int32_t device_type; /* 1: CPU */
    int32_t device_id;
    int32_t ndim;
    cuvil_dtype dtype;
    int64_t* shape;
    int64_t* strides; /* in elements; NULL: row-major without gaps */
    uint64_t byte_offset;
} cuvil_tensor;

typedef struct cuvil_strings { /* element i is bytes[offsets[i]] up to bytes[offsets[i + 1]] */
    int64_t* offsets;          /* one more than there are elements */
    char* bytes;
    int32_t ndim;
    int64_t* shape;
} cuvil_strings;

typedef struct cuvil_list {
    int64_t count;
    struct cuvil_value* items;
} cuvil_list;

enum { CUVIL_NONE = 0, CUVIL_TENSOR = 1, CUVIL_STRINGS = 2, CUVIL_LIST = 3 };

typedef struct cuvil_value {
    int32_t tag;
    int32_t reserved;
    void* owner; /* the block to give back, by cuvil_value_release or host->free; NULL: the caller's memory */
    union {
        cuvil_tensor tensor;
        cuvil_strings strings;
        cuvil_list list;
    } as;
} cuvil_value;

/* ---- What a module asks of its host ---------------------------------------------------------------------------- */

typedef struct cuvil_host {
    uint64_t size;
    /* Calls fn(ctx, i, worker) once for each i in [0, n), in any order, worker in [0, threads); returns after all. */
    void (*parallel_for)(const struct cuvil_host*, int64_t n, void (*fn)(void*, int64_t, int32_t), void* ctx);
    void* (*alloc)(const struct cuvil_host*, uint64_t bytes); /* 64-byte aligned; NULL: out of memory */
    void (*free)(const struct cuvil_host*, void* block);
    int32_t (*call)(const struct cuvil_host*, int32_t function, const cuvil_value* in, cuvil_value* out);
    void (*trace)(const struct cuvil_host*, int32_t step, int32_t is_end); /* may be NULL */
    void* data;
} cuvil_host;

typedef struct cuvil_failure { /* check: index into the manifest's "checks", whose sentence takes the values */
    int64_t check;
    int64_t values[6];
} cuvil_failure;

typedef struct cuvil_call {
    uint64_t size;
    const cuvil_host* host;
    const void* weights;   /* the file's weights section, 64-byte aligned */
    void* workspace;       /* workspace_size(dims, threads) bytes, 64-byte aligned, any content */
    const int64_t* dims;   /* as bind() filled them */
    const cuvil_value* in; /* row-major without gaps; CUVIL_NONE where the input has a default */
    cuvil_value* out;      /* tensors of known shape are given; others are CUVIL_NONE and come from host->alloc */
    void* state;           /* the mutable buffers of one instance; NULL where the manifest names none */
    const int32_t* cancel; /* polled between steps; NULL: cannot be cancelled */
    cuvil_failure* failure;
    int32_t threads;
} cuvil_call;

typedef struct cuvil_level {           /* one copy of the code per instruction-set level, least demanding first */
    const char* name;                  /* "v2", "v3", "v4", ... */
    int32_t (*run)(const cuvil_call*); /* a CUVIL_* status; makes no system call and takes no lock */
} cuvil_level;

typedef struct cuvil_program { /* a module's one exported symbol: `const cuvil_program cuvil_program_1` */
    uint32_t size;
    uint32_t abi_version;
    uint32_t dim_count; /* int64 each in `dims`; -1 there: known only while running */
    uint32_t level_count;
    const cuvil_level* levels;
    int32_t (*bind)(const cuvil_value* in, int64_t* dims, cuvil_failure*); /* dims from the shapes of the inputs */
    uint64_t (*workspace_size)(const int64_t* dims, int32_t threads);      /* UINT64_MAX: more than 64 bits hold */
} cuvil_program;

/* ---- The loader -------------------------------------------------------------------------------------------------- */

enum {
    CUVIL_OK = 0,
    CUVIL_ERROR_FILE = 1,  /* not a module, damaged, or of another ABI, level or machine */
    CUVIL_ERROR_NAME = 2,  /* no input or output of this name; a missing input */
    CUVIL_ERROR_TYPE = 3,  /* another dtype or kind of value */
    CUVIL_ERROR_SHAPE = 4, /* another rank or size */
    CUVIL_ERROR_MODEL = 5, /* the model's own check failed, for example an index out of range */
    CUVIL_ERROR_MEMORY = 6,
    CUVIL_ERROR_CANCELLED = 7
};

typedef struct cuvil_module cuvil_module;

/* Loading runs the file's code: trust it like any .so. threads 0: as many as the process may use; negative: refused. */
int32_t cuvil_load(const char* path, int32_t threads, cuvil_module** module);
int32_t cuvil_load_memory(const void* bytes, uint64_t size, int32_t threads, cuvil_module** module);
void cuvil_unload(cuvil_module* module);
const char* cuvil_error_message(void);                    /* the sentence of this thread's latest failure */
const char* cuvil_manifest(const cuvil_module* module);   /* JSON: inputs, outputs, dims, checks, steps, memory */
const char* cuvil_level_name(const cuvil_module* module); /* the level that runs here */
int32_t cuvil_input_count(const cuvil_module* module);
int32_t cuvil_output_count(const cuvil_module* module);
const char* cuvil_input_name(const cuvil_module* module, int32_t index); /* NULL: no such index */
const char* cuvil_output_name(const cuvil_module* module, int32_t index);

/* Any number of threads may run one module at once. Inputs may have any strides and are never written. An output that
 * comes in as CUVIL_NONE is allocated; one that comes in as a tensor must have the right dtype and shape, no gaps. */
int32_t cuvil_run(cuvil_module* module, const cuvil_value* in, cuvil_value* out);
void cuvil_value_release(cuvil_value* value);
typedef struct cuvil_run_options {
    uint64_t size;
    const int32_t* cancel; /* any thread may set it to 1: the run ends soon with CUVIL_ERROR_CANCELLED; or NULL */
    /* On the thread that runs, before and after each step, and now and then inside long ones with step -1; or NULL. */
    void (*trace)(void* context, int32_t step, int32_t is_end);
    void* context;
} cuvil_run_options;
int32_t cuvil_run_with(cuvil_module* module, const cuvil_value* in, cuvil_value* out, const cuvil_run_options* options);

/* A call whose memory stays where it is, for models of a microsecond: all that cuvil_run checks is checked once. Values
 * as for cuvil_run, but inputs are tensors without gaps that overlap no output; the numbers in them may change between
 * runs. Outputs that come in as CUVIL_NONE are allocated here and are the caller's. A bound call is run by one thread
 * at a time, and ends before the module is unloaded. */
typedef struct cuvil_bound cuvil_bound;
int32_t cuvil_bind(cuvil_module* module, const cuvil_value* in, cuvil_value* out, cuvil_bound** bound);
int32_t cuvil_run_bound(cuvil_bound* bound, const cuvil_run_options* options); /* or NULL */
void cuvil_unbind(cuvil_bound* bound);

#ifdef __cplusplus
}
#endif
#endif
