#include "errors.hpp"

#include "cuvil/compile.hpp"

#include <system_error>

namespace cuvil::python {
namespace {

nb::object text(const std::string& s) {
    return nb::steal(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}

nb::object as_python(const Diagnostic& d) {
    nb::list notes;
    for (const std::string& note : d.notes) notes.append(text(note));
    nb::object type = nb::module_::import_("cuvil.errors").attr("Diagnostic");
    return type(d.severity == Severity::Error ? "error" : "warning", text(d.code), text(d.message), text(d.where.file),
                text(d.where.name), text(d.excerpt), nb::tuple(notes), text(d.help), d.count, text(render(d)));
}

void set_unsupported(const Refused& refused) {
    nb::list diagnostics;
    for (const Diagnostic& d : refused.diagnostics().all()) diagnostics.append(as_python(d));
    nb::object type = nb::module_::import_("cuvil.errors").attr("Unsupported");
    nb::object error = type(text(refused.what()), diagnostics);
    PyErr_SetObject(type.ptr(), error.ptr());
}

void set_internal_error(const InternalError& error) {
    nb::object type = nb::module_::import_("cuvil.errors").attr("InternalError");
    nb::object raised = type(text(error.what()));
    if (const auto* bug = dynamic_cast<const CompilerBug*>(&error))
        if (const std::filesystem::path file = write_reproducer(*bug, "cuvil.compile in Python"); !file.empty())
            raised.attr("reproducer") = nb::module_::import_("pathlib").attr("Path")(text(file.string()));
    PyErr_SetObject(type.ptr(), raised.ptr());
}

void set_os_error(const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetFromErrno(PyExc_OSError);
}

void translate(const std::exception_ptr& pointer, void*) {
    try {
        std::rethrow_exception(pointer);
    } catch (const Refused& refused) {
        set_unsupported(refused);
    } catch (const InternalError& error) {
        set_internal_error(error);
    } catch (const Cancelled&) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    } catch (const std::system_error& error) {
        set_os_error(error);
    }
}

} // namespace

void translate_exceptions() { nb::register_exception_translator(translate); }

} // namespace cuvil::python
