#include "codegen/control_code.hpp"

#include "support/diagnostics.hpp"

namespace cuvil {
namespace {

// Blocks from the host belong to a region's depth and are released at its end; results of a region are copied into
// memory of the region around it before that.
class ControlWriter {
public:
    ControlWriter(Plan& plan, CxxText& out) : plan_(plan), out_(out) {}

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
    std::string block_bytes(const Type& type) const { return block_bytes_text(plan_, type.bytes()); }

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
                out_.line("{} = f.alloc({}, {});", at(result), block_bytes(result.type()), depth);
                check_alive();
            }
            out_.line("Frame::copy({}, {}, {});", at(result), at(*end.operand(i)), bytes(result.type()));
        }
        out_.line("f.release_region({});", depth + 1);
    }

    bool is_dynamic(const Value& value) const {
        return plan_.buffers[static_cast<size_t>(plan_.buffer(value))].place == Buffer::Dynamic;
    }

    // The parts of a loop. Value i is carried: its argument, what the body returns for it, and its two slots.
    struct Loop {
        const OpNode& node;
        const RegionPlan& plan;
        const std::vector<std::pair<int, int>>& slots;
        int depth;

        size_t carried() const { return slots.size(); }
        size_t stacked() const { return node.results().size() - carried(); }
        bool is_fixed(size_t i) const { return slots[i].first >= 0; }
        const Value& first(size_t i) const { return *node.operand(i + 2); }
        const Value& argument(size_t i) const { return *plan.region->arguments()[i + 2]; }
        const Value& condition() const { return *plan.region->terminator()->operand(0); }
        const Value& returned(size_t i) const { return *plan.region->terminator()->operand(i + 1); }
        const Value& slice(size_t i) const { return returned(carried() + i); }
        const Value& stack(size_t i) const { return node.result(carried() + i); }
    };

    void write_loop(const Step& step, int depth) {
        const Loop loop{*step.anchor, step.regions[0], plan_.carried.at(step.anchor), depth};
        out_.open("{{ // {}", harmless(step.name));
        enter(loop);
        out_.line("i64 i = 0;");
        out_.open("for (; i < trips && going; i++) {{");
        const auto& arguments = loop.plan.region->arguments();
        out_.line("{} = reinterpret_cast<u8*>(&i);", at(*arguments[0]));
        out_.line("{} = reinterpret_cast<u8*>(&going);", at(*arguments[1]));
        for (size_t i = 0; i < loop.carried(); i++) out_.line("{} = now{};", at(loop.argument(i)), i);
        region(loop.plan, depth + 1);
        take_next(loop);
        out_.close();
        leave(loop);
        out_.close();
    }

    // Number of turns, condition, and the first of the carried values.
    void enter(const Loop& loop) {
        auto start = [&](size_t i, std::string_view type, std::string_view otherwise) {
            const Value* v = loop.node.operand(i);
            return v ? fmt::format("*f.at<{}>({})", type, plan_.buffer(*v)) : std::string(otherwise);
        };
        out_.line("const i64 trips = {};", start(0, "i64", "INT64_MAX"));
        out_.line("bool going = {};", start(1, "bool", "true"));
        for (size_t i = 0; i < loop.carried(); i++) {
            const Type& type = loop.argument(i).type();
            bind_sizes(type, loop.first(i).type());
            if (loop.is_fixed(i)) {
                out_.line("u8 *now{0} = f.b[{1}], *next{0} = f.b[{2}];", i, loop.slots[i].first, loop.slots[i].second);
            } else {
                out_.line("u8* now{} = f.alloc({}, {});", i, block_bytes(type), loop.depth);
                check_alive();
            }
            out_.line("Frame::copy(now{}, {}, {});", i, at(loop.first(i)), bytes(type));
        }
        for (size_t i = 0; i < loop.stacked(); i++) {
            out_.line("u8* stack{0} = nullptr; i64 used{0} = 0, capacity{0} = 0;", i);
            for (const auto& [index, text] : slice_sizes(loop, i)) out_.line("d[{}] = 0;", index);
        }
    }

    // The sizes of a stack that its slices show.
    std::vector<std::pair<int, std::string>> slice_sizes(const Loop& loop, size_t i) const {
        const Type& stack = loop.stack(i).type();
        return new_sizes(stack.with_shape({stack.shape().begin() + 1, stack.shape().end()}), loop.slice(i).type());
    }

    // They are those of the first turn.
    void check_slice(const Loop& loop, size_t i) {
        for (const auto& [index, text] : slice_sizes(loop, i)) {
            int check = plan_.check("the turns of the loop stack slices of different sizes, {0} and {1}",
                                    loop.node.location().name);
            out_.open("if (const i64 size = {}; i == 0) {{", text);
            out_.line("d[{}] = size;", index);
            out_.close();
            out_.open("else if (size != d[{}]) {{", index);
            out_.line("f.fail({}, d[{}], size);", check, index);
            out_.line("return f.finish();");
            out_.close();
        }
    }

    // The end of a turn: what the body returns becomes what the next one takes.
    void take_next(const Loop& loop) {
        for (size_t i = 0; i < loop.carried(); i++) {
            const Value& value = loop.returned(i);
            if (!loop.is_fixed(i)) {
                out_.line("u8* next{} = f.alloc({}, {});", i, block_bytes(value.type()), loop.depth);
                check_alive();
            }
            out_.line("Frame::copy(next{}, {}, {});", i, at(value), bytes(value.type()));
        }
        for (size_t i = 0; i < loop.stacked(); i++) {
            const Value& slice = loop.slice(i);
            check_slice(loop, i);
            out_.line("f.append(stack{0}, used{0}, capacity{0}, {1}, {2}, {3});", i, at(slice), bytes(slice.type()),
                      loop.depth);
            check_alive();
        }
        out_.line("going = *f.at<bool>({});", plan_.buffer(loop.condition()));
        // All next sizes are computed from the present ones before any of these changes.
        std::vector<std::pair<int, std::string>> sizes;
        for (size_t i = 0; i < loop.carried(); i++)
            for (auto& [index, text] : new_sizes(loop.argument(i).type(), loop.returned(i).type())) {
                out_.line("const i64 size{} = {};", sizes.size(), text);
                sizes.emplace_back(index, fmt::format("size{}", sizes.size()));
            }
        for (const auto& [index, text] : sizes) out_.line("d[{}] = {};", index, text);
        for (size_t i = 0; i < loop.carried(); i++) {
            out_.line("u8* const past{0} = now{0};", i);
            out_.line("now{0} = next{0};", i);
            if (loop.is_fixed(i))
                out_.line("next{0} = past{0};", i);
            else
                out_.line("f.release(past{});", i);
        }
        out_.line("f.release_region({});", loop.depth + 1);
        check_alive();
    }

    void leave(const Loop& loop) {
        out_.line("d[{}] = i;", plan_.dim_index.at(Dim::symbol(loop.node.get<std::string>("count"))));
        for (size_t i = 0; i < loop.carried(); i++) {
            bind_sizes(loop.node.result(i).type(), loop.argument(i).type());
            out_.line("{} = now{};", at(loop.node.result(i)), i);
        }
        for (size_t i = 0; i < loop.stacked(); i++) {
            out_.open("if (stack{} == nullptr) {{", i);
            out_.line("stack{} = f.alloc(0, {});", i, loop.depth);
            check_alive();
            out_.close();
            out_.line("{} = stack{};", at(loop.stack(i)), i);
        }
    }

    Plan& plan_;
    CxxText& out_;
};

} // namespace

void region_code(Plan& plan, const RegionPlan& region, int depth, CxxText& out) {
    ControlWriter(plan, out).region(region, depth);
}

} // namespace cuvil
