// Every value gets its memory. Values live from the step that makes them to the last step that reads them; those that
// never live together share a slot of the workspace, whose size is then the largest of theirs, an expression of the
// symbolic dimensions. What has a size that only data shows comes from the host while running.
#include "plan/plan.hpp"

#include "plan/scratch.hpp"
#include "support/diagnostics.hpp"

#include <algorithm>
#include <cstdlib>

namespace cuvil {
namespace {

constexpr int64_t alignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

class MemoryPlanner {
public:
    MemoryPlanner(Program& program, Plan& plan) : program_(program), plan_(plan) {}

    void run() {
        bind_inputs();
        place_inputs();
        claim_outputs();
        visit(plan_.main);
        finish_main();
        assign_slots();
        name_output_dims();
    }

private:
    struct Interval {
        int buffer;
        int first, last;
    };

    // ---- Dimensions

    void add_symbol(const std::string& name, bool at_entry) {
        Dim symbol = Dim::symbol(name);
        if (plan_.dim_index.contains(symbol)) return;
        plan_.dim_index[symbol] = static_cast<int>(plan_.dims.size());
        plan_.dims.push_back({symbol, at_entry});
    }

    void bind_inputs() {
        std::set<std::string> needed;
        const auto& inputs = program_.main().body().arguments();
        for (size_t i = 0; i < inputs.size(); i++) {
            if (!inputs[i]->type().has_rank()) continue;
            // One that may be left out shows no size.
            bool is_required = program_.main().inputs[i].default_value.empty();
            for (const Dim& d : inputs[i]->type().shape()) {
                if (auto symbol = d.as_symbol(); symbol && is_required) add_symbol(*symbol, true);
                d.collect_symbols(needed);
            }
        }
        for (const std::string& name : needed)
            if (!plan_.dim_index.contains(Dim::symbol(name))) refuse_unbound(name);
        refuse_unbound_symbols(program_.main().body(), needed);
    }

    [[noreturn]] void refuse_unbound(const std::string& name, const Location& location = {}) const {
        Diagnostics diag;
        diag.error("unbound-symbol",
                   "no input that must be given has a dimension that is just '" + name +
                       "', so its size cannot be known",
                   location);
        throw Refused(diag);
    }

    // Text may name sizes that nothing gives. `bound`: the symbols known where the region begins.
    void refuse_unbound_symbols(const Region& region, std::set<std::string> bound) const {
        for (const auto& argument : region.arguments()) add_own_symbols(argument->type(), bound);
        for (const auto& node : region.nodes()) {
            if (node->def().find_attribute("count")) bound.insert(node->get<std::string>("count"));
            for (const auto& inner : node->regions()) refuse_unbound_symbols(*inner, bound);
            std::set<std::string> used;
            for (const auto& result : node->results()) {
                if (!node->regions().empty()) add_own_symbols(result->type(), bound);
                if (result->type().has_rank())
                    for (const Dim& d : result->type().shape()) d.collect_symbols(used);
            }
            for (const auto& [name, value] : node->attributes())
                if (const auto* dims = std::get_if<Shape>(&value))
                    for (const Dim& d : *dims) d.collect_symbols(used);
            for (const std::string& name : used)
                if (!bound.contains(name)) refuse_unbound(name, node->location());
        }
    }

    static void add_own_symbols(const Type& type, std::set<std::string>& bound) {
        if (!type.has_rank()) return;
        for (const Dim& d : type.shape())
            if (auto symbol = d.as_symbol()) bound.insert(*symbol);
    }

    // Sizes that this node's results bring into being: those of data-dependent ops and around control flow.
    void bind_results(const OpNode& node) {
        if (node.def().find_attribute("count")) add_symbol(node.get<std::string>("count"), false);
        for (const auto& result : node.results()) bind_new(result->type());
    }

    void bind_new(const Type& type) {
        if (!type.has_rank()) return;
        for (const Dim& d : type.shape())
            if (auto symbol = d.as_symbol()) add_symbol(*symbol, false);
    }

    // ---- Places

