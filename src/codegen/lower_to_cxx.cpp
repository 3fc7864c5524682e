#include "codegen/lower_to_cxx.hpp"

#include "codegen/control_code.hpp"
#include "codegen/cxx_text.hpp"
#include "codegen/step_code.hpp"
#include "support/diagnostics.hpp"

#include <algorithm>

namespace cuvil {
namespace {

// Steps per source file: enough to share the kernels among layers, few enough that two sources keep two cores busy. A
// property of the program, never of the machine, since it decides the bytes of the file.
constexpr size_t steps_per_source = 24;

constexpr std::string_view kernel_headers = R"(#include "kernels/attention.hpp"
#include "kernels/conv.hpp"
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
)";

std::string cxx_dtype(DType dtype) {
    int code = dtype == DType::Bool         ? 6
               : dtype == DType::BF16       ? 4
               : is_floating(dtype)         ? 2
               : is_unsigned_integer(dtype) ? 1
               : is_signed_integer(dtype)   ? 0
                                            : 5;
    return fmt::format("{{{}, {}, 1}}", code, size_of(dtype) * 8);
}

class ProgramWriter {
public:
    ProgramWriter(const Program& program, Plan& plan, const std::vector<std::string>& levels)
        : program_(program), plan_(plan), levels_(levels) {}

    CXXModule write() {
        collect(plan_.main, 0);
        CXXModule module;
        std::string prelude = declarations();
        size_t count = std::max<size_t>(1, (steps_.size() + steps_per_source - 1) / steps_per_source);
        for (size_t part = 0; part < count; part++) {
            std::string text = prelude;
            size_t begin = part * steps_.size() / count, end = (part + 1) * steps_.size() / count;
            for (size_t i = begin; i < end; i++) text += "\n" + steps_[i];
            if (part + 1 == count) text += "\n" + run_source();
            module.sources.push_back({fmt::format("part_{}.cpp", part), enclosed(text), levels_});
        }
        module.sources.push_back({"program.cpp", program_source(), {levels_.front()}});
        return module;
    }

private:
    static std::string enclosed(const std::string& text) {
        return std::string(kernel_headers) + "\nnamespace cuvil {\ninline namespace CUVIL_ISA {\n\n" + text +
               "\n} // namespace CUVIL_ISA\n} // namespace cuvil\n";
    }

    void collect(const RegionPlan& region, int depth) {
        for (const Step& step : region.steps) {
            if (step.kind != Step::Control) {
                steps_.push_back(step_code({program_, plan_, step, depth}));
                declared_.push_back(&step);
            }
            for (const RegionPlan& inner : step.regions) collect(inner, depth + 1);
        }
    }

