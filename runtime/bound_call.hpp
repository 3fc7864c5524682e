// A call whose buffers stay where they are.
#pragma once

#include "runtime/loader.hpp"

namespace cuvil::rt {

class BoundCall {
public:
    // As cuvil_bind; throws CallError and std::bad_alloc. The module must outlive the call.
    BoundCall(Module& module, const cuvil_value* in, cuvil_value* out);
    BoundCall(const BoundCall&) = delete;
    BoundCall& operator=(const BoundCall&) = delete;

    // As cuvil_run_bound; throws CallError.
    void run(const cuvil_run_options& options);

private:
    void expect_in_place(const cuvil_value* in) const;

    Module& module_;
    Frame frame_;
    ArenaAllocator shapes_; // the callers' arrays may go
};

} // namespace cuvil::rt
