#include "codegen/control_code.hpp"

#include "support/diagnostics.hpp"

namespace cuvil {
namespace {

// Blocks from the host belong to a region's depth and are released at its end; results of a region are copied into
// memory of the region around it before that.
class ControlWriter {
public:
    ControlWriter(const Plan& plan, CxxText& out) : plan_(plan), out_(out) {}

    void region(const RegionPlan& region, int depth) {
        for (const Step& step : region.steps) {
            if (step.kind != Step::Control) {
                out_.line("// {}", harmless(step.name));
                check("f.run({0}, step_{0})", step.number);
            } else if (step.anchor->op() == "if") {
                write_if(step, depth);
            } else {
                write_loop(step, depth);
            }
        }
    }

private:
    template <class... Args> void check(fmt::format_string<Args...> condition, Args&&... args) {
        out_.open("if (!{}) {{", fmt::format(condition, std::forward<Args>(args)...));
        out_.line("return f.finish();");
        out_.close();
    }
    void check_alive() { check("f.going()"); }

    std::string at(const Value& value) const { return fmt::format("f.b[{}]", plan_.buffer(value)); }
    std::string bytes(const Type& type) const { return size_text(plan_, type.bytes()); }

    // Sizes of `to` that become known with `from`: pairs of an entry of the table and an expression.
    std::vector<std::pair<int, std::string>> new_sizes(const Type& to, const Type& from) const {
        std::vector<std::pair<int, std::string>> out;
        for (size_t i = 0; i < to.shape().size(); i++) {
            auto found = plan_.dim_index.find(to.shape()[i]);
            if (!to.shape()[i].as_symbol() || found == plan_.dim_index.end()) continue;
            if (plan_.dims[static_cast<size_t>(found->second)].at_entry || to.shape()[i] == from.shape()[i]) continue;
            out.emplace_back(found->second, size_text(plan_, from.shape()[i]));
        }
        return out;
    }

    void bind_sizes(const Type& to, const Type& from) {
        for (const auto& [index, text] : new_sizes(to, from)) out_.line("d[{}] = {};", index, text);
    }

    void write_if(const Step& step, int depth) {
        const OpNode& node = *step.anchor;
        out_.open("if (*f.at<bool>({})) {{ // {}", plan_.buffer(*node.operand(0)), harmless(step.name));
        branch(step.regions[0], node, depth);
        out_.close();
        out_.open("else {{");
        branch(step.regions[1], node, depth);
        out_.close();
    }

    void branch(const RegionPlan& plan, const OpNode& node, int depth) {
        region(plan, depth + 1);
        const OpNode& end = *plan.region->terminator();
        for (size_t i = 0; i < node.results().size(); i++) bind_sizes(node.result(i).type(), end.operand(i)->type());
        for (size_t i = 0; i < node.results().size(); i++) {
            const Value& result = node.result(i);
            if (is_dynamic(result)) {
                out_.line("{} = f.alloc({}, {});", at(result), bytes(result.type()), depth);
                check_alive();
            }
            out_.line("Frame::copy({}, {}, {});", at(result), at(*end.operand(i)), bytes(result.type()));
        }
        out_.line("f.release_region({});", depth + 1);
    }

    bool is_dynamic(const Value& value) const {
        return plan_.buffers[static_cast<size_t>(plan_.buffer(value))].place == Buffer::Dynamic;
    }

