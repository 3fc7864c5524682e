// Reads nothing through a pointer before it is known to be a value or node of the function at hand: what a broken pass
// leaves behind must give a sentence, not a crash.
#include "ir/verifier.hpp"

#include "ir/printer.hpp"
#include "ir/record_check.hpp"
#include "ir/rewriter.hpp"
#include "ir/size_equations.hpp"
#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace cuvil {
namespace {

bool may_be_equal(const Dim& x, const Dim& y) {
    try {
        return compare(x, y) != Equality::Different;
    } catch (const DimOverflow&) {
        return true;
    }
}

// Whether a value of type `a` may stand where `b` is declared: sizes that are not known to differ are taken as equal,
// and layouts are the planner's.
bool agree(const Type& a, const Type& b) {
    if (!a.is_tensor() || !b.is_tensor()) return a == b;
    if (a.dtype() != b.dtype()) return false;
    if (!a.has_rank() || !b.has_rank()) return true;
    return std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end(), may_be_equal);
}

// The same for values whose sizes a branch or an iteration decides.
bool agree_but_for_sizes(const Type& a, const Type& b) {
    if (!a.is_tensor() || !b.is_tensor()) return a == b;
    return a.dtype() == b.dtype() && (!a.has_rank() || !b.has_rank() || a.rank() == b.rank());
}

class FunctionCheck {
public:
    FunctionCheck(const Program& program, const FuncIR& function, std::vector<std::string>& wrong)
        : program_(program), function_(function), wrong_(wrong) {}

    void run() {
        for (const auto& input : function_.body().arguments())
            if (input->type().has_rank())
                for (const Dim& d : input->type().shape()) d.collect_symbols(input_symbols_);
        collect(function_.body());
        region(function_.body());
        uses();
        ports();
    }

private:
    void fail(std::string_view what) { wrong_.push_back(fmt::format("@{}: {}", function_.name(), what)); }
    void fail(const OpNode& node, std::string_view what) { fail(fmt::format("{}, in: {}", what, print(node))); }

    void collect(const Region& region) {
        auto add = [&](const Value* v) {
            values_.insert(v);
            in_order_.push_back(v);
        };
        for (const auto& argument : region.arguments()) add(argument.get());
        for (const auto& node : region.nodes()) {
            for (const auto& result : node->results()) add(result.get());
            for (const auto& inner : node->regions()) collect(*inner);
        }
    }

    // Operands are visible, links to parents and producers are right, a terminator ends the region.
    void region(const Region& region) {
        const SizeEquations required_outside = required_;
        std::vector<const Value*> defined;
        auto define = [&](const Value& v) {
            visible_.insert(&v);
            defined.push_back(&v);
            if (std::string bad = check_sizes(v.type()); !bad.empty()) fail(fmt::format("{}, in a type", bad));
        };
        for (const auto& argument : region.arguments()) {
            if (argument->argument_of() != &region || argument->producer())
                fail(fmt::format("argument %{} does not know its region", argument->name()));
            define(*argument);
        }
        for (const auto& node : region.nodes()) {
            this->node(*node, region);
            for (const auto& result : node->results()) define(*result);
        }
        if (!region.terminator()) {
            std::string_view of = region.parent() ? region.parent()->op() : "the function";
            fail(fmt::format("a region of {} does not end with a return", of));
        }
        for (const Value* v : defined) visible_.erase(v);
        required_ = required_outside;
    }

    void node(OpNode& node, const Region& region) {
        if (node.parent() != &region) fail(node, "the node does not know its region");
        if (node.def().has(Trait::terminator) && region.nodes().back().get() != &node)
            fail(node, "a node follows the region's end");
        size_t count_before = wrong_.size();
        for (size_t i = 0; i < node.operands().size(); i++) operand(node, i);
        for (size_t i = 0; i < node.results().size(); i++)
            if (node.result(i).producer() != &node || node.result(i).index() != i)
                fail(node, fmt::format("result {} does not know its node", i));
        for (const auto& inner : node.regions()) {
            if (inner->parent() != &node) fail(node, "a region does not know its node");
            this->region(*inner);
        }
        if (wrong_.size() != count_before) return; // what follows reads operands and regions
        for (const std::string& sentence : check_against_record(node)) fail(node, sentence);
        if (wrong_.size() != count_before) return;
        if (node.op() == "if") branches(node);
        if (node.op() == "loop") loop(node);
        if (node.op() == "weight") weight(node);
        if (node.op() == "require") learn(node);
        if (node.def().infer) inference(node);
    }

    void operand(OpNode& node, size_t i) {
        const Value* v = node.operand(i);
        if (!v) return;
        if (!values_.contains(v)) return fail(node, fmt::format("operand {} is no value of this function", i));
        if (!visible_.contains(v)) fail(node, fmt::format("operand {} is not defined before this use", i));
        used_[v]++;
        if (std::count(v->uses().begin(), v->uses().end(), Use{&node, i}) != 1)
            fail(node, fmt::format("operand {} does not know this use", i));
    }

