#include "artifact/manifest.hpp"

#include "plan/cost.hpp"

#include <nlohmann/json.hpp>

namespace cuvil {
namespace {

using Json = nlohmann::ordered_json;

constexpr int fixed_size = -1, size_known_after_run = -2;

Json describe(const Plan& plan, const std::string& name, const Type& type, bool optional) {
    Json shape = Json::array(), dims = Json::array();
    for (const Dim& d : type.has_rank() ? type.shape() : Shape{}) {
        if (auto size = d.constant()) {
            shape.push_back(*size);
            dims.push_back(fixed_size);
            continue;
        }
        shape.push_back(d.text());
        auto found = plan.dim_index.find(d);
        bool known = found != plan.dim_index.end() && plan.dims[static_cast<size_t>(found->second)].at_entry;
        dims.push_back(known ? found->second : size_known_after_run);
    }
    bool is_string = type.dtype() == DType::String;
    return {{"name", name},
            {"kind", is_string ? "strings" : "tensor"},
            {"dtype", is_string ? "string" : std::string(cuvil::name(type.dtype()))},
            {"shape", shape},
            {"dims", dims},
            {"optional", optional}};
}

// "max(64*N, 128) + 256*N + 64": each slot is rounded up to 64 bytes.
std::string workspace_formula(const Plan& plan) try {
    Dim bytes(64);
    for (const Slot& slot : plan.slots) bytes = bytes + slot.size;
    return bytes.text();
} catch (const DimOverflow&) { // no run will have so many
    return "more than 64 bits hold";
}

// Values by the names of the inputs and outputs that they are, others by number; views of one memory are one value.
class ValueNames {
public:
    explicit ValueNames(const FuncIR& main) {
        for (size_t i = 0; i < main.inputs.size(); i++) name(*main.body().arguments()[i], main.inputs[i].name);
        const OpNode* end = main.body().terminator();
        for (size_t i = 0; i < main.outputs.size(); i++) name(*end->operand(i), main.outputs[i].name);
    }

    std::string of(const Value& value) {
        const auto [at, is_new] = names_.emplace(&alias_root(value), "");
        if (is_new) at->second = "%" + std::to_string(count_++);
        return at->second;
    }

private:
    void name(const Value& value, const std::string& name) { names_.emplace(&alias_root(value), name); }

    std::unordered_map<const Value*, std::string> names_;
    int count_ = 0;
};

bool is_constant(const Plan& plan, const Value& value) {
    auto found = plan.buffer_of.find(&alias_root(value));
    return found != plan.buffer_of.end() && plan.buffers[static_cast<size_t>(found->second)].place == Buffer::Constant;
}

// Kernels that a family parametrises, such as "Mean", go by their op.
std::string kernel_name(const Step& step, const Plan& plan) {
    if (step.kind == Step::Control) return std::string(step.anchor->op());
    auto kernel = step.anchor ? plan.kernels.find(step.anchor) : plan.kernels.end();
    if (kernel == plan.kernels.end()) return "loop";
    const bool is_family = kernel->second[0] >= 'A' && kernel->second[0] <= 'Z';
    return is_family ? std::string(step.anchor->op()) : kernel->second;
}

// What is not zero of it; nothing where sizes do not fit 64 bits.
Json describe_work(const Plan& plan, const Step& step) try {
    Json out = Json::object();
    const Work work = work_of(plan, step);
    for (const auto& [name, member] : work_members)
        if (!(work.*member).is(0)) out[name] = (work.*member).text();
    return out;
} catch (const DimOverflow&) {
    return Json::object();
}

void describe_ops(const Step& step, Json& out) {
    if (step.anchor) out.push_back(step.anchor->op());
    for (const OpNode* node : step.fused) out.push_back(node->op());
}

// All steps in order; those of a region, one deeper, behind the control flow that they belong to.
void describe_steps(const Plan& plan, const RegionPlan& region, int depth, ValueNames& names, Json& out) {
    for (const Step& step : region.steps) {
        Json ops = Json::array(), reads = Json::array(), writes = Json::array();
        for (const Step& inner : step.within) describe_ops(inner, ops);
        describe_ops(step, ops);
        for (const Value* value : memory_operands(step))
            if (!is_constant(plan, *value)) reads.push_back(names.of(*value));
        for (const Value* value : step.outputs)
            writes.push_back({{"name", names.of(*value)}, {"type", value->type().text()}});
        out.push_back({{"number", step.number},
                       {"depth", depth},
                       {"name", step.name},
                       {"kernel", kernel_name(step, plan)},
                       {"ops", ops},
                       {"reads", reads},
                       {"writes", writes},
                       {"work", describe_work(plan, step)}});
        if (auto choice = plan.choices.find(step.anchor); choice != plan.choices.end())
            out.back()["choice"] = choice->second;
        for (const RegionPlan& inner : step.regions) describe_steps(plan, inner, depth + 1, names, out);
    }
}

} // namespace

std::string manifest_of(const Program& program, const Plan& plan, const ManifestFacts& facts) {
    const FuncIR& main = program.main();
    Json dims = Json::array(), inputs = Json::array(), outputs = Json::array(), checks = Json::array();
    for (const DimEntry& entry : plan.dims) dims.push_back(entry.value.text());
    for (size_t i = 0; i < main.inputs.size(); i++)
        inputs.push_back(describe(plan, main.inputs[i].name, main.body().arguments()[i]->type(),
                                  !main.inputs[i].default_value.empty()));
    for (size_t i = 0; i < main.outputs.size(); i++)
        outputs.push_back(describe(plan, main.outputs[i].name, main.body().terminator()->operand(i)->type(), false));
    for (const Check& check : plan.checks) checks.push_back({{"message", check.message}, {"node", check.node}});
    Json steps = Json::array();
    ValueNames names(main);
    describe_steps(plan, plan.main, 0, names, steps);
    for (size_t i = 0; i < main.outputs.size(); i++)
        outputs[i]["value"] = names.of(*main.body().terminator()->operand(i));
    auto producer = program.metadata.find("producer");
    Json manifest = {{"format", 1},
                     {"cuvil", facts.version},
                     {"name", program.name},
                     {"producer", producer == program.metadata.end() ? "" : producer->second},
                     {"target", facts.target},
                     {"levels", facts.levels},
                     {"dims", dims},
                     {"inputs", inputs},
                     {"outputs", outputs},
                     {"checks", checks},
                     {"workspace", workspace_formula(plan)},
                     {"weights", {{"bytes", plan.constant_bytes}, {"precision", facts.precision}}},
                     {"steps", steps},
                     {"metadata", program.metadata}};
    // Names in a model may be any bytes; JSON holds UTF-8 only, so others are replaced.
    return manifest.dump(1, ' ', false, Json::error_handler_t::replace);
}

} // namespace cuvil
