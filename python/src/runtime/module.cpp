// A loaded module: names are matched and buffers handed over here; all else is the loader's.
#include "module.hpp"

#include "bound_call.hpp"
#include "feeds.hpp"
#include "guarded.hpp"
#include "ports.hpp"
#include "results.hpp"
#include "status.hpp"
#include "watch.hpp"

#include "cuvil/cuvil.h"

#include <nanobind/stl/string.h>

#include <memory>

namespace cuvil::python {
namespace {

// `count` of T, a few of them without an allocation.
template <class T, size_t few> class Room {
public:
    explicit Room(size_t count) : many_(count > few ? std::make_unique<T[]>(count) : nullptr) {}
    T& operator[](size_t i) { return data()[i]; }
    T* data() { return many_ ? many_.get() : few_; }

private:
    T few_[few];
    std::unique_ptr<T[]> many_;
};

// The values of one run, given back however it ends.
class Values {
public:
    explicit Values(size_t count) : count_(count), values_(count) {
        for (size_t i = 0; i < count; i++) values_[i] = {};
    }
    ~Values() {
        for (size_t i = 0; i < count_; i++)
            if (values_[i].owner) cuvil_value_release(&values_[i]);
    }
    Values(const Values&) = delete;
    Values& operator=(const Values&) = delete;
    cuvil_value& operator[](size_t i) { return values_[i]; }
    cuvil_value* data() { return values_.data(); }

private:
    size_t count_;
    Room<cuvil_value, 4> values_;
};

// The outputs of one run: arrays that were made before it, and what the loader allocates.
class Results {
public:
    explicit Results(const Ports& ports) : values(ports.size()), arrays_(ports.size()) {
        for (size_t i = 0; i < ports.size(); i++) arrays_[i] = small_array(ports[i], values[i]);
    }
    // Once for each.
    nb::object take(size_t i) { return arrays_[i].is_valid() ? std::move(arrays_[i]) : take_result(values[i]); }

    Values values;

private:
    Room<nb::object, 4> arrays_;
};

using Given = Room<nb::object, 8>; // held, since converting one may run code that changes the dict; none: left out
using Keep = Room<Feed, 2>;

int64_t bytes_of(const cuvil_value& value) {
    if (value.tag == CUVIL_NONE) return 0;
    if (value.tag != CUVIL_TENSOR) return INT64_MAX / 2; // takes its time anyway
    int64_t bytes = value.as.tensor.dtype.bits / 8;
    for (int32_t i = 0; i < value.as.tensor.ndim; i++) bytes *= value.as.tensor.shape[i];
    return bytes;
}

class Module {
public:
    Module(const std::string& path, int32_t threads) {
        cuvil_module* module = nullptr;
        int32_t status;
        {
            nb::gil_scoped_release release;
            status = cuvil_load(path.c_str(), threads, &module);
        }
        check(status);
        module_.reset(module, cuvil_unload);
        inputs_ = std::make_unique<const Ports>(cuvil_manifest(module), "input");
        outputs_ = std::make_unique<const Ports>(cuvil_manifest(module), "output");
    }

    nb::object run(nb::handle feeds, nb::handle outputs, Cancellation* cancellation) {
        Results results(*outputs_);
        run_named(feeds, results.values, cancellation);
        return outputs.is_none() ? all_results(results) : chosen_results(results, outputs);
    }

    // Returns the results that `targets` has no memory for.
    nb::object run_into(nb::handle feeds, nb::handle targets) {
        const Ports& ports = *outputs_;
        const nb::object dict = as_dict(targets);
        Values out(ports.size());
        Keep keep(ports.size());
        Py_ssize_t found = 0;
        for (size_t i = 0; i < ports.size(); i++) {
            PyObject* target = ports.find(dict, i);
            if (!target) continue;
            found++;
            keep[i].take_target(target, ports[i], out[i]);
        }
        ports.expect_all_found(dict, found);
        run_named(feeds, out, nullptr);
        nb::dict rest;
        for (size_t i = 0; i < ports.size(); i++)
            if (out[i].owner) set_item(rest, ports[i].name, take_result(out[i]));
        return rest;
    }

