// A module of a later interface.
#include "module.hpp"

static int32_t bind(const cuvil_value*, int64_t*, cuvil_failure*) { return CUVIL_OK; }
static uint64_t workspace_size(const int64_t*, int32_t) { return 0; }
static int32_t run(const cuvil_call*, int32_t) { return CUVIL_OK; }

CUVIL_EXPORT const cuvil_program cuvil_program_1 = {
    sizeof(cuvil_program), CUVIL_ABI_VERSION + 1, 0, 3, levels<run>, bind, workspace_size};
