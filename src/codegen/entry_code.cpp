#include "codegen/entry_code.hpp"

namespace cuvil {
namespace {

// Before the slots: the word of failures, on a line of its own.
constexpr int64_t workspace_header = 64;

class EntryWriter {
public:
    EntryWriter(const Program& program, Plan& plan, const std::vector<std::string>& levels)
        : program_(program), plan_(plan), levels_(levels) {}

    std::string source() {
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

private:
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
            std::string_view kind = is_strings(inputs[i]->type()) ? "strings" : "tensor";
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
        out.line("i64 bytes = {};", workspace_header);
        for (const Slot& slot : plan_.slots)
            out.line("bytes = sizes.add(bytes, sizes.aligned({}));", checked_size_text(plan_, slot.size));
        out.line("return sizes.overflow ? UINT64_MAX : static_cast<u64>(bytes);");
        out.close();
    }

    const Program& program_;
    Plan& plan_;
    const std::vector<std::string>& levels_;
};

} // namespace

std::string entry_source(const Program& program, Plan& plan, const std::vector<std::string>& levels) {
    return EntryWriter(program, plan, levels).source();
}

std::optional<int64_t> fixed_workspace_size(const Plan& plan) {
    int64_t bytes = workspace_header;
    for (const Slot& slot : plan.slots) {
        const auto size = slot.size.constant();
        int64_t padded = 0;
        if (!size || __builtin_add_overflow(*size, 63, &padded) ||
            __builtin_add_overflow(bytes, padded / 64 * 64, &bytes))
            return std::nullopt;
    }
    return bytes;
}

} // namespace cuvil
