#include "bound_call.hpp"

#include "guarded.hpp"
#include "results.hpp"
#include "status.hpp"

namespace cuvil::python {

BoundCall::BoundCall(std::shared_ptr<cuvil_module> module, const Ports& inputs, const Ports& outputs,
                     const nb::object& feeds, const nb::object& targets)
    : module_(std::move(module)), feeds_(std::make_unique<Feed[]>(inputs.size())),
      targets_(std::make_unique<Feed[]>(outputs.size())), results_(new_results(outputs)) {
    std::vector<cuvil_value> in(inputs.size()), out(outputs.size());
    Py_ssize_t found = 0;
    for (size_t i = 0; i < inputs.size(); i++) {
        PyObject* value = inputs.find(feeds, i);
        found += value != nullptr;
        if (inputs[i].optional && (!value || value == Py_None)) continue;
        if (!value) inputs.missing(i);
        feeds_[i].take_in_place(value, inputs[i], in[i]);
    }
    inputs.expect_all_found(feeds, found);
    found = 0;
    std::vector<nb::object> given(outputs.size());
    for (size_t i = 0; i < outputs.size(); i++) {
        given[i] = nb::borrow(outputs.find(targets, i));
        if (!given[i].is_valid()) continue;
        found++;
        targets_[i].take_target(given[i].ptr(), outputs[i], out[i]);
    }
    outputs.expect_all_found(targets, found);

    cuvil_bound* bound = nullptr;
    check(cuvil_bind(module_.get(), in.data(), out.data(), &bound));
    bound_.reset(bound);
    for (size_t i = 0; i < outputs.size(); i++) {
        arrays_.push_back(given[i].is_valid() ? given[i] : take_result(out[i]));
        set_item(results_, outputs[i].name, arrays_[i]);
    }
}

nb::object BoundCall::run() {
    if (is_running_) raise(PyExc_RuntimeError, "the bound call is running in another thread: bind one for each thread");
    struct Running {
        bool& flag;
        explicit Running(bool& f) : flag(f) { flag = true; }
        ~Running() { flag = false; }
    } running(is_running_);
    const auto run = [](void* bound, const cuvil_run_options* options) {
        return cuvil_run_bound(static_cast<cuvil_bound*>(bound), options);
    };
    run_watched(run, bound_.get(), nullptr, 0, quick_);
    return results_;
}

namespace {

PyObject* call(PyObject* self, PyObject* positional, PyObject* named) {
    return guarded([&] {
        if (!nb::inst_ready(self)) raise(PyExc_TypeError, "Module.bind makes bound calls");
        if (PyTuple_GET_SIZE(positional) != 0 || (named && PyDict_GET_SIZE(named) != 0))
            raise(PyExc_TypeError, "a bound call takes no arguments: its arrays are bound");
        return nb::inst_ptr<BoundCall>(self)->run();
    });
}

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call)}, {0, nullptr}};

} // namespace

void bind_bound_call(nb::module_& m) {
    nb::class_<BoundCall>(
        m, "BoundCall", nb::type_slots(slots),
        "What Module.bind gives. Calling it runs the module and returns the dict of the outputs, the\n"
        "same arrays each time. One thread at a time; it keeps the module loaded.");
}

} // namespace cuvil::python
