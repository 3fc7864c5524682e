// NAME.h: cuvil.h's text, so that nothing else is needed, and the functions of one model.
#include "codegen/c_interface.hpp"
#include "codegen/cxx_text.hpp"
#include "codegen/entry_code.hpp"
#include "runtime/static/model.hpp"
#include "support/diagnostics.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace cuvil {
namespace {

std::string_view abi_text() {
    const auto sources = kernel_sources();
    const auto found = std::ranges::find(sources, "cuvil/cuvil.h", &SourceFile::name);
    CUVIL_ASSERT(found != sources.end(), "cuvil.h is not embedded");
    return found->text;
}

class HeaderWriter {
public:
    HeaderWriter(const CInterface& c, const Plan& plan, std::string_view version)
        : c_(c), plan_(plan), version_(version) {}

    std::string text() {
        out_.line("/* {}: a model, compiled by Cuvil {}. Link with the archive or object of the same compilation;",
                  c_.name, version_);
        out_.line(" * nothing else is needed. For C99 and C++. */");
        out_.line("#ifndef CUVIL_MODEL_{}", c_.name);
        out_.line("#define CUVIL_MODEL_{}", c_.name);
        out_.blank();
        out_.line("/* ======== cuvil.h, the same for all models ======== */");
        std::string text = out_.text();
        text += abi_text();
        out_ = {};
        out_.line("/* ======== {} ======== */", c_.name);
        out_.blank();
        values();
        out_.line("#ifdef __cplusplus");
        out_.line("extern \"C\" {{");
        out_.line("#endif");
        out_.blank();
        if (c_.has_run) run();
        workspace_size();
        general();
        out_.line("#ifdef __cplusplus");
        out_.line("}}");
        out_.line("#endif");
        out_.line("#endif");
        return text + out_.text();
    }

private:
    void values() {
        const auto list = [&](std::string_view title, const std::vector<CValue>& values) {
            out_.line(" * {}:", title);
            for (size_t i = 0; i < values.size(); i++) out_.line(" *   [{}] {}", i, values[i].description);
        };
        out_.line("/* Tensors are row-major without gaps.");
        list("Inputs", c_.inputs);
        list("Outputs", c_.outputs);
        out_.line(" */");
        out_.line("#define {}_INPUTS {}", c_.name, c_.inputs.size());
        out_.line("#define {}_OUTPUTS {}", c_.name, c_.outputs.size());
        for (const auto* values : {&c_.inputs, &c_.outputs})
            for (const CValue& value : *values)
                if (value.count && !value.type.empty())
                    out_.line("#define {}_{}_COUNT {} /* elements of {} */", c_.name, value.identifier, *value.count,
                              value.identifier);
        if (auto bytes = fixed_workspace_size(plan_))
            out_.line("#define {}_WORKSPACE_SIZE {} /* bytes */", c_.name,
                      *bytes + static_cast<int64_t>(rt::workspace_alignment) - 1);
        out_.blank();
    }

    void run() {
        out_.line("/* Runs the model on this thread. An output may share memory with inputs, which are then copied "
                  "first. The");
        out_.line(
            " * workspace may have any content and lie anywhere; NULL: malloc gives one for this call. Any number of");
        out_.line(
            " * threads may call at once, each with a workspace of its own. Returns CUVIL_OK or a CUVIL_ERROR_*. */");
        std::vector<std::string> parameters;
        for (const std::string& symbol : c_.symbols) parameters.push_back("int64_t " + symbol);
        for (const CValue& value : c_.inputs)
            parameters.push_back(fmt::format("const {}* {}", value.type, value.identifier));
        for (const CValue& value : c_.outputs)
            parameters.push_back(fmt::format("{}* {}", value.type, value.identifier));
        parameters.emplace_back("void* workspace");
        // A line for each parameter where one line is too long for all.
        const std::string line = fmt::format("int32_t {}_run({});", c_.name, fmt::join(parameters, ", "));
        if (line.size() <= 120)
            out_.line("{}", line);
        else
            out_.line("int32_t {}_run(\n    {});", c_.name, fmt::join(parameters, ",\n    "));
        out_.blank();
    }

    void workspace_size() {
        std::string parameters;
        for (const std::string& symbol : c_.symbols)
            parameters += (parameters.empty() ? "int64_t " : ", int64_t ") + symbol;
        out_.line(
            "/* The bytes of workspace that one call needs, UINT64_MAX where the model cannot take such sizes. */");
        out_.line("uint64_t {}_workspace_size({});", c_.name, parameters.empty() ? "void" : parameters);
        out_.blank();
    }

    void general() {
        out_.line(
            "/* The same for values of any kind: {0}_INPUTS of `in`, {0}_OUTPUTS of `out`. An output that comes in as",
            c_.name);
        out_.line(" * CUVIL_NONE is allocated, and given back by cuvil_value_release; one that comes in as a tensor "
                  "must have the");
        out_.line(" * right dtype and shape, and is written. Nothing is allocated where the call fails. */");
        out_.line("int32_t {}_run_values(const cuvil_value* in, cuvil_value* out);", c_.name);
        out_.blank();
        out_.line("/* The same on a host of yours: its threads run the model, and its memory is what the model takes; "
                  "outputs");
        out_.line(" * go back by host->free(host, value.owner). host NULL: as above. workspace NULL: from the host. "
                  "Any thread");
        out_.line(" * may set *cancel to 1, the call then ends soon with CUVIL_ERROR_CANCELLED; NULL: it cannot be "
                  "cancelled. */");
        out_.line("int32_t {}_run_on(const cuvil_host* host, int32_t threads, const cuvil_value* in, cuvil_value* out,",
                  c_.name);
        out_.line("    void* workspace, const int32_t* cancel);");
        out_.blank();
        out_.line("/* A host with threads, for the function above: `count` of them, at most 64, the caller's among "
                  "them. They are");
        out_.line(" * started when first needed, shared by all models of the program, and sleep between the calls. Say "
                  "the");
        out_.line(" * same number to both. Archives have it, objects do not. */");
        out_.line("const cuvil_host* cuvil_threads(int32_t count);");
        out_.blank();
        out_.line("/* Why this thread's latest call failed. */");
        out_.line("const char* {}_error_message(void);", c_.name);
        out_.blank();
        out_.line("/* The model itself, for programs that fill a cuvil_call on their own. */");
        out_.line("extern const cuvil_program {}_program;", c_.name);
        if (plan_.constant_bytes > 0) out_.line("extern const unsigned char {}_weights[];", c_.name);
        out_.blank();
    }

    const CInterface& c_;
    const Plan& plan_;
    std::string_view version_;
    CxxText out_;
};

} // namespace

std::string c_header(const CInterface& c, const Plan& plan, std::string_view version) {
    return HeaderWriter(c, plan, version).text();
}

} // namespace cuvil
