// If: its subgraphs become regions, which see the values around them.
#include "import/onnx/control.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::onnx {

Value& as_scalar(Node& node, size_t input, DType dtype) {
    Value& value = node.input(input);
    if (value.type().dtype() != dtype)
        throw ImportError("type-mismatch", fmt::format("input {} is {}, expected {}", input, value.type().text(),
                                                       Type::tensor(dtype, {}).text()));
    if (!checked_count(value.type().shape()).is(1))
        throw ImportError("shape-mismatch",
                          fmt::format("input {} is {}, expected a scalar", input, value.type().text()));
    return node.build.reshape(value, {});
}

bool mentions(const Dim& dim, const std::set<std::string>& symbols) {
    std::set<std::string> used;
    dim.collect_symbols(used);
    return std::any_of(used.begin(), used.end(), [&](const std::string& name) { return symbols.contains(name); });
}

bool any_poison(const Node& node, const Values& values) {
    return std::any_of(values.begin(), values.end(), [&](const Value* v) { return node.is_poison(v); });
}

void end_region(Node& node, const Values& results) { node.build.rewriter().create("return", results); }

namespace {

// Sizes that are the same in both branches stay, others become new symbols.
Type common_type(Node& node, const Type& a, const Type& b, const std::set<std::string>& inner, size_t output) {
    if (!a.has_rank() || !b.has_rank()) node.unsupported("a branch gives a sequence, or a value of unknown rank");
    if (a.dtype() != b.dtype())
        throw ImportError("type-mismatch", fmt::format("output {} is {} from one branch, {} from the other", output,
                                                       a.text(), b.text()));
    if (a.rank() != b.rank())
        node.unsupported(fmt::format("output {} is {} from one branch, {} from the other", output, a.text(), b.text()));
    Shape shape;
    for (int64_t i = 0; i < a.rank(); i++)
        shape.push_back(a.dim(i) == b.dim(i) && !mentions(a.dim(i), inner) ? a.dim(i)
                                                                           : node.build.fresh_dim("if_size"));
    return a.with_shape(std::move(shape));
}

// The two sizes whose equality is the condition; nothing where it is no such comparison.
std::optional<std::pair<Dim, Dim>> compared_sizes(const Value& condition) {
    const OpNode* node = condition.producer();
    while (node && node->op() == "reshape") node = node->operand(0)->producer();
    if (!node || node->op() != "equal") return std::nullopt;
    const auto &left = node->operand(0)->elements(), &right = node->operand(1)->elements();
    if (!left || !right || left->size() != 1 || right->size() != 1) return std::nullopt;
    return std::pair(left->front(), right->front());
}

bool ranks_differ(const Node& node, const Values& a, const Values& b) {
    for (size_t i = 0; i < a.size(); i++)
        if (!node.is_poison(a[i]) && !node.is_poison(b[i]) && a[i]->type().has_rank() && b[i]->type().has_rank() &&
            a[i]->type().rank() != b[i]->type().rank())
            return true;
    return false;
}

Values if_else(Node& node) {
    GraphBuilder& build = node.build;
    const GraphProto* branches[] = {&node.graph("then_branch"), &node.graph("else_branch")};
    Value& condition = as_scalar(node, 0, DType::Bool);
    size_t count = node.output_count();
    for (const GraphProto* branch : branches)
        if (branch->outputs.size() < count || !branch->inputs.empty())
            throw ImportError("bad-node", fmt::format("a branch has {} inputs and {} outputs, the node has {} outputs",
                                                      branch->inputs.size(), branch->outputs.size(), count));
    // A condition that is known leaves one branch, whose results may have any shape.
    if (auto known = build.constant_bools(condition)) return node.import_body(*branches[known->front() ? 0 : 1], {});

    OpNode& result = build.rewriter().create_typed("if", {&condition}, {}, std::vector<Type>(count));
    Values returned[2];
    std::set<std::string> inner;
    for (size_t i = 0; i < 2; i++) {
        build.enter(result.region(i));
        returned[i] = node.import_body(*branches[i], {});
        returned[i].resize(count);
        if (!any_poison(node, returned[i])) end_region(node, returned[i]);
        inner.merge(build.leave());
    }
    // Exporters write "squeeze the axis if its size is 1" like this. What follows is written for the squeezed form, so
    // that is compiled, and other sizes are refused while running.
    auto sizes = compared_sizes(condition);
    if (sizes && ranks_differ(node, returned[0], returned[1])) {
        build.rewriter().erase(result);
        build.require_equal(sizes->first, sizes->second);
        return node.import_body(*branches[0], {});
    }
    Values results;
    for (size_t i = 0; i < count; i++) {
        if (node.is_poison(returned[0][i]) || node.is_poison(returned[1][i])) {
            results.push_back(&node.poison());
            continue;
        }
        result.result(i).set_type(common_type(node, returned[0][i]->type(), returned[1][i]->type(), inner, i));
        results.push_back(&result.result(i));
    }
    return results;
}

const Row rows[] = {
    {"If", 1, newest, if_else, 1, 1, "then_branch else_branch", "if"},
};

} // namespace

std::span<const Row> control_rows() { return rows; }

} // namespace cuvil::onnx
