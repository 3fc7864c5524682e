// The other forms that a model is written in: the texts of the stages, and libraries for C programs.
#include "src/stages.hpp"

#include "artifact/linkable.hpp"
#include "codegen/c_interface.hpp"
#include "ir/printer.hpp"
#include "support/diagnostics.hpp"
#include "support/file.hpp"

#include "src/reproducer.hpp"

#include <system_error>

namespace cuvil {
namespace {

// Throws Refused where the user's name is no identifier.
std::string library_name(const CompileOptions& options, const std::filesystem::path& path) {
    const std::string& name = options.library_name;
    if (name.empty()) return cuvil::library_name(path);
    if (c_identifier(name) != name) {
        Diagnostics diag;
        diag.error("bad-option", "the name " + cuvil::quoted(name) + " is taken, or no identifier of C")
            .suggest("letters, digits and single underscores between them, such as '" + c_identifier(name) + "'");
        throw Refused(diag);
    }
    return name;
}

} // namespace

static std::vector<EmittedText> emitted(const Source& source, Emit what, const CompileOptions& options,
                                        Diagnostics& diag) {
    CUVIL_ASSERT(what != Emit::Module && what != Emit::Static && what != Emit::Object, "a module is no text");
    std::vector<std::string> levels = levels_of(options);
    if (what == Emit::Header) (void)library_name(options, source.path);
    Program program = imported(source, options, diag);
    optimize(program, options, diag);
    if (what == Emit::Ir) return {{"cuir", print(program)}};
    Lowered all = planned(std::move(program), std::move(levels), options);
    if (what == Emit::Cxx) return {{"cpp", all.cxx.source_text()}};
    if (what == Emit::Header) {
        CInterface c = c_interface(all.program, all.plan, library_name(options, source.path));
        return {{"h", c_header(c, all.plan, version())}};
    }
    CancelWatch watch(options);
    std::vector<EmittedText> out;
    for (auto& [name, text] : all.cxx.emit(what == Emit::Llvm ? Output::Llvm : Output::Assembly, watch.cxx_options()))
        out.push_back({std::move(name), std::move(text)});
    return out;
}

std::vector<EmittedText> emit(const Source& source, Emit what, const CompileOptions& options, Diagnostics& diag) {
    return reproducible(source, options,
                        [&](const CompileOptions& watched) { return emitted(source, what, watched, diag); });
}

std::string library_name(const std::filesystem::path& path) { return c_identifier(path.stem().string()); }

namespace {

// The model's code with its C functions; `more` becomes part of the object, and its names stay visible.
std::string object_of(const Lowered& all, const CInterface& c, const std::vector<CXXSource>& more,
                      const CompileOptions& options, Diagnostics& diag) {
    CXXModule cxx = all.cxx;
    cxx.sources.push_back(c_entry(c, all.program, all.plan));
    cxx.sources.insert(cxx.sources.end(), more.begin(), more.end());
    std::vector<std::string> kept = c_names(c);
    if (!more.empty()) kept.emplace_back(c_host_names);
    CancelWatch watch(options);
    return cxx.compile_relocatable(watch.cxx_options(), {kept, {{"cuvil_program_1", c.name + "_program"}}}, diag);
}

// A part of the host as a member of its own.
std::string host_object(const CXXSource& source, const CompileOptions& options, Diagnostics& diag) {
    const std::string kept[] = {std::string(c_host_names)};
    CancelWatch watch(options);
    return CXXModule{{source}}.compile_relocatable(watch.cxx_options(), {kept, {}}, diag);
}

} // namespace

static std::vector<std::filesystem::path> written_library(const Source& source, Emit what,
                                                          const std::filesystem::path& path,
                                                          const CompileOptions& options, Diagnostics& diag) {
    CUVIL_ASSERT(what == Emit::Static || what == Emit::Object, "no library");
    std::vector<std::string> levels = levels_of(options);
    const std::string name = library_name(options, path);
    Program program = imported(source, options, diag);
    optimize(program, options, diag);
    const Lowered all = planned(std::move(program), std::move(levels), options);
    const CInterface c = c_interface(all.program, all.plan, name);

    tell(options, 4, "codegen");
    std::string model, host, threads, header;
    std::vector<LinkableObject> members;
    std::vector<FileToWrite> files;
    const auto into = [](int fd) { return [fd](std::string_view bytes) { write_all(fd, bytes); }; };
    if (what == Emit::Object) {
        model = object_of(all, c, {c_host()}, options, diag);
        files.push_back({path, [&](int fd) { emit_object(members.back(), into(fd)); }});
    } else {
        model = object_of(all, c, {}, options, diag);
        host = host_object(c_host(), options, diag);
        threads = host_object(c_threads(), options, diag);
        header = c_header(c, all.plan, version());
        members.push_back({"cuvil_host.o", host});
        members.push_back({"cuvil_threads.o", threads});
        files.push_back({path, [&](int fd) { emit_archive(members, into(fd)); }});
        files.push_back({std::filesystem::path(path).replace_extension(".h"), [&](int fd) { write_all(fd, header); }});
    }
    members.push_back({"model.o", model, weights_section(all.plan), weights_of(all.plan)});

    tell(options, 5, "write");
    std::vector<std::filesystem::path> written;
    for (const FileToWrite& file : files) written.push_back(file.path);
    try {
        write_atomically(files);
    } catch (const std::system_error& error) {
        diag.error("cannot-write", "cannot write " + cuvil::quoted(path.string()) + ": " + error.code().message());
        diag.stop_if_errors();
    }
    return written;
}

std::vector<std::filesystem::path> write_library(const Source& source, Emit what, const std::filesystem::path& path,
                                                 const CompileOptions& options, Diagnostics& diag) {
    return reproducible(source, options, [&](const CompileOptions& watched) {
        return written_library(source, what, path, watched, diag);
    });
}

} // namespace cuvil