    void uses() {
        for (const Value* v : in_order_)
            if (v->uses().size() != used_[v])
                fail(fmt::format("%{} knows {} of its uses, expected {}", v->name(), v->uses().size(), used_[v]));
    }

    void branches(const OpNode& node) {
        scalar(node, 0, DType::Bool);
        for (size_t r = 0; r < node.regions().size(); r++) {
            const OpNode& end = *node.region(r).terminator();
            std::string_view name = node.def().regions[r];
            if (!node.region(r).arguments().empty()) fail(node, fmt::format("region '{}' has arguments", name));
            if (end.operands().size() != node.results().size()) {
                fail(node, fmt::format("region '{}' returns {} values, expected {}", name, end.operands().size(),
                                       node.results().size()));
                continue;
            }
            Sizes taken;
            for (size_t i = 0; i < node.results().size(); i++)
                returned(node, name, end, i, [&](const Type& t) { return becomes(t, node.result(i).type(), taken); });
        }
    }

    void scalar(const OpNode& node, size_t operand, DType dtype) {
        if (operand >= node.operands().size() || !node.operand(operand)) return;
        Type expected = Type::tensor(dtype, {});
        if (const Type& given = node.operand(operand)->type(); !agree(given, expected))
            fail(node, fmt::format("operand '{}' is {}, expected {}", node.def().operands[operand].name, given.text(),
                                   expected.text()));
    }

    // Body: (iteration, condition, carried...) -> (condition, carried..., stacked...).
    void loop(const OpNode& node) {
        scalar(node, 0, DType::I64);
        scalar(node, 1, DType::Bool);
        const Region& body = node.region(0);
        const OpNode& end = *body.terminator();
        size_t carried = node.operands().size() < 2 ? 0 : node.operands().size() - 2;
        if (body.arguments().size() != carried + 2)
            return fail(
                node, fmt::format("region 'body' takes {} values, expected {}", body.arguments().size(), carried + 2));
        if (end.operands().size() != node.results().size() + 1 || node.results().size() < carried)
            return fail(node, fmt::format("region 'body' returns {} values, expected {}", end.operands().size(),
                                          node.results().size() + 1));
        Type turn = Type::tensor(DType::I64, {}), condition = Type::tensor(DType::Bool, {});
        if (!agree(body.arguments()[0]->type(), turn) || !agree(body.arguments()[1]->type(), condition))
            fail(node,
                 fmt::format("region 'body' takes {} and {}, expected {} and {}", body.arguments()[0]->type().text(),
                             body.arguments()[1]->type().text(), turn.text(), condition.text()));
        returned(node, "body", end, 0, [&](const Type& t) { return agree(t, condition); });
        Sizes at_entry, at_turn, at_end;
        for (size_t i = 0; i < node.results().size(); i++) {
            const Type& result = node.result(i).type();
            if (i >= carried) {
                returned(node, "body", end, i + 1, [&](const Type& t) {
                    return t.is_tensor() && result.is_tensor() && t.dtype() == result.dtype() &&
                           (!t.has_rank() || !result.has_rank() || t.rank() + 1 == result.rank());
                });
                continue;
            }
            const Type& argument = body.arguments()[i + 2]->type();
            if (!becomes(node.operand(i + 2)->type(), argument, at_entry))
                fail(node, fmt::format("carried value {} is {}, its argument is {}", i,
                                       node.operand(i + 2)->type().text(), argument.text()));
            returned(node, "body", end, i + 1, [&](const Type& t) { return becomes(t, argument, at_turn); });
            if (!becomes(argument, result, at_end))
                fail(node, fmt::format("carried value {} is {}, its result {}", i, argument.text(), result.text()));
        }
    }

    using Sizes = std::map<std::string, Dim>;

    // Whether a value of type `from` can become one of type `to`, which is another value with the same memory: a size
    // differs only where a symbol that is not of the inputs takes it, everywhere the same.
    bool becomes(const Type& from, const Type& to, Sizes& taken) const {
        if (!agree_but_for_sizes(from, to)) return false;
        if (!from.has_rank() || !to.has_rank()) return true;
        auto fits = [&](const Dim& a, const Dim& b) {
            if (a == b) return true;
            auto symbol = b.as_symbol();
            if (symbol && !input_symbols_.contains(*symbol)) return taken.try_emplace(*symbol, a).first->second == a;
            auto is_simple = [](const Dim& d) { return d.constant() || d.as_symbol(); };
            return !(is_simple(a) && is_simple(b)) && may_be_equal(a, b);
        };
        return std::equal(from.shape().begin(), from.shape().end(), to.shape().begin(), fits);
    }

    template <class Fits>
    void returned(const OpNode& node, std::string_view region, const OpNode& end, size_t i, Fits fits) {
        const Value* v = end.operand(i);
        if (!v || !fits(v->type()))
            fail(node, fmt::format("region '{}' returns {} as value {}, which does not fit", region,
                                   v ? v->type().text() : "nothing", i));
    }

