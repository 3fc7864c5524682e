// A loaded module: names are matched and buffers handed over here; all else is the loader's.
#include "errors.hpp"
#include "extension.hpp"
#include "feeds.hpp"
#include "results.hpp"

#include "cuvil/cuvil.h"
#include "runtime/dtypes.hpp"

#include <nlohmann/json.hpp>

#include <nanobind/stl/string.h>

#include <memory>

namespace cuvil::python {

std::vector<Spec> read_specs(const char* manifest, const char* key) {
    std::vector<Spec> specs;
    const nlohmann::json json = nlohmann::json::parse(manifest);
    for (const auto& entry : json.at(key)) {
        Spec spec;
        spec.name = nb::steal(PyUnicode_InternFromString(entry.at("name").get<std::string>().c_str()));
        const std::string kind = entry.at("kind").get<std::string>();
        spec.tag = kind == "strings" ? CUVIL_STRINGS : kind == "list" ? CUVIL_LIST : CUVIL_TENSOR;
        spec.dtype_name = entry.value("dtype", "");
        spec.dtype = rt::dtype_of(spec.dtype_name);
        spec.optional = entry.value("optional", false);
        specs.push_back(std::move(spec));
    }
    return specs;
}

namespace {

std::string list_of(const std::vector<Spec>& specs) {
    std::string names;
    for (const Spec& spec : specs) names += (names.empty() ? "" : ", ") + nb::cast<std::string>(nb::repr(spec.name));
    return names.empty() ? "none" : names;
}

[[noreturn]] void no_such(const char* what, nb::handle name, const std::vector<Spec>& specs) {
    const std::string text = "no " + std::string(what) + " " + nb::cast<std::string>(nb::repr(name)) + "; the " + what +
                             "s are " + list_of(specs);
    PyErr_SetObject(PyExc_KeyError, nb::str(text.c_str()).ptr());
    throw nb::python_error();
}

// The values of one run, given back however it ends.
class Values {
public:
    explicit Values(size_t count) : count_(count) {
        if (count > few) many_ = std::make_unique<cuvil_value[]>(count);
    }
    ~Values() {
        for (size_t i = 0; i < count_; i++)
            if ((*this)[i].owner) cuvil_value_release(&(*this)[i]);
    }
    Values(const Values&) = delete;
    Values& operator=(const Values&) = delete;
    cuvil_value& operator[](size_t i) { return data()[i]; }
    cuvil_value* data() { return many_ ? many_.get() : few_; }

private:
    static constexpr size_t few = 4;
    size_t count_;
    cuvil_value few_[few] = {};
    std::unique_ptr<cuvil_value[]> many_;
};

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
        inputs_ = read_specs(cuvil_manifest(module), "inputs");
        outputs_ = read_specs(cuvil_manifest(module), "outputs");
        input_alias_ = nb::steal(PyUnicode_InternFromString("input"));
        output_alias_ = nb::steal(PyUnicode_InternFromString("output"));
    }

