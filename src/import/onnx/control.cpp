// If and Loop: their subgraphs become regions, which see the values around them.
#include "import/onnx/graph.hpp"
#include "import/onnx/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cuvil::onnx {
namespace {

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

// Sizes that are the same in both branches stay, others become new symbols.
Type common_type(Node& node, const Type& a, const Type& b, const std::set<std::string>& inner, size_t output) {
    if (!a.has_rank() || !b.has_rank()) node.unsupported("a branch gives a value of unknown rank");
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

// What one try to build the body found.
struct Attempt {
    OpNode* loop;
    Values results; // condition, carried, stacked
    std::set<std::string> symbols;
    Diagnostics diag;
};

// Builds the loop with arguments of these types.
Attempt attempt(Node& node, const GraphProto& body, Value* trips, Value* condition, const std::vector<Type>& carried,
                size_t stacked) {
    GraphBuilder& build = node.build;
    Attempt made{};
    std::vector<Value*> operands{trips, condition};
    for (size_t i = 0; i < carried.size(); i++) operands.push_back(&node.input(2 + i));
    made.loop =
        &build.rewriter().create_typed("loop", operands, {{"count", build.fresh_dim("trips").as_symbol().value()}},
                                       std::vector<Type>(carried.size() + stacked));
    Region& region = made.loop->region(0);
    std::vector<Type> types{Type::tensor(DType::I64, {}), Type::tensor(DType::Bool, {})};
    types.insert(types.end(), carried.begin(), carried.end());
    Values arguments;
    for (size_t i = 0; i < types.size(); i++)
        arguments.push_back(&region.add_argument(types[i], std::string(body.inputs[i].name)));
    build.enter(region);
    Diagnostics* before = node.importer().redirect(&made.diag);
    made.results = node.import_body(body, arguments);
    node.importer().redirect(before);
    made.symbols = build.leave();
    return made;
}

// The loop must carry each value in one type: a size that the body changes becomes a symbol of the region.
std::vector<Type> carried_types(Node& node, const std::vector<std::vector<bool>>& changes,
                                std::set<std::string>& symbols) {
    std::vector<Type> types;
    for (size_t i = 0; i < changes.size(); i++) {
        Shape shape = node.type(2 + i).shape();
        for (size_t k = 0; k < shape.size(); k++) {
            if (!changes[i][k]) continue;
            shape[k] = node.build.fresh_dim("carried");
            symbols.insert(shape[k].as_symbol().value());
        }
        types.push_back(node.type(2 + i).with_shape(std::move(shape)));
    }
    return types;
}

// Marks the sizes that turned out to change; true when one was new.
bool find_changes(Node& node, const std::vector<Type>& carried, const Attempt& made,
                  std::vector<std::vector<bool>>& changes) {
    bool is_new = false;
    for (size_t i = 0; i < carried.size(); i++) {
        const Type& given = made.results[1 + i]->type();
        if (!given.has_rank() || given.dtype() != carried[i].dtype())
            throw ImportError("type-mismatch", fmt::format("the body turns carried value {} from {} into {}", i,
                                                           carried[i].text(), given.text()));
        if (given.rank() != carried[i].rank())
            node.unsupported(
                fmt::format("the body turns carried value {} from {} into {}", i, carried[i].text(), given.text()));
        for (size_t k = 0; k < changes[i].size(); k++) {
            if (changes[i][k] || carried[i].shape()[k] == given.shape()[k]) continue;
            changes[i][k] = true;
            is_new = true;
        }
    }
    return is_new;
}

Type outside_type(Node& node, const Type& type, const std::set<std::string>& inner) {
    Shape shape;
    for (const Dim& d : type.shape()) shape.push_back(mentions(d, inner) ? node.build.fresh_dim("loop_size") : d);
    return type.with_shape(std::move(shape));
}

Values loop(Node& node) {
    GraphBuilder& build = node.build;
    const GraphProto& body = node.graph("body");
    Value* trips = node.has_input(0) ? &as_scalar(node, 0, DType::I64) : nullptr;
    Value* condition = node.has_input(1) ? &as_scalar(node, 1, DType::Bool) : nullptr;
    size_t count = node.input_count() < 2 ? 0 : node.input_count() - 2;
    if (body.inputs.size() != count + 2 || body.outputs.size() < count + 1 ||
        node.output_count() > body.outputs.size() - 1)
        throw ImportError("bad-node",
                          fmt::format("the body has {} inputs and {} outputs for {} carried values and {} outputs",
                                      body.inputs.size(), body.outputs.size(), count, node.output_count()));
    size_t stacked = body.outputs.size() - 1 - count;
    std::vector<std::vector<bool>>& changes = node.importer().changing_sizes(body);
    changes.resize(count);
    for (size_t i = 0; i < count; i++) changes[i].resize(node.type(2 + i).shape().size());

    for (;;) {
        std::set<std::string> changing;
        std::vector<Type> carried = carried_types(node, changes, changing);
        Attempt made = attempt(node, body, trips, condition, carried, stacked);
        if (made.diag.has_errors() || any_poison(node, made.results)) {
            node.importer().append(made.diag);
            return Values(node.output_count(), &node.poison());
        }
        if (find_changes(node, carried, made, changes)) {
            build.rewriter().erase(*made.loop);
            continue;
        }
        node.importer().append(made.diag);
        const Type& next = made.results[0]->type();
        if (next.dtype() != DType::Bool || !checked_count(next.shape()).is(1))
            throw ImportError("type-mismatch", fmt::format("the condition that the body returns is {}", next.text()));
        build.enter(made.loop->region(0));
        made.results[0] = &build.reshape(*made.results[0], {});
        end_region(node, made.results);
        build.leave();

        std::set<std::string> inner = made.symbols;
        inner.insert(changing.begin(), changing.end());
        Values results;
        for (size_t i = 0; i < count + stacked; i++) {
            Type type = i < count ? carried[i] : made.results[1 + i]->type();
            if (!type.has_rank()) node.unsupported("the body gives a value of unknown rank");
            if (i < count) {
                type = outside_type(node, type, inner);
            } else {
                auto changes = [&](const Dim& d) { return mentions(d, inner); };
                if (std::any_of(type.shape().begin(), type.shape().end(), changes))
                    node.unsupported(fmt::format("the shape of stacked output {} may change, {}", i, type.text()));
                Shape shape = type.shape();
                shape.insert(shape.begin(), Dim::symbol(made.loop->get<std::string>("count")));
                type = type.with_shape(std::move(shape));
            }
            made.loop->result(i).set_type(std::move(type));
            results.push_back(&made.loop->result(i));
        }
        return results;
    }
}

const Row rows[] = {
    {"If", 1, newest, if_else, 1, 1, "then_branch else_branch", "if"},
    {"Loop", 1, newest, loop, 0, any, "body", "loop"},
};

} // namespace

std::span<const Row> control_rows() { return rows; }

} // namespace cuvil::onnx