    void weight(const OpNode& node) {
        const auto& name = node.get<std::string>("name");
        auto found = program_.weights().find(name);
        if (found == program_.weights().end())
            fail(node, fmt::format("there is no weight {}", quoted(name)));
        else if (found->second.type != node.result().type().with_layout({}))
            fail(node, fmt::format("weight {} is {}", quoted(name), found->second.type.text()));
    }

    // Infers anew and puts the old types back.
    void inference(OpNode& node) {
        struct Saved {
            Type type;
            std::optional<std::vector<Dim>> elements;
        };
        std::vector<Saved> saved;
        for (const auto& v : node.results()) saved.push_back({v->type(), v->elements()});
        try {
            for (const auto& [a, b] : infer(node))
                if (!required_.equal_counts(a, b))
                    fail(node, fmt::format("sizes {} and {} are not known to be equal", element_count(a).text(),
                                           element_count(b).text()));
        } catch (const InferenceError& error) {
            fail(node, error.what());
        } catch (const DimOverflow& error) {
            fail(node, error.what());
        }
        for (size_t i = 0; i < saved.size(); i++) {
            Value& v = node.result(i);
            Type inferred = v.type();
            v.set_type(std::move(saved[i].type));
            v.set_elements(std::move(saved[i].elements));
            if (!agree(inferred, v.type()) || !is_required(inferred, v.type()))
                fail(node, fmt::format("result {} is {}, inferred {}", i, v.type().text(), inferred.text()));
        }
    }

    // Whether each size of `declared` is the inferred one, by its normal form or by what the program requires before.
    bool is_required(const Type& inferred, const Type& declared) const {
        if (!inferred.has_rank() || !declared.has_rank()) return true;
        return std::equal(inferred.shape().begin(), inferred.shape().end(), declared.shape().begin(),
                          [&](const Dim& a, const Dim& b) { return required_.equal(a, b); });
    }

    // A `require` node holds behind itself, to the end of its region.
    void learn(const OpNode& node) {
        const auto &left = node.get<Shape>("left"), &right = node.get<Shape>("right");
        // Inference tells where their numbers differ.
        for (size_t i = 0; i < std::min(left.size(), right.size()); i++) required_.add(left[i], right[i]);
    }

    void ports() {
        const auto& arguments = function_.body().arguments();
        if (function_.inputs.size() != arguments.size())
            fail(fmt::format("{} names of inputs, expected {}", function_.inputs.size(), arguments.size()));
        const OpNode* end = function_.body().terminator();
        if (end && function_.outputs.size() != end->operands().size())
            fail(fmt::format("{} names of outputs, expected {}", function_.outputs.size(), end->operands().size()));
        unique_names(function_.inputs, "input");
        unique_names(function_.outputs, "output");
        for (size_t i = 0; i < std::min(function_.inputs.size(), arguments.size()); i++) {
            const std::string& weight = function_.inputs[i].default_value;
            if (weight.empty()) continue;
            auto found = program_.weights().find(weight);
            if (found == program_.weights().end())
                fail(fmt::format("the default of input {} is weight {}, which does not exist",
                                 quoted(function_.inputs[i].name), quoted(weight)));
            else if (!agree(found->second.type, arguments[i]->type()))
                fail(fmt::format("the default of input {} is {}, expected {}", quoted(function_.inputs[i].name),
                                 found->second.type.text(), arguments[i]->type().text()));
        }
    }

    void unique_names(const std::vector<FuncIR::Port>& ports, std::string_view what) {
        std::set<std::string> names;
        for (const FuncIR::Port& port : ports)
            if (port.name.empty())
                fail(fmt::format("an {} has no name", what));
            else if (!names.insert(port.name).second)
                fail(fmt::format("two {}s are named {}", what, quoted(port.name)));
    }

    const Program& program_;
    const FuncIR& function_;
    std::vector<std::string>& wrong_;
    std::unordered_set<const Value*> values_, visible_;
    std::vector<const Value*> in_order_;
    std::unordered_map<const Value*, size_t> used_;
    std::set<std::string> input_symbols_;
    SizeEquations required_;
};

// The bytes of a type, where they are a number.
std::optional<int64_t> fixed_bytes(const Type& type) {
    if (!type.has_rank() || type.dtype() == DType::String) return std::nullopt;
    try {
        return type.bytes().constant();
    } catch (const DimOverflow&) {
        return std::numeric_limits<int64_t>::max();
    }
}

} // namespace

std::vector<std::string> verify(const Program& program) {
    std::vector<std::string> wrong;
    std::set<std::string> names;
    for (const auto& function : program.functions()) {
        if (!names.insert(function->name()).second)
            wrong.push_back(fmt::format("two functions are named @{}", function->name()));
        FunctionCheck(program, *function, wrong).run();
    }
    for (const auto& [name, weight] : program.weights()) {
        std::optional<int64_t> size = fixed_bytes(weight.type);
        if (!weight.missing && size && static_cast<size_t>(*size) != weight.bytes.size())
            wrong.push_back(
                fmt::format("weight {} is {} but has {} bytes", quoted(name), weight.type.text(), weight.bytes.size()));
    }
    return wrong;
}

} // namespace cuvil