    int add_buffer(const Value& value, Buffer::Place place, int index = 0) {
        const Type& type = value.type();
        bool sized = type.has_rank() && type.dtype() != DType::String;
        plan_.buffers.push_back({place, index, 0, sized ? type.bytes() : Dim(0)});
        int number = static_cast<int>(plan_.buffers.size()) - 1;
        plan_.buffer_of[&value] = number;
        return number;
    }

    [[noreturn]] static void refuse_missing(const std::string& weight, const Location& where) {
        Diagnostics diag;
        diag.error("missing-weight", "the data of weight \"" + weight + "\" is not there", where)
            .suggest("compile the model this text was printed from, or let --fill-weights make numbers up");
        throw Refused(diag);
    }

    void place_inputs() {
        int index = 0;
        for (const auto& input : program_.main().body().arguments()) {
            add_buffer(*input, Buffer::Input, index);
            const std::string& fallback = program_.main().inputs.at(static_cast<size_t>(index++)).default_value;
            if (fallback.empty()) continue;
            const Weight& weight = program_.weights().at(fallback);
            if (weight.missing) refuse_missing(fallback, {});
            place_constant(fallback, weight.bytes);
        }
    }

    // Results of the program that a step of the main region makes are written straight into the caller's memory.
    void claim_outputs() {
        const OpNode& end = *program_.main().body().terminator();
        for (size_t i = 0; i < end.operands().size(); i++) {
            const Value& root = alias_root(*end.operand(i));
            if (!root.producer() || is_constant(root) || root.type().dtype() == DType::String) continue;
            if (root.producer()->parent() != &program_.main().body() || !root.type().layout().is_plain()) continue;
            if (!plan_.known_at_entry(end.operand(i)->type())) continue; // the caller has no memory for it yet
            claimed_.try_emplace(&root, static_cast<int>(i));
        }
    }

    int64_t place_constant(const std::string& name, std::span<const std::byte> bytes) {
        auto [at, is_new] = constant_at_.try_emplace(name, plan_.constant_bytes);
        if (is_new) {
            plan_.constants.push_back({plan_.constant_bytes, name, bytes});
            plan_.constant_bytes += aligned(static_cast<int64_t>(bytes.size()));
        }
        return at->second;
    }

    int buffer_of(const Value& value) {
        const Value& root = alias_root(value);
        if (auto found = plan_.buffer_of.find(&root); found != plan_.buffer_of.end())
            return plan_.buffer_of[&value] = found->second;
        CUVIL_ASSERT(is_constant(root), "a value without memory: " + root.name());
        const OpNode& node = *root.producer();
        auto bytes = constant_bytes(program_, root);
        if (!bytes) refuse_missing(node.get<std::string>("name"), node.location());
        std::string name =
            node.op() == "weight" ? node.get<std::string>("name") : "constant " + content_hash(*bytes).text();
        int number = add_buffer(root, Buffer::Constant);
        plan_.buffers[static_cast<size_t>(number)].offset = place_constant(name, *bytes);
        return plan_.buffer_of[&value] = number;
    }

    // Memory for a result of step `now`, living until further use is seen.
    void make(const Value& value, int now) {
        if (plan_.buffer_of.contains(&value)) return;
        const Type& type = value.type();
        CUVIL_ASSERT(type.has_rank() && type.dtype() != DType::String, "no memory for " + type.text());
        if (auto claimed = claimed_.find(&value); claimed != claimed_.end() && plan_.known_at_entry(type)) {
            add_buffer(value, Buffer::Output, claimed->second);
            return;
        }
        int number = add_buffer(value, plan_.known_at_entry(type) ? Buffer::Slot : Buffer::Dynamic);
        if (plan_.buffers[static_cast<size_t>(number)].place == Buffer::Slot) live_[number] = {number, now, now};
        depth_of_[number] = depth_;
    }

    void use(const Value& value) {
        int number = buffer_of(value);
        extend(number);
        if (auto pair = behind_.find(number); pair != behind_.end()) {
            extend(pair->second.first);
            extend(pair->second.second);
        }
    }

