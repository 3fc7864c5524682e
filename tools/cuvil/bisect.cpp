// The values of the main function stand in the order of the model. Those that the wrong output is made from are halved:
// before the one that is compared everything agrees, behind it something differs. A value behind a branch that is wrong
// may agree, so what is found has its inputs looked at: where one of them differs, the search goes on among what that
// one is made from, which is less each time. In the end the inputs agree and the result does not.
#include "bisect.hpp"

#include "import/importer.hpp"
#include "ir/printer.hpp"
#include "ir/rewriter.hpp"
#include "ops/op_table.hpp"
#include "src/reproducer.hpp"
#include "src/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace cuvil::cli {
namespace {

// A result of a node of the main function, by numbers that are the same each time the model is imported.
struct Place {
    size_t node, result;
    auto operator<=>(const Place&) const = default;
};

class Bisection {
public:
    Bisection(const std::string& model, const CompileOptions& options, const Feeds& feeds, int threads,
              const OtherSide& other, const std::function<evaluation::Tolerance(const Tensor&)>& tolerance,
              Console& console)
        : model_(model), options_(options), feeds_(feeds), threads_(threads), other_(other), tolerance_(tolerance),
          console_(console) {
        options_.progress = {};
        size_t i = 0;
        for (const auto& node : other.program->main().body().nodes()) {
            for (const auto& result : node->results())
                if (is_comparable(*node, *result)) values_[{i, result->index()}] = result.get();
            for (const auto& result : node->results()) places_[result.get()] = {i, result->index()};
            i++;
        }
    }

    std::optional<Culprit> find(const Value& output) {
        const auto place = places_.find(&output);
        const bool is_known = place != places_.end() && values_.contains(place->second);
        std::optional<Place> wrong;
        if (is_known && differs(place->second)) wrong = place->second;
        if (!is_known) wrong = wrong_input(output);
        if (!wrong) return std::nullopt;
        for (;;) {
            const std::set<Place> sources = made_from(*values_.at(*wrong));
            std::vector<Place> candidates(sources.begin(), sources.end());
            candidates.push_back(*wrong);
            const Place first = halve(candidates);
            wrong = wrong_input(*values_.at(first));
            if (!wrong) return culprit(first);
        }
    }

private:
    // The node among those that the value is made from at which the error grows most, by one module that returns all
    // of them.
    std::optional<Growth> growth(const Value& output) {
        const std::set<Place> sources = made_from(output);
        if (sources.empty() || sources.size() > most_at_once) return std::nullopt;
        const std::vector<Place> places(sources.begin(), sources.end());
        std::vector<const Value*> values;
        for (const Place& place : places) values.push_back(values_.at(place));
        count_++;
        console_.progress({count_, count_, "bisect: all values"});
        const std::vector<Tensor> expected = other_.values(values), actual = computed(places);
        std::map<Place, double> errors;
        std::optional<Growth> most;
        for (size_t i = 0; i < places.size(); i++) {
            const double off = evaluation::compare(actual[i], expected[i], {}).largest_absolute;
            const double after = errors[places[i]] = evaluation::part_of_largest(off, expected[i]);
            double before = 0;
            for (const Place& input : inputs_of(*values[i])) before = std::max(before, errors[input]);
            if (most && after - before <= most->after - most->before) continue;
            const OpNode& node = *values[i]->producer();
            most = Growth{node.location().name, std::string(node.op()), before, after};
        }
        return most;
    }

    static constexpr size_t most_at_once = 2000; // values that one module returns

    bool is_comparable(const OpNode& node, const Value& result) const {
        return !node.def().has(source) && result.type().has_rank() && result.type().dtype() != DType::String &&
               other_.has(result);
    }

    // The last of the candidates differs; gives the first of neighbours of which it does and the one before does not.
    Place halve(const std::vector<Place>& candidates) {
        size_t good = 0, bad = candidates.size(); // one more than their indices
        expected_ = count_ + std::bit_width(candidates.size());
        while (bad - good > 1) {
            const size_t middle = good + (bad - good) / 2;
            (differs(candidates[middle - 1]) ? bad : good) = middle;
        }
        return candidates[bad - 1];
    }

    // Calls f for the values that the node reads, from within its regions as well.
    template <class F> static void each_operand(const OpNode& node, F f) {
        for (const Value* operand : node.operands())
            if (operand) f(*operand);
        for (const auto& region : node.regions())
            for (const auto& inner : region->nodes()) each_operand(*inner, f);
    }

