#include "artifact/manifest.hpp"

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

// "64 + max(64*N, 128) + 256*N": each slot is rounded up to 64 bytes.
std::string workspace_formula(const Plan& plan) {
    std::string out = "64";
    for (const Slot& slot : plan.slots) out += " + " + slot.size.text();
    return out;
}

void describe_steps(const Plan& plan, const RegionPlan& region, Json& out) {
    for (const Step& step : region.steps) {
        Json ops = Json::array();
        if (step.anchor) ops.push_back(step.anchor->op());
        for (const OpNode* node : step.fused) ops.push_back(node->op());
        auto kernel = step.anchor ? plan.kernels.find(step.anchor) : plan.kernels.end();
        out.push_back({{"number", step.number},
                       {"name", step.name},
                       {"kernel", kernel != plan.kernels.end() ? kernel->second
                                  : step.kind == Step::Control ? std::string(step.anchor->op())
                                                               : "loop"},
                       {"ops", ops}});
        for (const RegionPlan& inner : step.regions) describe_steps(plan, inner, out);
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
    describe_steps(plan, plan.main, steps);
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
                     {"weights", {{"bytes", plan.constant_bytes}}},
                     {"steps", steps},
                     {"metadata", program.metadata}};
    // Names in a model may be any bytes; JSON holds UTF-8 only, so others are replaced.
    return manifest.dump(1, ' ', false, Json::error_handler_t::replace);
}

} // namespace cuvil
