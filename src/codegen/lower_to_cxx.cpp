#include "codegen/lower_to_cxx.hpp"

#include "codegen/control_code.hpp"
#include "codegen/cxx_text.hpp"
#include "codegen/entry_code.hpp"
#include "codegen/step_code.hpp"
#include "support/diagnostics.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

namespace cuvil {
namespace {

// Functions per source file: enough to share the kernels among layers, few enough that two sources keep two cores busy.
// A property of the program, never of the machine, since it decides the bytes of the file.
constexpr size_t functions_per_source = 48;

constexpr std::string_view kernel_headers = R"(#include "kernels/attention.hpp"
#include "kernels/conv.hpp"
#include "kernels/conv_depthwise.hpp"
#include "kernels/conv_transpose.hpp"
#include "kernels/cumulative.hpp"
#include "kernels/depthwise.hpp"
#include "kernels/eliminate.hpp"
#include "kernels/frame.hpp"
#include "kernels/gemm.hpp"
#include "kernels/map.hpp"
#include "kernels/move.hpp"
#include "kernels/norm.hpp"
#include "kernels/pool.hpp"
#include "kernels/recurrent.hpp"
#include "kernels/reduce.hpp"
#include "kernels/resize.hpp"
#include "kernels/sampling.hpp"
#include "kernels/scatter.hpp"
#include "kernels/softmax.hpp"
#include "kernels/sort.hpp"
#include "kernels/suppress.hpp"
#include "kernels/winograd.hpp"
)";

class ProgramWriter {
public:
    ProgramWriter(const Program& program, Plan& plan, const std::vector<std::string>& levels)
        : program_(program), plan_(plan), levels_(levels) {}

    CXXModule write() {
        collect(plan_.main, 0);
        CXXModule module;
        size_t count = std::max<size_t>(1, (functions_.size() + functions_per_source - 1) / functions_per_source);
        for (size_t part = 0; part < count; part++) {
            size_t begin = part * functions_.size() / count, end = (part + 1) * functions_.size() / count;
            // The last part calls all functions, the others hold their own only.
            std::string text = part + 1 == count ? declarations(0, end) : declarations(begin, end);
            for (size_t i = begin; i < end; i++) text += "\n" + function_source(i);
            if (part + 1 == count) text += "\n" + steps_source() + "\n" + run_source();
            module.sources.push_back({fmt::format("part_{}.cpp", part), enclosed(text), levels_});
        }
        module.sources.push_back({"program.cpp", entry_source(program_, plan_, levels_), {levels_.front()}});
        return module;
    }

private:
    static std::string enclosed(const std::string& text) {
        return std::string(kernel_headers) + "\nnamespace cuvil {\ninline namespace CUVIL_ISA {\n\n" + text +
               "\n} // namespace CUVIL_ISA\n} // namespace cuvil\n";
    }

    // The code of one step or of several equal ones.
    struct Function {
        std::string body;
        const Step* first;
        size_t steps;
    };
    struct StepCall {
        const Step* step;
        size_t function;
        std::vector<int> buffers;
    };

    void collect(const RegionPlan& region, int depth) {
        for (const Step& step : region.steps) {
            if (step.kind != Step::Control) {
                StepCode code = step_code(program_, plan_, step, depth);
                auto [known, is_new] = function_of_.try_emplace(code.body, functions_.size());
                if (is_new) functions_.push_back({std::move(code.body), &step, 0});
                functions_[known->second].steps++;
                steps_.push_back({&step, known->second, std::move(code.buffers)});
            }
            for (const RegionPlan& inner : step.regions) collect(inner, depth + 1);
        }
    }

    // Symbols are the layers' names, so that profilers speak of the model.
    std::string declarations(size_t begin, size_t end) const {
        CxxText out;
        out.line("#define TEXT_OF(name) TEXT(name)");
        out.line("#define TEXT(name) #name");
        for (size_t i = begin; i < end; i++) {
            const Function& function = functions_[i];
            std::string others = function.steps > 1 ? fmt::format(" and {} more", function.steps - 1) : "";
            out.line("[[gnu::noinline]] void function_{}(Frame& f, const i32* buffer) __asm__(\"{}{} [{}].\" "
                     "TEXT_OF(CUVIL_ISA));",
                     i, harmless(function.first->name), others, i);
        }
        return out.text();
    }

    std::string function_source(size_t i) const {
        CxxText out;
        out.line("// {}", harmless(functions_[i].first->name));
        out.open("void function_{}([[maybe_unused]] Frame& f, [[maybe_unused]] const i32* buffer) {{", i);
        out.line("[[maybe_unused]] const i64* d = f.d;");
        out.paste(functions_[i].body);
        out.close();
        return out.text();
    }