    nb::object run(nb::handle feeds, nb::handle outputs) const {
        const std::shared_ptr<cuvil_module> module = open();
        nb::object dict = PyDict_Check(feeds.ptr()) ? nb::borrow(feeds) : nb::borrow((PyObject*)&PyDict_Type)(feeds);
        std::unique_ptr<Feed[]> many;
        Feed few[2];
        Feed* keep = few;
        if (inputs_.size() > std::size(few)) {
            many = std::make_unique<Feed[]>(inputs_.size());
            keep = many.get();
        }
        Values in(inputs_.size()), out(outputs_.size());
        Py_ssize_t taken = 0;
        for (size_t i = 0; i < inputs_.size(); i++) {
            PyObject* value = find(dict, inputs_[i].name);
            if (!value && inputs_.size() == 1) value = find(dict, input_alias_);
            if (!value && inputs_[i].optional) continue;
            if (!value) missing(dict, inputs_[i]);
            taken++;
            // None stands for "left out" where that is possible.
            if (value == Py_None && inputs_[i].optional) continue;
            keep[i].take(value, inputs_[i], in[i]);
        }
        if (taken != PyDict_GET_SIZE(dict.ptr())) unknown(dict);
        int32_t status;
        {
            nb::gil_scoped_release release;
            status = cuvil_run(module.get(), in.data(), out.data());
        }
        check(status);
        return outputs.is_none() ? all_results(out) : chosen_results(out, outputs);
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

    static PyObject* find(nb::handle dict, nb::handle key) {
        PyObject* value = PyDict_GetItemWithError(dict.ptr(), key.ptr());
        if (!value && PyErr_Occurred()) throw nb::python_error();
        return value;
    }

    [[noreturn]] void missing(nb::handle dict, const Spec& spec) const {
        unknown(dict);
        const std::string text =
            "input " + nb::cast<std::string>(nb::repr(spec.name)) + " is missing; the inputs are " + list_of(inputs_);
        PyErr_SetObject(PyExc_KeyError, nb::str(text.c_str()).ptr());
        throw nb::python_error();
    }

    // Throws for the first name that is no input's; returns if there is none.
    void unknown(nb::handle dict) const {
        for (const auto [key, value] : nb::borrow<nb::dict>(dict)) {
            bool known = inputs_.size() == 1 && PyUnicode_Check(key.ptr()) && nb::borrow(key).equal(input_alias_);
            for (const Spec& spec : inputs_) known = known || nb::borrow(key).equal(spec.name);
            if (!known) no_such("input", key, inputs_);
        }
        if (inputs_.size() == 1 && PyDict_GET_SIZE(dict.ptr()) > 1)
            raise(PyExc_KeyError, "input %R is given twice", inputs_[0].name.ptr());
    }

    nb::object all_results(Values& out) const {
        // A dict that also answers to "output", where the only output has another name.
        const bool needs_alias = outputs_.size() == 1 && !outputs_[0].name.equal(output_alias_);
        nb::object results = needs_alias ? result_type()() : nb::object(nb::dict());
        for (size_t i = 0; i < outputs_.size(); i++) set(results, outputs_[i].name, take_result(out[i]));
        return results;
    }

    nb::object chosen_results(Values& out, nb::handle names) const {
        nb::dict results;
        if (PyUnicode_Check(names.ptr())) raise(PyExc_TypeError, "outputs is a list of names, not a string");
        std::vector<nb::object> taken(outputs_.size());
        for (const nb::handle name : names) {
            size_t i = 0;
            while (i < outputs_.size() && !outputs_[i].name.equal(name)) i++;
            if (i == outputs_.size() && outputs_.size() == 1 && output_alias_.equal(name)) i = 0;
            if (i == outputs_.size()) no_such("output", name, outputs_);
            if (!taken[i].is_valid()) taken[i] = take_result(out[i]);
            set(results, name, taken[i]);
        }
        return results;
    }

    static void set(nb::handle dict, nb::handle key, const nb::object& value) {
        if (PyDict_SetItem(dict.ptr(), key.ptr(), value.ptr()) != 0) throw nb::python_error();
    }

    const nb::object& result_type() const {
        if (!result_type_.is_valid()) result_type_ = nb::module_::import_("cuvil._feeds").attr("Results");
        return result_type_;
    }

    std::shared_ptr<cuvil_module> module_;
    std::vector<Spec> inputs_, outputs_;
    nb::object input_alias_, output_alias_;
    mutable nb::object result_type_;
};

} // namespace

void bind_module(nb::module_& m) {
    nb::class_<Module>(m, "Module", nb::is_weak_referenceable())
        .def(nb::init<const std::string&, int32_t>(), nb::arg("path"), nb::arg("threads"))
        .def(
            "run", &Module::run, nb::arg("feeds"), nb::arg("outputs") = nb::none(),
            "Runs the module on a dict of arrays by input name; returns a dict of NumPy arrays by output name, in the\n"
            "order of the model, or of the outputs named in `outputs`. Inputs may have any strides and are never\n"
            "written; the arrays that come back are the caller's.")
        .def("close", &Module::close, "Unloads the module; what it returned stays.")
        .def_prop_ro("closed", &Module::is_closed)
        .def_prop_ro("level", &Module::level, "The instruction-set level that runs here: \"v3\".")
        .def_prop_ro("_manifest", &Module::manifest);
}

} // namespace cuvil::python
