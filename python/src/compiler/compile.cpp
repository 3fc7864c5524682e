// cuvil.compile's native half: a model in, the bytes of a module out.
#include "cuvil/compile.hpp"

#include "background.hpp"
#include "errors.hpp"
#include "extension.hpp"
#include "support/file.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace cuvil::python {
namespace {

// Writes the module's file to `fd`; returns the compiler's warnings.
std::string compile_model(const std::string& path, nb::handle model, const CompileArguments& arguments, nb::handle dump,
                          int fd) {
    Source source{.path = path};
    if (!model.is_none())
        source.bytes = {PyBytes_AS_STRING(model.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(model.ptr()))};
    Diagnostics diag;
    run_in_background(arguments, dump,
                      [&](const CompileOptions& options) { write_all(fd, bytes(compile(source, options, diag))); });
    return diag.render();
}

} // namespace

void bind_compile(nb::module_& m) {
    nb::class_<CompileArguments>(m, "CompileArguments")
        .def(nb::init<>())
        .def_rw("target", &CompileArguments::target)
        .def_rw("opt_level", &CompileArguments::opt_level)
        .def_rw("optimize_for", &CompileArguments::optimize_for)
        .def_rw("precision", &CompileArguments::precision)
        .def_rw("levels", &CompileArguments::levels)
        .def_rw("jobs", &CompileArguments::jobs)
        .def_rw("use_cache", &CompileArguments::use_cache)
        .def_rw("kernels", &CompileArguments::kernels)
        .def_rw("input_shapes", &CompileArguments::input_shapes)
        .def_rw("dynamic_shapes", &CompileArguments::dynamic_shapes)
        .def_rw("attachments", &CompileArguments::attachments)
        .def_rw("print_after", &CompileArguments::print_after)
        .def_rw("disabled_passes", &CompileArguments::disabled_passes)
        .def_rw("stop_after", &CompileArguments::stop_after);
    m.def("compile", compile_model, nb::arg("path"), nb::arg("model").none(), nb::arg("arguments"), nb::arg("dump"),
          nb::arg("fd"));
    m.def("pass_names", pass_names);
    m.def("precisions", [] {
        std::vector<std::string> names;
        for (const auto& [name, precision] : precisions()) names.push_back(name);
        return names;
    });
}

} // namespace cuvil::python