    // The nearest comparable values that a value is made from.
    std::set<Place> inputs_of(const Value& value) const {
        std::set<Place> inputs;
        std::set<const Value*> seen;
        std::vector<const Value*> open = {&value};
        while (!open.empty()) {
            const OpNode* node = open.back()->producer();
            open.pop_back();
            if (!node) continue;
            each_operand(*node, [&](const Value& operand) {
                const auto place = places_.find(&operand);
                if (place == places_.end() || !seen.insert(&operand).second) return;
                if (values_.contains(place->second))
                    inputs.insert(place->second);
                else
                    open.push_back(&operand);
            });
        }
        return inputs;
    }

    // All comparable values that it is made from.
    std::set<Place> made_from(const Value& value) const {
        std::set<Place> all;
        std::vector<const Value*> open = {&value};
        while (!open.empty()) {
            const Value* next = open.back();
            open.pop_back();
            for (const Place& place : inputs_of(*next))
                if (all.insert(place).second) open.push_back(values_.at(place));
        }
        return all;
    }

    std::optional<Place> wrong_input(const Value& value) {
        for (const Place& input : inputs_of(value))
            if (differs(input)) return input;
        return std::nullopt;
    }

    bool differs(const Place& place) { return !probe(place).difference.passes(); }

    const Probe& probe(const Place& place) {
        if (const auto found = probes_.find(place); found != probes_.end()) return found->second;
        const Value& value = *values_.at(place);
        const std::string& node = value.producer()->location().name;
        count_++;
        const std::string stage = fmt::format("bisect: {}", node);
        console_.progress({count_, std::max(count_, expected_), stage});
        const Tensor expected = other_.values({&value}).front();
        const Tensor actual = computed({place}).front();
        Probe probe{value.name().empty() ? node : value.name(), evaluation::type_text(actual),
                    evaluation::compare(actual, expected, tolerance_(expected))};
        return probes_.emplace(place, std::move(probe)).first->second;
    }

    // What a module says that returns these values and nothing else.
    std::vector<Tensor> computed(const std::vector<Place>& places) const {
        Diagnostics diag;
        Program program = import_model({.path = model_}, options_, builtin_op_table(), diag);
        FuncIR& main = program.main();
        std::vector<OpNode*> nodes;
        for (const auto& node : main.body().nodes()) nodes.push_back(node.get());
        std::vector<Value*> values;
        main.outputs.clear();
        for (const Place& place : places) {
            values.push_back(&nodes.at(place.node)->result(place.result));
            main.outputs.push_back({fmt::format("value{}", values.size()), ""});
        }
        Rewriter rewriter(program, main);
        rewriter.insert_before(*nodes.back());
        rewriter.create("return", values);
        rewriter.erase(*nodes.back());
        const std::string text = print(program);
        std::string file;
        try {
            file = bytes(compile(std::move(program), options_, diag));
        } catch (const CompilerBug& bug) {
            throw CompilerBug(bug.what(), bug.step(), text, arguments_of(options_));
        } catch (const InternalError& bug) {
            throw CompilerBug(bug.what(), "plan or codegen", text, arguments_of(options_));
        }
        Session session(model_, file, threads_);
        std::vector<Tensor> tensors;
        for (const cuvil_value& value : session.run(feeds_.values)) tensors.push_back(tensor_of(value));
        return tensors;
    }

    // The errors of inputs that agree within the tolerance may add up to one that does not.
    static bool grows_slowly(const Culprit& found) {
        double before = 0;
        for (const Probe& input : found.inputs) before = std::max(before, input.difference.largest_relative);
        return before > 0 && found.result.difference.largest_relative < 8 * before;
    }

    Culprit culprit(const Place& place) {
        const OpNode& node = *values_.at(place)->producer();
        Culprit found{.node = node.location().name,
                      .file = node.location().file,
                      .op = std::string(node.op()),
                      .has_regions = !node.regions().empty(),
                      .result = probe(place),
                      .inputs = {}};
        for (const Place& input : inputs_of(*values_.at(place))) found.inputs.push_back(probe(input));
        if (grows_slowly(found)) found.growth = growth(*values_.at(place));
        found.compilations = count_;
        console_.end_progress();
        return found;
    }

    const std::string& model_;
    CompileOptions options_;
    const Feeds& feeds_;
    int threads_;
    const OtherSide& other_;
    const std::function<evaluation::Tolerance(const Tensor&)>& tolerance_;
    Console& console_;
    std::map<Place, const Value*> values_; // that can be compared
    std::map<const Value*, Place> places_; // of all
    std::map<Place, Probe> probes_;
    int count_ = 0, expected_ = 0;
};

} // namespace

std::optional<Culprit> bisect(const std::string& model, const CompileOptions& options, const Feeds& feeds, int threads,
                              const OtherSide& other, size_t output,
                              const std::function<evaluation::Tolerance(const Tensor&)>& tolerance, Console& console) {
    Bisection bisection(model, options, feeds, threads, other, tolerance, console);
    return bisection.find(*other.program->main().body().terminator()->operand(output));
}

} // namespace cuvil::cli