    // Inputs by position and by name.
    nb::object call(nb::handle positional, nb::handle named) {
        const Ports& ports = *inputs_;
        const auto count = static_cast<size_t>(PyTuple_GET_SIZE(positional.ptr()));
        if (count > ports.size()) raise(PyExc_TypeError, "the module takes %zu inputs, got %zu", ports.size(), count);
        Given given(ports.size());
        Py_ssize_t found = 0;
        for (size_t i = 0; i < ports.size(); i++) {
            PyObject* by_name = named ? ports.find(named, i) : nullptr;
            if (by_name && i < count) raise(PyExc_TypeError, "input %R is given twice", ports[i].name.ptr());
            given[i] = nb::borrow(i < count ? PyTuple_GET_ITEM(positional.ptr(), static_cast<Py_ssize_t>(i)) : by_name);
            found += by_name != nullptr;
        }
        if (named) ports.expect_all_found(named, found);
        Results results(*outputs_);
        execute(given, results.values, nullptr);
        return all_results(results);
    }

    nb::object bind(nb::handle feeds, nb::handle targets) const {
        return nb::cast(new BoundCall(open(), *inputs_, *outputs_, as_dict(feeds), as_dict(targets)),
                        nb::rv_policy::take_ownership);
    }

    const char* manifest() const { return cuvil_manifest(open().get()); }
    const char* level() const { return cuvil_level_name(open().get()); }
    bool is_closed() const { return !module_; }
    // Runs that other threads are in the middle of end as usual; the last of them unloads.
    void close() { module_.reset(); }

private:
    std::shared_ptr<cuvil_module> open() const {
        if (!module_) raise(PyExc_ValueError, "the module is closed");
        return module_;
    }

    void run_named(nb::handle feeds, Values& out, Cancellation* cancellation) {
        const nb::object dict = as_dict(feeds);
        Given given(inputs_->size());
        Py_ssize_t found = 0;
        for (size_t i = 0; i < inputs_->size(); i++) {
            given[i] = nb::borrow(inputs_->find(dict, i));
            found += given[i].is_valid();
        }
        inputs_->expect_all_found(dict, found);
        execute(given, out, cancellation);
    }

    void execute(Given& given, Values& out, Cancellation* cancellation) {
        const std::shared_ptr<cuvil_module> module = open();
        Keep keep(inputs_->size());
        Values in(inputs_->size());
        int64_t bytes = 0;
        for (size_t i = 0; i < inputs_->size(); i++) {
            const Spec& spec = (*inputs_)[i];
            // None stands for "left out" where that is possible.
            if (spec.optional && (!given[i].is_valid() || given[i].is_none())) continue;
            if (!given[i].is_valid()) inputs_->missing(i);
            keep[i].take(given[i].ptr(), spec, in[i]);
            bytes += bytes_of(in[i]);
        }
        struct Call {
            cuvil_module* module;
            const cuvil_value* in;
            cuvil_value* out;

            static int32_t run(void* context, const cuvil_run_options* options) {
                const auto* call = static_cast<const Call*>(context);
                return cuvil_run_with(call->module, call->in, call->out, options);
            }
        } call{module.get(), in.data(), out.data()};
        run_watched(Call::run, &call, cancellation, bytes, quick_);
    }

    nb::object all_results(Results& results) const {
        nb::object all = new_results(*outputs_);
        for (size_t i = 0; i < outputs_->size(); i++) set_item(all, (*outputs_)[i].name, results.take(i));
        return all;
    }

    nb::object chosen_results(Results& results, nb::handle names) const {
        nb::dict chosen;
        if (PyUnicode_Check(names.ptr())) raise(PyExc_TypeError, "outputs is a list of names, not a string");
        const Ports& ports = *outputs_;
        std::vector<nb::object> taken(ports.size());
        for (const nb::handle name : names) {
            size_t i = 0;
            while (i < ports.size() && !ports.is_name_of(i, name)) i++;
            if (i == ports.size()) no_such("output", name, ports.specs());
            if (!taken[i].is_valid()) taken[i] = results.take(i);
            set_item(chosen, name, taken[i]);
        }
        return chosen;
    }