    // The functions of all steps, with the layer's name as their symbol, so that profilers speak of the model.
    std::string declarations() const {
        CxxText out;
        out.line("#define TEXT_OF(name) TEXT(name)");
        out.line("#define TEXT(name) #name");
        for (const Step* step : declared_)
            out.line("[[gnu::noinline]] {} __asm__(\"{}#{}.\" TEXT_OF(CUVIL_ISA));", step_declaration(*step),
                     harmless(step->name), step->number);
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
                if (is_string_input(static_cast<size_t>(b.index))) continue;
                if (fallback.empty())
                    out.line("b[{}] = f.input({});", i, b.index);
                else
                    out.line("b[{}] = f.input({}, weights + {});", i, b.index, constant_offset(fallback));
            }
            if (b.place == Buffer::Output) out.line("b[{}] = f.output({});", i, b.index);
        }
    }

    bool is_string_input(size_t i) const {
        const Type& type = program_.main().body().arguments()[i]->type();
        return type.is_tensor() && type.dtype() == DType::String;
    }

    void give_outputs(CxxText& out) const {
        for (size_t i = 0; i < end().operands().size(); i++) {
            const Value& value = *end().operand(i);
            const Type& type = value.type();
            const Value& root = alias_root(value);
            if (type.is_tensor() && type.dtype() == DType::String) {
                CUVIL_ASSERT(root.argument_of() == &program_.main().body(), "strings that are no input");
                out.line("f.give_strings({}, call->in[{}].as.strings);", i, root.index());
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
            out.open("{{");
            out.line("const i64 shape[{}] = {};", std::max<size_t>(1, type.shape().size()),
                     sizes_text(plan_, type.shape()));
            out.line("f.give({}, b[{}], {}, {}, shape, {});", i, number, cxx_dtype(type.dtype()), bytes, type.rank());
            out.close();
        }
    }

    // ---- bind(), workspace_size() and the program's descriptor

    std::string program_source() {
        CxxText out;
        out.line("#include \"kernels/frame.hpp\"");
        out.line("#include \"kernels/libc.hpp\"");
        out.blank();
        out.open("namespace cuvil {{");
        for (const std::string& level : levels_) {
            out.open("namespace {} {{", level);
            out.line("int32_t run(const cuvil_call* call);");
            out.close();
        }
        out.line("namespace {{");
        out.blank();
        write_bind(out);
        out.blank();
        write_workspace_size(out);
        out.blank();
        out.open("const cuvil_level levels[] = {{");
        for (const std::string& level : levels_) out.line("{{\"{0}\", {0}::run}},", level);
        out.close("};");
        out.blank();
        out.line("}} // namespace");
        out.close();
        out.blank();
        out.open("extern \"C\" [[gnu::visibility(\"default\")]] const cuvil_program cuvil_program_1 = {{");
        out.line("sizeof(cuvil_program), CUVIL_ABI_VERSION, {}, {}, cuvil::levels, cuvil::bind, cuvil::workspace_size,",
                 plan_.dims.size(), levels_.size());
        out.close("};");
        return out.text();
    }

    void write_bind(CxxText& out) {
        CxxText body;
        bind_inputs(body);
        check_sizes(body);
        check_requirements(body);
        out.open("[[maybe_unused]] i32 fail(cuvil_failure* failure, i64 check, i64 a = 0, i64 b = 0) {{");
        out.open("if (failure != nullptr) {{");
        out.line("*failure = {{check, {{a, b, 0, 0, 0, 0}}}};");
        out.close();
        out.line("return CUVIL_ERROR_SHAPE;");
        out.close();
        out.blank();
        out.open("i32 bind([[maybe_unused]] const cuvil_value* in, [[maybe_unused]] i64* d, [[maybe_unused]] "
                 "cuvil_failure* failure) {{");
        out.line("[[maybe_unused]] CheckedSizes sizes;");
        out.paste(body.text());
        out.line("return CUVIL_OK;");
        out.close();
    }

    bool has_default(size_t input) const { return !program_.main().inputs[input].default_value.empty(); }

    // f(input, axis, its size, and how the caller's is read) for each axis of each input.
    template <class F> void for_each_axis(F f) const {
        const auto& inputs = program_.main().body().arguments();
        for (size_t i = 0; i < inputs.size(); i++) {
            if (!inputs[i]->type().has_rank()) continue;
            const Shape& shape = inputs[i]->type().shape();
            std::string_view kind = is_string_input(i) ? "strings" : "tensor";
            for (size_t axis = 0; axis < shape.size(); axis++)
                f(i, axis, shape[axis], fmt::format("in[{}].as.{}.shape[{}]", i, kind, axis));
        }
    }

    // Symbols first: other sizes are expressions of them.
    void bind_inputs(CxxText& out) {
        for (size_t i = 0; i < plan_.dims.size(); i++)
            if (!plan_.dims[i].at_entry) out.line("d[{}] = -1;", i);
        std::set<std::string> bound;
        std::set<std::pair<size_t, size_t>> binders; // (input, axis)
        for_each_axis([&](size_t i, size_t axis, const Dim& size, const std::string& given) {
            auto symbol = size.as_symbol();
            if (!symbol || has_default(i) || !bound.insert(*symbol).second) return;
            binders.insert({i, axis});
            out.line("d[{}] = {}; // {}", plan_.dim_index.at(size), given, *symbol);
        });
        for_each_axis([&](size_t i, size_t axis, const Dim& size, const std::string& given) {
            if (!binders.contains({i, axis})) check_axis(out, i, axis, size, given);
        });
    }

    void check_axis(CxxText& out, size_t i, size_t axis, const Dim& size, const std::string& given) {
        const std::string& name = program_.main().inputs[i].name;
        int check = plan_.check(fmt::format("input '{}' has size {{0}} at axis {}, expected {{1}}", name, axis), "");
        std::string wanted = checked_size_text(plan_, size);
        std::string is_given = has_default(i) ? fmt::format("in[{}].tag != CUVIL_NONE && ", i) : "";
        out.open("if ({}{} != {}) {{", is_given, given, wanted);
        out.line("return fail(failure, {}, {}, {});", check, given, wanted);
        out.close();
    }

    // Every size that depends on the inputs' shapes alone: not beyond 64 bits, nor negative outside of regions. What is
    // inside may never run, so its steps check that themselves.
    void check_sizes(CxxText& out) {
        std::set<Dim> seen;
        check_sizes_in(program_.main().body(), true, seen, out);
        for (size_t i = 0; i < plan_.dims.size(); i++)
            if (plan_.dims[i].at_entry && !plan_.dims[i].value.as_symbol())
                out.line("d[{}] = {}; // {}", i, checked_size_text(plan_, plan_.dims[i].value),
                         plan_.dims[i].value.text());
        out.open("if (sizes.overflow) {{");
        out.line("return fail(failure, {});",
                 plan_.check("the inputs' sizes make a tensor larger than 64 bits can count", ""));
        out.close();
    }

    void check_sizes_in(const Region& region, bool is_outermost, std::set<Dim>& seen, CxxText& out) {
        for (const auto& node : region.nodes()) {
            for (const auto& result : node->results()) {
                if (!result->type().has_rank() || result->type().dtype() == DType::String) continue;
                for (const Dim& d : result->type().shape()) {
                    bool harmless_size = d.constant() || d.lower_bound().value_or(-1) >= 0;
                    if (!is_outermost || harmless_size || !plan_.known_at_entry(d) || !seen.insert(d).second) continue;
                    int check = plan_.check("the inputs' sizes give a tensor the size {0}", node->location().name);
                    out.open("if (const i64 size = {}; size < 0) {{ // {}", checked_size_text(plan_, d), d.text());
                    out.line("return fail(failure, {}, size);", check);
                    out.close();
                }
                Dim bytes = result->type().bytes();
                if (bytes.constant() || !plan_.known_at_entry(bytes) || !seen.insert(bytes).second) continue;
                out.line("(void){};", checked_size_text(plan_, bytes));
            }
            for (const auto& inner : node->regions()) check_sizes_in(*inner, false, seen, out);
        }
    }

    // `require` nodes of the main region whose sizes are known here fail before anything runs.
    void check_requirements(CxxText& out) {
        for (const auto& node : program_.main().body().nodes()) {
            if (node->op() != "require") continue;
            const Shape &left = node->get<Shape>("left"), &right = node->get<Shape>("right");
            for (size_t i = 0; i < left.size(); i++) {
                if (!plan_.known_at_entry(left[i]) || !plan_.known_at_entry(right[i])) continue;
                int check = plan_.check(node->get<std::string>("message"), node->location().name);
                std::string a = checked_size_text(plan_, left[i]), b = checked_size_text(plan_, right[i]);
                out.open("if ({} != {}) {{", a, b);
                out.line("return fail(failure, {}, {}, {});", check, a, b);
                out.close();
            }
        }
    }

    void write_workspace_size(CxxText& out) const {
        out.open("u64 workspace_size([[maybe_unused]] const i64* d, i32) {{");
        out.line("CheckedSizes sizes;");
        out.line("i64 bytes = 64;");
        for (const Slot& slot : plan_.slots)
            out.line("bytes = sizes.add(bytes, sizes.aligned({}));", checked_size_text(plan_, slot.size));
        out.line("return sizes.overflow ? UINT64_MAX : static_cast<u64>(bytes);");
        out.close();
    }

    const Program& program_;
    Plan& plan_;
    const std::vector<std::string>& levels_;
    std::vector<std::string> steps_;
    std::vector<const Step*> declared_;
};

} // namespace

CXXModule lower_to_cxx(const Program& program, Plan& plan, const std::vector<std::string>& levels) {
    return ProgramWriter(program, plan, levels).write();
}

} // namespace cuvil