    void write_loop(const Step& step, int depth) {
        const OpNode& node = *step.anchor;
        const Region& body = *step.regions[0].region;
        const OpNode& end = *body.terminator();
        const auto& pairs = plan_.carried.at(&node);
        size_t carried = pairs.size(), stacked = node.results().size() - carried;
        auto argument = [&](size_t i) -> const Value& { return *body.arguments()[i + 2]; };
        auto is_fixed = [&](size_t i) { return pairs[i].first >= 0; };

        out_.open("{{ // {}", harmless(step.name));
        out_.line("const i64 trips = {};",
                  node.operand(0) ? fmt::format("*f.at<i64>({})", plan_.buffer(*node.operand(0))) : "INT64_MAX");
        out_.line("bool going = {};",
                  node.operand(1) ? fmt::format("*f.at<bool>({})", plan_.buffer(*node.operand(1))) : "true");
        for (size_t i = 0; i < carried; i++) {
            const Value& first = *node.operand(i + 2);
            bind_sizes(argument(i).type(), first.type());
            if (is_fixed(i)) {
                out_.line("u8 *now{0} = f.b[{1}], *next{0} = f.b[{2}];", i, pairs[i].first, pairs[i].second);
            } else {
                out_.line("u8* now{} = f.alloc({}, {});", i, bytes(argument(i).type()), depth);
                check_alive();
            }
            out_.line("Frame::copy(now{}, {}, {});", i, at(first), bytes(argument(i).type()));
        }
        for (size_t i = 0; i < stacked; i++) out_.line("u8* stack{0} = nullptr; i64 used{0} = 0, capacity{0} = 0;", i);
        out_.line("i64 i = 0;");
        out_.open("for (; i < trips && going; i++) {{");
        out_.line("{} = reinterpret_cast<u8*>(&i);", at(*body.arguments()[0]));
        out_.line("{} = reinterpret_cast<u8*>(&going);", at(*body.arguments()[1]));
        for (size_t i = 0; i < carried; i++) out_.line("{} = now{};", at(argument(i)), i);
        region(step.regions[0], depth + 1);

        for (size_t i = 0; i < carried; i++) {
            const Value& value = *end.operand(i + 1);
            if (!is_fixed(i)) {
                out_.line("u8* next{} = f.alloc({}, {});", i, bytes(value.type()), depth);
                check_alive();
            }
            out_.line("Frame::copy(next{}, {}, {});", i, at(value), bytes(value.type()));
        }
        for (size_t i = 0; i < stacked; i++) {
            const Value& slice = *end.operand(1 + carried + i);
            out_.line("f.append(stack{0}, used{0}, capacity{0}, {1}, {2}, {3});", i, at(slice), bytes(slice.type()),
                      depth);
            check_alive();
        }
        out_.line("going = *f.at<bool>({});", plan_.buffer(*end.operand(0)));
        // All next sizes are computed from the present ones before any of these changes.
        std::vector<std::pair<int, std::string>> sizes;
        for (size_t i = 0; i < carried; i++)
            for (auto& [index, text] : new_sizes(argument(i).type(), end.operand(i + 1)->type())) {
                out_.line("const i64 size{} = {};", sizes.size(), text);
                sizes.emplace_back(index, fmt::format("size{}", sizes.size()));
            }
        for (const auto& [index, text] : sizes) out_.line("d[{}] = {};", index, text);
        for (size_t i = 0; i < carried; i++) {
            out_.line("u8* const past{0} = now{0};", i);
            out_.line("now{0} = next{0};", i);
            if (is_fixed(i))
                out_.line("next{0} = past{0};", i);
            else
                out_.line("f.release(past{});", i);
        }
        out_.line("f.release_region({});", depth + 1);
        check_alive();
        out_.close();

        out_.line("d[{}] = i;", plan_.dim_index.at(Dim::symbol(node.get<std::string>("count"))));
        for (size_t i = 0; i < carried; i++) {
            bind_sizes(node.result(i).type(), argument(i).type());
            out_.line("{} = now{};", at(node.result(i)), i);
        }
        for (size_t i = 0; i < stacked; i++) {
            const Value& result = node.result(carried + i);
            out_.open("if (stack{} == nullptr) {{", i);
            out_.line("stack{} = f.alloc(0, {});", i, depth);
            check_alive();
            out_.close();
            out_.line("{} = stack{};", at(result), i);
        }
        out_.close();
    }

    const Plan& plan_;
    CxxText& out_;
};

} // namespace

void region_code(const Plan& plan, const RegionPlan& region, int depth, CxxText& out) {
    ControlWriter(plan, out).region(region, depth);
}

} // namespace cuvil