    void extend(int number) {
        auto interval = live_.find(number);
        if (interval == live_.end()) return;
        // Seen from inside a loop, a value from outside lives until the loop's end.
        size_t depth = depth_of_.at(number);
        if (depth < depth_) pending_[depth].push_back(number);
        interval->second.last = std::max(interval->second.last, time_);
    }

    int add_slot(Dim bytes) {
        plan_.buffers.push_back({Buffer::Slot, 0, 0, std::move(bytes)});
        int number = static_cast<int>(plan_.buffers.size()) - 1;
        live_[number] = {number, time_, time_};
        depth_of_[number] = depth_;
        return number;
    }

    // Memory that a step works in. All steps do so in one slot, which no value shares: one that lived on in it would
    // leave the next step to take another.
    int add_scratch(Dim bytes) {
        scratch_.push_back(static_cast<int>(plan_.buffers.size()));
        plan_.buffers.push_back({Buffer::Slot, 0, 0, std::move(bytes)});
        return scratch_.back();
    }

    // ---- The walk

    void visit(RegionPlan& region) {
        for (Step& step : region.steps) {
            time_++;
            for (Value* v : memory_operands(step)) use(*v);
            if (step.kind == Step::Control) {
                visit_control(step);
                continue;
            }
            if (step.anchor) bind_results(*step.anchor);
            for (Value* out : step.outputs) {
                bind_results(*out->producer());
                make(*out, time_);
            }
            if (Dim bytes = scratch_bytes(plan_, step); !bytes.is(0)) step.scratch = add_scratch(std::move(bytes));
        }
    }

    void visit_control(Step& step) {
        OpNode& node = *step.anchor;
        bind_results(node);
        int begin = time_;
        bool is_loop = node.op() == "loop";
        if (is_loop)
            place_loop_results(node);
        else
            for (const auto& result : node.results()) make(*result, begin);
        pending_.resize(depth_ + 1);
        depth_++;
        for (RegionPlan& inner : step.regions) {
            for (const auto& argument : inner.region->arguments()) {
                bind_new(argument->type());
                add_buffer(*argument, Buffer::Bound);
            }
            visit(inner);
            time_++;
            for (Value* v : inner.region->terminator()->operands()) use(*v);
        }
        depth_--;
        time_++;
        for (int number : pending_[depth_]) live_.at(number).last = std::max(live_.at(number).last, time_);
        pending_[depth_].clear();
        // Each branch writes the results at its end, also those that nobody reads.
        for (const auto& result : node.results()) extend(plan_.buffer(*result));
        if (is_loop)
            for (const auto& [a, b] : plan_.carried[&node])
                for (int number : {a, b})
                    if (number >= 0) live_.at(number).last = std::max(live_.at(number).last, time_);
    }

    // A carried value alternates between two buffers, one of which is the result at the end. Stacked results grow in
    // blocks from the host.
    void place_loop_results(const OpNode& node) {
        const Region& body = node.region(0);
        size_t carried = body.arguments().size() - 2;
        auto& pairs = plan_.carried[&node];
        for (size_t i = 0; i < node.results().size(); i++) {
            const Value& result = node.result(i);
            const Type& inner = i < carried ? body.arguments()[i + 2]->type() : result.type();
            bool fixed = i < carried && plan_.known_at_entry(inner) && plan_.known_at_entry(result.type());
            int number = add_buffer(result, fixed ? Buffer::Bound : Buffer::Dynamic);
            depth_of_[number] = depth_;
            if (i >= carried) continue;
            pairs.emplace_back(-1, -1);
            if (!fixed) continue;
            pairs.back() = {add_slot(inner.bytes()), add_slot(inner.bytes())};
            behind_[number] = pairs.back();
        }
    }

    void finish_main() {
        time_++;
        for (Value* v : program_.main().body().terminator()->operands())
            if (v->type().dtype() != DType::String)
                use(*v);
            else
                buffer_of(*v);
    }

    // ---- Slots

