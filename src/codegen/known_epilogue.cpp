#include "codegen/known_epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace cuvil {
namespace {

// Follows the chain of the fused nodes from the kernel's result on.
class Reader {
public:
    explicit Reader(const StepContext& context) : c_(context), read_(memory_operands(context.step)) {}

    std::optional<KnownEpilogue> read() {
        const Value* value = &c_.step.anchor->result();
        for (const OpNode* node : c_.step.fused) {
            if (!read_node(*node, *value)) return std::nullopt;
            value = &node->result();
        }
        if (out_.function == "Clamp")
            out_.arguments = fmt::format("{{f32({}), f32({})}}", number_text(low_), number_text(high_));
        return out_;
    }

private:
    bool read_node(const OpNode& node, const Value& value) {
        bool is_first = node.operand(0) == &value;
        if (node.op() == "relu") return is_first && clamp(0, high_);
        if (node.op() == "hard_swish") return is_first && apply("HardSwish");
        if (node.op() == "silu") return is_first && apply("Silu");
        if (node.op() != "add" && node.op() != "maximum" && node.op() != "minimum") return false;
        if (!is_first && node.operand(1) != &value) return false;
        Value& other = *node.operand(is_first ? 1 : 0);
        if (node.op() == "add") return add(other);
        std::optional<float> bound = number(behind_broadcasts(other));
        if (!bound || std::isnan(*bound)) return false;
        return node.op() == "maximum" ? clamp(std::max(low_, *bound), high_) : clamp(low_, std::min(high_, *bound));
    }

    std::optional<float> number(const Value& value) const {
        if (!is_literal(value) || value.type().dtype() != DType::F32) return std::nullopt;
        auto bytes = constant_bytes(c_.program, value);
        if (!bytes) return std::nullopt;
        float number = 0;
        std::memcpy(&number, bytes->data(), sizeof number);
        return number;
    }

    bool add(Value& other) {
        bool is_image =
            other.type() == c_.step.outputs.at(0)->type() && std::ranges::find(read_, &other) != read_.end();
        if (!is_image || out_.addend) return false;
        out_.addend = &other;
        out_.where = is_applied_ ? "after" : "before";
        return true;
    }

    // Channels that fill up a block are to stay 0.
    bool clamp(float low, float high) {
        if (out_.function != "Clamp" || out_.where == "after") return false;
        low_ = low, high_ = high, is_applied_ = true;
        return low <= 0 && high >= 0;
    }

    bool apply(std::string_view function) {
        if (is_applied_) return false;
        out_.function = function;
        is_applied_ = true;
        return true;
    }

    const StepContext& c_;
    std::vector<Value*> read_;
    KnownEpilogue out_;
    float low_ = -std::numeric_limits<float>::infinity(), high_ = std::numeric_limits<float>::infinity();
    bool is_applied_ = false;
};

} // namespace

std::optional<KnownEpilogue> known_epilogue(const StepContext& context) { return Reader(context).read(); }

} // namespace cuvil