    // One function per step, which stands in the chain of callers of all that the step runs.
    std::string steps_source() const {
        CxxText out;
        for (const StepCall& call : steps_) {
            out.line("[[gnu::noinline, clang::disable_tail_calls]] void step_{}(Frame& f) __asm__(\"{}#{}.\" "
                     "TEXT_OF(CUVIL_ISA));",
                     call.step->number, harmless(call.step->name), call.step->number);
            out.open("void step_{}(Frame& f) {{", call.step->number);
            if (call.buffers.empty()) {
                out.line("function_{}(f, nullptr);", call.function);
            } else {
                out.line("static constexpr i32 buffer[] = {{{}}};", fmt::join(call.buffers, ", "));
                out.line("function_{}(f, buffer);", call.function);
            }
            out.close();
        }
        return out.text();
    }

    const OpNode& end() const { return *program_.main().body().terminator(); }

    int64_t constant_offset(const std::string& name) const {
        auto found = std::ranges::find(plan_.constants, name, &PlacedConstant::name);
        CUVIL_ASSERT(found != plan_.constants.end(), "no constant " + name);
        return found->offset;
    }

    // ---- run()

    std::string run_source() const {
        CxxText out;
        out.open("i32 run(const cuvil_call* call) {{");
        size_t dims = std::max<size_t>(1, plan_.dims.size()), buffers = std::max<size_t>(1, plan_.buffers.size());
        out.line("i64 d[{}];", dims);
        out.line("u8* b[{}];", buffers);
        out.line("Frame f = {{call, d, b}};");
        out.line("*f.failure() = no_failure;");
        if (!plan_.dims.empty()) {
            out.open("for (int i = 0; i < {}; i++) {{", plan_.dims.size());
            out.line("d[i] = call->dims[i];");
            out.close();
        }
        out.line("[[maybe_unused]] auto* weights = const_cast<u8*>(static_cast<const u8*>(call->weights));");
        out.line("[[maybe_unused]] u8* slot = static_cast<u8*>(call->workspace) + 64;");
        out.blank();
        place_buffers(out);
        out.blank();
        region_code(plan_, plan_.main, 0, out);
        out.blank();
        give_outputs(out);
        out.line("return f.finish();");
        out.close();
        return out.text();
    }

    void place_buffers(CxxText& out) const {
        for (size_t s = 0; s < plan_.slots.size(); s++) {
            for (size_t i = 0; i < plan_.buffers.size(); i++)
                if (plan_.buffers[i].place == Buffer::Slot && plan_.buffers[i].index == static_cast<int>(s))
                    out.line("b[{}] = slot;", i);
            if (s + 1 < plan_.slots.size())
                out.line("slot += (({}) + 63) & ~i64(63);", size_text(plan_, plan_.slots[s].size));
        }
        for (size_t i = 0; i < plan_.buffers.size(); i++) {
            const Buffer& b = plan_.buffers[i];
            if (b.place == Buffer::Constant) out.line("b[{}] = weights + {};", i, b.offset);
            if (b.place == Buffer::Input) {
                const std::string& fallback = program_.main().inputs[static_cast<size_t>(b.index)].default_value;
                if (is_strings(program_.main().body().arguments()[static_cast<size_t>(b.index)]->type())) continue;
                if (fallback.empty())
                    out.line("b[{}] = f.input({});", i, b.index);
                else
                    out.line("b[{}] = f.input({}, weights + {});", i, b.index, constant_offset(fallback));
            }
            if (b.place == Buffer::Output) out.line("b[{}] = f.output({});", i, b.index);
        }
    }

    // Opens a block with the sizes of an output.
    void give_shape(CxxText& out, const Type& type) const {
        out.open("{{");
        out.line("const i64 shape[{}] = {};", std::max<size_t>(1, type.shape().size()),
                 sizes_text(plan_, type.shape()));
    }

    void give_outputs(CxxText& out) const {
        for (size_t i = 0; i < end().operands().size(); i++) {
            const Value& value = *end().operand(i);
            const Type& type = value.type();
            const Value& root = alias_root(value);
            if (is_strings(type)) {
                CUVIL_ASSERT(root.argument_of() == &program_.main().body(), "strings that are no input");
                give_shape(out, type);
                out.line("f.give_strings({}, call->in[{}].as.strings, shape, {});", i, root.index(), type.rank());
                out.close();
                continue;
            }
            int number = plan_.buffer(value);
            const Buffer& buffer = plan_.buffers[static_cast<size_t>(number)];
            if (buffer.place == Buffer::Output && buffer.index == static_cast<int>(i)) continue;
            std::string bytes = size_text(plan_, type.bytes());
            if (plan_.known_at_entry(type)) {
                out.line("Frame::copy(f.output({}), b[{}], {});", i, number, bytes);
                continue;
            }
            give_shape(out, type);
            out.line("f.give({}, b[{}], {}, {}, shape, {});", i, number, cxx_dtype(type.dtype()), bytes, type.rank());
            out.close();
        }
    }

    const Program& program_;
    Plan& plan_;
    const std::vector<std::string>& levels_;
    std::vector<Function> functions_;
    std::unordered_map<std::string, size_t> function_of_; // by body
    std::vector<StepCall> steps_;
};

} // namespace

CXXModule lower_to_cxx(const Program& program, Plan& plan, const std::vector<std::string>& levels) {
    return ProgramWriter(program, plan, levels).write();
}

} // namespace cuvil
