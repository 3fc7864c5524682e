// cuvil._runtime.BoundCall.
#pragma once

#include "feeds.hpp"
#include "ports.hpp"
#include "watch.hpp"

#include "cuvil/cuvil.h"

#include <memory>
#include <vector>

namespace cuvil::python {

// Arrays that are bound to the inputs and outputs of a module. Keeps the module and the arrays.
class BoundCall {
public:
    BoundCall(std::shared_ptr<cuvil_module> module, const Ports& inputs, const Ports& outputs, const nb::object& feeds,
              const nb::object& targets);

    // The outputs by name: the same dict and arrays each time.
    nb::object run();

private:
    struct Unbind {
        void operator()(cuvil_bound* bound) const { cuvil_unbind(bound); }
    };

    std::shared_ptr<cuvil_module> module_;
    std::unique_ptr<Feed[]> feeds_, targets_;
    std::vector<nb::object> arrays_; // of the outputs; the dict is the caller's to change
    nb::object results_;
    std::unique_ptr<cuvil_bound, Unbind> bound_;
    QuickRuns quick_;
    bool is_running_ = false;
};

void bind_bound_call(nb::module_& m);

} // namespace cuvil::python