    std::shared_ptr<cuvil_module> module_;
    std::unique_ptr<const Ports> inputs_, outputs_;
    QuickRuns quick_;
};

// The calls that have to be quick are bound by hand: a call through nanobind's dispatcher, which converts arguments,
// takes longer than a small model.

Module& module_of(PyObject* self) {
    if (!nb::inst_ready(self)) raise(PyExc_ValueError, "the module is closed"); // __init__ has not run, or has failed
    return *nb::inst_ptr<Module>(self);
}

// The arguments of a METH_FASTCALL | METH_KEYWORDS function, by position or under their names; None where left out.
template <size_t count> class Arguments {
public:
    Arguments(const char* function, const char* const (&names)[count], size_t required, PyObject* const* values,
              Py_ssize_t positional, PyObject* keywords) {
        if (static_cast<size_t>(positional) > count)
            raise(PyExc_TypeError, "%s() takes %zu arguments, got %zd", function, count, positional);
        for (Py_ssize_t i = 0; i < positional; i++) values_[i] = values[i];
        const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
        for (Py_ssize_t k = 0; k < named; k++) {
            PyObject* name = PyTuple_GET_ITEM(keywords, k);
            size_t i = 0;
            while (i < count && PyUnicode_CompareWithASCIIString(name, names[i]) != 0) i++;
            if (i == count) raise(PyExc_TypeError, "%s() has no argument %R", function, name);
            if (values_[i]) raise(PyExc_TypeError, "%s() got argument %R twice", function, name);
            values_[i] = values[positional + k];
        }
        for (size_t i = 0; i < required; i++)
            if (!values_[i]) raise(PyExc_TypeError, "%s() needs the argument '%s'", function, names[i]);
    }
    nb::handle operator[](size_t i) const { return values_[i] ? values_[i] : Py_None; }

private:
    PyObject* values_[count] = {};
};

PyObject* module_run(PyObject* self, PyObject* const* values, Py_ssize_t positional, PyObject* keywords) {
    return guarded([&] {
        const Arguments<3> arguments("run", {"feeds", "outputs", "cancellation"}, 1, values, positional, keywords);
        Cancellation* cancellation = nullptr;
        if (!arguments[2].is_none() && !nb::try_cast(arguments[2], cancellation))
            raise(PyExc_TypeError, "run(): cancellation is a cuvil.runtime.Cancellation, got %R", arguments[2].ptr());
        return module_of(self).run(arguments[0], arguments[1], cancellation);
    });
}

PyObject* module_run_into(PyObject* self, PyObject* const* values, Py_ssize_t positional, PyObject* keywords) {
    return guarded([&] {
        const Arguments<2> arguments("run_into", {"feeds", "outs"}, 2, values, positional, keywords);
        return module_of(self).run_into(arguments[0], arguments[1]);
    });
}

PyObject* module_call(PyObject* self, PyObject* positional, PyObject* named) {
    return guarded([&] { return module_of(self).call(positional, named); });
}

// The table of methods has one type for functions of all kinds; the flags beside say which it is.
PyCFunction as_method(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"run", as_method(module_run), METH_FASTCALL | METH_KEYWORDS,
     "run($self, /, feeds, outputs=None, cancellation=None)\n--\n\n"
     "Runs the module on a dict of arrays by input name; returns a dict of NumPy arrays by output name, in the order\n"
     "of the model, or of the outputs named in `outputs`. Inputs may have any strides and are never written; the\n"
     "arrays that come back are the caller's. Ctrl-C, and `cancellation` from another thread, end it between steps."},
    {"run_into", as_method(module_run_into), METH_FASTCALL | METH_KEYWORDS,
     "run_into($self, /, feeds, outs)\n--\n\n"
     "As run, but the results are written into the arrays of the dict `outs`, by output name: of the output's dtype\n"
     "and shape, contiguous and writable, NumPy's or exported by the buffer protocol or DLPack. They may overlap the\n"
     "inputs. Returns a dict of the outputs that `outs` does not have."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_methods, methods},
    {Py_tp_call, reinterpret_cast<void*>(module_call)},
    {0, nullptr},
};

} // namespace

void bind_module(nb::module_& m) {
    bind_bound_call(m);
    nb::class_<Cancellation>(m, "Cancellation", "Ends a run from another thread.")
        .def(nb::init<>())
        .def("cancel", &Cancellation::cancel, "The run ends soon, with RuntimeError, as does each that begins.");
    nb::class_<Module>(m, "Module", nb::is_weak_referenceable(), nb::type_slots(slots))
        .def(nb::init<const std::string&, int32_t>(), nb::arg("path"), nb::arg("threads"))
        .def("bind", &Module::bind, nb::arg("feeds"), nb::arg("outs") = nb::dict(),
             "Binds arrays to the inputs and, of `outs`, to outputs: a call that runs the module on the numbers that "
             "are\n"
             "then in the inputs' memory and writes into the outputs', in a fraction of a microsecond more than the "
             "model\n"
             "takes. Inputs are contiguous arrays of the very dtype, outputs as in run_into without overlapping an "
             "input;\n"
             "those that `outs` does not have are made. Sizes must be known before the run.")
        .def("close", &Module::close, "Unloads the module; what it returned stays.")
        .def_prop_ro("closed", &Module::is_closed)
        .def_prop_ro("level", &Module::level, "The instruction-set level that runs here: \"v3\".")
        .def_prop_ro("_manifest", &Module::manifest);
}

} // namespace cuvil::python