    void assign_slots() {
        std::vector<Interval> intervals;
        for (const auto& [number, interval] : live_) intervals.push_back(interval);
        std::ranges::sort(intervals, {}, [](const Interval& i) { return std::pair(i.first, i.buffer); });
        std::vector<int> busy_until;
        for (const Interval& interval : intervals) {
            Buffer& buffer = plan_.buffers[static_cast<size_t>(interval.buffer)];
            int best = -1;
            for (int slot = 0; slot < static_cast<int>(plan_.slots.size()); slot++)
                if (busy_until[static_cast<size_t>(slot)] < interval.first &&
                    (best < 0 || waste(slot, buffer.bytes) < waste(best, buffer.bytes)))
                    best = slot;
            if (best < 0) {
                best = static_cast<int>(plan_.slots.size());
                plan_.slots.emplace_back();
                busy_until.push_back(0);
            }
            busy_until[static_cast<size_t>(best)] = interval.last;
            buffer.index = best;
            Slot& slot = plan_.slots[static_cast<size_t>(best)];
            slot.size = Dim::max(slot.size, buffer.bytes);
        }
        if (scratch_.empty()) return;
        Slot& slot = plan_.slots.emplace_back();
        for (int number : scratch_) {
            Buffer& buffer = plan_.buffers[static_cast<size_t>(number)];
            buffer.index = static_cast<int>(plan_.slots.size()) - 1;
            slot.size = Dim::max(slot.size, buffer.bytes);
        }
    }

    // How badly a buffer fits a slot: nothing for its own size, else the bytes by which they differ, if known.
    int64_t waste(int slot, const Dim& bytes) const {
        auto difference = (plan_.slots[static_cast<size_t>(slot)].size - bytes).constant();
        return difference ? std::abs(*difference) : INT64_MAX;
    }

    void name_output_dims() {
        for (Value* v : program_.main().body().terminator()->operands()) {
            if (!v->type().has_rank()) continue;
            for (const Dim& d : v->type().shape())
                if (!d.constant() && !plan_.dim_index.contains(d)) {
                    plan_.dim_index[d] = static_cast<int>(plan_.dims.size());
                    plan_.dims.push_back({d, plan_.known_at_entry(d)});
                }
        }
    }

    Program& program_;
    Plan& plan_;
    int time_ = 0;
    size_t depth_ = 0;
    std::map<int, Interval> live_; // of buffers in slots
    std::vector<int> scratch_;     // buffers, too
    std::unordered_map<int, size_t> depth_of_;
    std::unordered_map<int, std::pair<int, int>> behind_; // loop result -> its two slots
    std::vector<std::vector<int>> pending_;               // by depth: buffers of that depth used deeper inside
    std::unordered_map<const Value*, int> claimed_;
    std::map<std::string, int64_t> constant_at_;
};

} // namespace

int Plan::check(std::string message, std::string node) {
    for (size_t i = 0; i < checks.size(); i++)
        if (checks[i].message == message && checks[i].node == node) return static_cast<int>(i);
    checks.push_back({std::move(message), std::move(node)});
    return static_cast<int>(checks.size()) - 1;
}

bool Plan::known_at_entry(const Dim& dim) const {
    std::set<std::string> symbols;
    dim.collect_symbols(symbols);
    return std::ranges::all_of(symbols, [&](const std::string& name) {
        auto found = dim_index.find(Dim::symbol(name));
        return found != dim_index.end() && dims[static_cast<size_t>(found->second)].at_entry;
    });
}

bool Plan::known_at_entry(const Type& type) const {
    return std::ranges::all_of(type.shape(), [&](const Dim& d) { return known_at_entry(d); });
}

int Plan::buffer(const Value& value) const {
    auto found = buffer_of.find(&value);
    if (found == buffer_of.end()) found = buffer_of.find(&alias_root(value));
    CUVIL_ASSERT(found != buffer_of.end(), "no memory for value '" + value.name() + "'");
    return found->second;
}

void plan_memory(Program& program, Plan& plan) { MemoryPlanner(program, plan).run(); }

} // namespace cuvil
