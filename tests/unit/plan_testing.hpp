// Plans of programs in IR text, told in the names of their values.
#pragma once

#include "ir/parser.hpp"
#include "ops/op_table.hpp"
#include "plan/plan.hpp"
#include "support/diagnostics.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

class Planned {
public:
    explicit Planned(std::string_view text, const ChoiceOptions& options = {})
        : program_(parsed(text)), plan(choose_algorithms(program_, options)) {
        choose_layouts(program_, plan);
        fuse_loops(program_, plan);
        plan_memory(program_, plan);
        collect(program_.main().body());
    }

    // The ops of each step of the main region in order, the kernel first: "gemm, add, relu".
    std::vector<std::string> steps() const {
        std::vector<std::string> out;
        for (const Step& step : plan.main.steps) {
            std::string text;
            if (step.anchor) {
                auto kernel = plan.kernels.find(step.anchor);
                text = kernel == plan.kernels.end() ? std::string(step.anchor->op()) : kernel->second;
            }
            for (const OpNode* node : step.fused) text += (text.empty() ? "" : ", ") + std::string(node->op());
            out.push_back(std::move(text));
        }
        return out;
    }

    // The value of that name; of several, as after a relayout, the last.
    const Value& value(std::string_view name) const {
        const Value* found = nullptr;
        for (const Value* v : values_)
            if (v->name() == name) found = v;
        CUVIL_ASSERT(found, "no value " + std::string(name));
        return *found;
    }
    const Buffer& buffer(std::string_view name) const {
        return plan.buffers[static_cast<size_t>(plan.buffer(value(name)))];
    }
    // The slot of a value, -1 if its memory is elsewhere.
    int slot(std::string_view name) const { return buffer(name).place == Buffer::Slot ? buffer(name).index : -1; }
    std::vector<std::string> slots() const {
        std::vector<std::string> out;
        for (const Slot& slot : plan.slots) out.push_back(slot.size.text());
        return out;
    }

private:
    static Program parsed(std::string_view text) {
        Diagnostics diag;
        auto program = parse(text, "test.cuir", builtin_op_table(), diag);
        diag.stop_if_errors();
        return std::move(*program);
    }

    void collect(const Region& region) {
        for (const auto& argument : region.arguments()) values_.push_back(argument.get());
        for (const auto& node : region.nodes()) {
            for (const auto& result : node->results()) values_.push_back(result.get());
            for (const auto& inner : node->regions()) collect(*inner);
        }
    }

    Program program_;
    std::vector<const Value*> values_;

public:
    Plan plan;
};

} // namespace cuvil
