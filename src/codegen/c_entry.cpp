// The functions that NAME.h declares: each fills a StaticCall, and static/host.cpp does the rest.
#include "codegen/c_interface.hpp"
#include "codegen/cxx_text.hpp"
#include "runtime/static/model.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace cuvil {
namespace {

// Beyond this the weights may lie farther from code than its 32-bit distances reach.
constexpr int64_t large_weights = int64_t{1} << 30;

bool is_large(const Plan& plan) { return plan.constant_bytes > large_weights; }

// Any bytes as a C++ string.
std::string string_text(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        if (c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?')
            out += c;
        else
            out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
    return out + "\"";
}

class EntryWriter {
public:
    EntryWriter(const CInterface& c, const Program& program, const Plan& plan)
        : c_(c), main_(program.main()), plan_(plan) {}

    std::string source() {
        out_.line("#include \"kernels/frame.hpp\"");
        out_.line("#include \"runtime/static/model.hpp\"");
        out_.blank();
        out_.line("extern \"C\" const cuvil_program cuvil_program_1;");
        if (plan_.constant_bytes > 0) weights();
        out_.blank();
        out_.open("namespace cuvil {{");
        out_.line("namespace {{");
        out_.blank();
        tables();
        call_with_memory();
        out_.line("}} // namespace");
        out_.close();
        out_.blank();
        sized_functions();
        general_functions();
        return out_.text();
    }

private:
    static constexpr std::string_view exported = "extern \"C\" [[gnu::visibility(\"default\")]]";

    // Room without bytes: who writes the object gives it the weights.
    void weights() {
        const std::string symbol = c_.name + "_weights";
        out_.line("__asm__(\".section {},\\\"{}\\\",@nobits\\n.balign 64\\n.globl {}\\n.type {}, @object\\n\"",
                  weights_section(plan_), is_large(plan_) ? "al" : "a", symbol, symbol);
        out_.line("        \".size {0}, {1}\\n{0}:\\n.zero {1}\\n.previous\\n\");", symbol, plan_.constant_bytes);
        out_.line("extern \"C\" const unsigned char {}[];", symbol);
    }

    int32_t dim_of(const Dim& size) const {
        if (size.constant()) return rt::StaticAxis::fixed;
        const auto found = plan_.dim_index.find(size);
        const bool is_known = found != plan_.dim_index.end() && plan_.dims[static_cast<size_t>(found->second)].at_entry;
        return is_known ? found->second : rt::StaticAxis::known_after_run;
    }

    struct Value {
        std::string name;
        const Type& type;
        bool is_optional;
    };

    std::vector<Value> inputs() const {
        std::vector<Value> values;
        for (size_t i = 0; i < main_.inputs.size(); i++)
            values.push_back(
                {main_.inputs[i].name, main_.body().arguments()[i]->type(), !main_.inputs[i].default_value.empty()});
        return values;
    }
    std::vector<Value> outputs() const {
        std::vector<Value> values;
        for (size_t i = 0; i < main_.outputs.size(); i++)
            values.push_back({main_.outputs[i].name, main_.body().terminator()->operand(i)->type(), false});
        return values;
    }

    void value_table(std::string_view table, const std::vector<Value>& values) {
        for (size_t i = 0; i < values.size(); i++) {
            if (values[i].type.rank() == 0) continue;
            std::vector<std::string> axes;
            for (const Dim& size : values[i].type.shape())
                axes.push_back(fmt::format("{{{}, {}}}", dim_of(size), size.constant().value_or(0)));
            out_.line("constexpr rt::StaticAxis {}_{}[] = {{{}}};", table, i, fmt::join(axes, ", "));
        }
        if (values.empty()) return;
        out_.open("constexpr rt::StaticValue {}[] = {{", table);
        for (size_t i = 0; i < values.size(); i++) {
            const Type& type = values[i].type;
            out_.line("{{{}, {}, {}, {}, {}, {}}},", string_text(values[i].name),
                      is_strings(type) ? "CUVIL_STRINGS" : "CUVIL_TENSOR",
                      is_strings(type) ? "{0, 0, 1}" : cxx_dtype(type.dtype()), values[i].is_optional, type.rank(),
                      type.rank() > 0 ? fmt::format("{}_{}", table, i) : "nullptr");
        }
        out_.close("};");
    }

    void tables() {
        value_table("inputs", inputs());
        value_table("outputs", outputs());
        if (!plan_.checks.empty()) {
            out_.open("constexpr rt::StaticCheck checks[] = {{");
            for (const Check& check : plan_.checks)
                out_.line("{{{}, {}}},", string_text(check.message), string_text(check.node));
            out_.close("};");
        }
        out_.line("const cuvil_level* level;");
        out_.open("const rt::StaticModel model = {{");
        out_.line("{}, &cuvil_program_1, {}, &level,", string_text(c_.name),
                  plan_.constant_bytes > 0 ? c_.name + "_weights" : "nullptr");
        out_.line("{}, {}, {}, {}, {}, {},", c_.inputs.size(), c_.outputs.size(), plan_.checks.size(),
                  c_.inputs.empty() ? "nullptr" : "inputs", c_.outputs.empty() ? "nullptr" : "outputs",
                  plan_.checks.empty() ? "nullptr" : "checks");
        out_.close("};");
        out_.blank();
    }

    static size_t at_least_one(size_t count) { return std::max<size_t>(1, count); }

    void call_with_memory() {
        size_t sizes = 0;
        for (const Value& value : outputs()) sizes += value.type.shape().size();
        out_.line("// call, with memory of this function's, by `f`.");
        out_.open("template <class R> R with_memory(rt::StaticCall& call, R (*f)(const rt::StaticModel*, "
                  "const rt::StaticCall*)) {{");
        out_.line("i64 dims[{}], sizes[{}];", at_least_one(plan_.dims.size()), at_least_one(sizes));
        out_.line("cuvil_value inputs[{}], outputs[{}];", at_least_one(c_.inputs.size()),
                  at_least_one(c_.outputs.size()));
        out_.line("bool copied[{}];", at_least_one(c_.inputs.size()));
        out_.line("call.dims = dims;");
        out_.line("call.inputs = inputs;");
        out_.line("call.outputs = outputs;");
        out_.line("call.out_sizes = sizes;");
        out_.line("call.copied = copied;");
        out_.line("return f(&model, &call);");
        out_.close();
        out_.blank();
    }

    // Statements that set call.in_sizes from the parameters d0, d1, ...
    void set_sizes() {
        std::vector<std::string> symbols, sizes;
        for (size_t i = 0; i < c_.symbols.size(); i++) symbols.push_back(fmt::format("d{}", i));
        for (const Value& value : inputs())
            for (const Dim& size : value.type.shape())
                sizes.push_back(size.as_symbol() ? size_text(plan_, size) : block_bytes_text(plan_, size));
        if (sizes.empty()) sizes.emplace_back("0");
        if (!symbols.empty()) out_.line("[[maybe_unused]] const i64 d[] = {{{}}};", fmt::join(symbols, ", "));
        out_.line("i64 sizes[] = {{{}}};", fmt::join(sizes, ", "));
        out_.line("rt::StaticCall call = {{}};");
        out_.line("call.in_sizes = sizes;");
    }

    void sized_functions() {
        out_.line("using namespace cuvil;");
        out_.blank();
        std::vector<std::string> parameters, in, data;
        for (size_t i = 0; i < c_.symbols.size(); i++) parameters.push_back(fmt::format("int64_t d{}", i));
        out_.open("{} uint64_t {}_workspace_size({}) {{", exported, c_.name, fmt::join(parameters, ", "));
        set_sizes();
        out_.line("return with_memory(call, cuvil_static_workspace_1);");
        out_.close();
        out_.blank();
        if (!c_.has_run) return;
        for (size_t i = 0; i < c_.inputs.size(); i++) in.push_back(fmt::format("x{}", i));
        for (size_t i = 0; i < c_.outputs.size(); i++) data.push_back(fmt::format("y{}", i));
        for (const std::string& name : in) parameters.push_back("const void* " + name);
        for (const std::string& name : data) parameters.push_back("void* " + name);
        parameters.emplace_back("void* workspace");
        out_.open("{} int32_t {}_run({}) {{", exported, c_.name, fmt::join(parameters, ", "));
        set_sizes();
        out_.line("const void* const in[] = {{{}}};", in.empty() ? "nullptr" : fmt::format("{}", fmt::join(in, ", ")));
        out_.line("void* const out[] = {{{}}};", fmt::join(data, ", "));
        out_.line("call.in_data = in;");
        out_.line("call.out_data = out;");
        out_.line("call.workspace = workspace;");
        out_.line("return with_memory(call, cuvil_static_run_1);");
        out_.close();
        out_.blank();
    }

    void general_functions() {
        out_.open(
            "{} int32_t {}_run_on(const cuvil_host* host, int32_t threads, const cuvil_value* in, cuvil_value* out, "
            "void* workspace, const int32_t* cancel) {{",
            exported, c_.name);
        out_.line("cuvil::rt::StaticCall call = {{}};");
        out_.line("call.host = host;");
        out_.line("call.threads = threads;");
        out_.line("call.in = in;");
        out_.line("call.out = out;");
        out_.line("call.workspace = workspace;");
        out_.line("call.cancel = cancel;");
        out_.line("return cuvil::with_memory(call, cuvil_static_run_1);");
        out_.close();
        out_.blank();
        out_.open("{} int32_t {}_run_values(const cuvil_value* in, cuvil_value* out) {{", exported, c_.name);
        out_.line("return {}_run_on(nullptr, 1, in, out, nullptr, nullptr);", c_.name);
        out_.close();
        out_.blank();
        out_.open("{} const char* {}_error_message(void) {{", exported, c_.name);
        out_.line("return cuvil_static_message_1();");
        out_.close();
    }

    const CInterface& c_;
    const FuncIR& main_;
    const Plan& plan_;
    CxxText out_;
};

} // namespace

std::string weights_section(const Plan& plan) {
    return is_large(plan) ? ".lrodata.cuvil_weights" : ".rodata.cuvil_weights";
}

CXXSource c_entry(const CInterface& c, const Program& program, const Plan& plan) {
    return {"entry.cpp", EntryWriter(c, program, plan).source(), {"v2"}};
}

CXXSource c_threads() { return {"threads.cpp", "#include \"runtime/static/threads.cpp\"\n", {"v2"}}; }

CXXSource c_host() { return {"host.cpp", "#include \"runtime/static/host.cpp\"\n", {"v2"}}; }

} // namespace cuvil
