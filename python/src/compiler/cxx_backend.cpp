// cuvil.backends.cxx: a program as C++, and from there to a shared object and a module.
#include "background.hpp"
#include "errors.hpp"
#include "extension.hpp"
#include "program.hpp"
#include "src/stages.hpp"
#include "support/diagnostics.hpp"
#include "support/file.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

namespace cuvil::python {
namespace {

void expect_complete(const Program& program) {
    if (program.functions().empty() || !program.main().body().terminator())
        raise(PyExc_ValueError, "the program has no function with an output");
    for (const auto& [name, weight] : program.weights())
        if (weight.missing) raise(PyExc_ValueError, "the bytes of weight '%s' are not there", name.c_str());
}

std::shared_ptr<Lowered> lower_program(const Program& program, const std::vector<std::string>& levels) {
    expect_complete(program);
    if (const OpNode* node = first_without_code(program.main().body()))
        raise(PyExc_ValueError, "%s has no code of its own; lower what cuvil.ir.run_passes returns",
              std::string(node->op()).c_str());
    const nb::gil_scoped_release release;
    return std::make_shared<Lowered>(lower(copy_of(program), levels_of({.levels = levels}), {}));
}

nb::bytes compile_lowered(const Lowered& lowered, const CompileArguments& arguments) {
    std::string object;
    Diagnostics diag;
    run_in_background(arguments, nb::none(),
                      [&](const CompileOptions& options) { object = shared_object(lowered, options, diag); });
    return nb::bytes(object.data(), object.size());
}

// Writes the module's file to `fd`.
void write_lowered(const std::shared_ptr<Lowered>& lowered, const CompileArguments& arguments, int fd) {
    Diagnostics diag;
    run_in_background(arguments, nb::none(),
                      [&](const CompileOptions& options) { write_all(fd, bytes(assemble(lowered, options, diag))); });
}

// The whole way from a program; returns the warnings.
std::string compile_program(const Program& program, const CompileArguments& arguments, nb::handle dump, int fd) {
    expect_complete(program);
    Diagnostics diag;
    run_in_background(arguments, dump, [&](const CompileOptions& options) {
        write_all(fd, bytes(compile(copy_of(program), options, diag)));
    });
    return diag.render();
}

nb::list sources_of(const Lowered& lowered) {
    nb::list out;
    for (const CXXSource& source : lowered.cxx.sources)
        out.append(nb::make_tuple(source.name, source.text, source.levels));
    return out;
}

} // namespace

void bind_cxx_backend(nb::module_& m) {
    nb::class_<Lowered>(m, "LoweredModule")
        .def_prop_ro("source", [](const Lowered& l) { return l.cxx.source_text(); })
        .def_prop_ro("sources", sources_of)
        .def("compile", compile_lowered, nb::arg("arguments"))
        .def("write", write_lowered, nb::arg("arguments"), nb::arg("fd"));
    m.def("lower", lower_program, nb::arg("program"), nb::arg("levels"));
    m.def("compile_program", compile_program, nb::arg("program"), nb::arg("arguments"), nb::arg("dump"), nb::arg("fd"));
    m.def("targets", [] {
        nb::dict out;
        for (const Target& target : targets()) out[target.name.c_str()] = target.levels;
        return out;
    });
}

} // namespace cuvil::python
