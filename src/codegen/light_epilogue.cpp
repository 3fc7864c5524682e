#include "codegen/light_epilogue.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace cuvil {
namespace {

class Reader {
public:
    explicit Reader(const StepContext& context) : c_(context) {}

    std::optional<LightEpilogue> read() {
        const Value* value = &c_.step.anchor->result();
        for (const OpNode* node : c_.step.fused) {
            if (is_final_ || !read_node(*node, *value)) return std::nullopt;
            value = &node->result();
        }
        if (!is_final_) out_.arguments = fmt::format("{{f32({}), f32({})}}", number_text(low_), number_text(high_));
        return out_;
    }

private:
    bool read_node(const OpNode& node, const Value& value) {
        bool is_first = node.operand(0) == &value;
        if (node.op() == "relu") return is_first && clamp(0, high_);
        if (node.op() == "hard_swish") return is_first && finish("HardSwish");
        if (node.op() != "add" && node.op() != "maximum" && node.op() != "minimum") return false;
        if (!is_first && node.operand(1) != &value) return false;
        Value& other = *node.operand(is_first ? 1 : 0);
        if (node.op() == "add") return add(other);
        std::optional<float> bound = number(behind_broadcasts(other));
        if (!bound) return false;
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
        std::vector<Value*> read = memory_operands(c_.step);
        bool is_image = other.type() == c_.step.outputs.at(0)->type() && std::ranges::find(read, &other) != read.end();
        if (!is_image || out_.addend || is_clamped_) return false;
        out_.addend = &other;
        return true;
    }

    // Channels that fill up a block are to stay 0.
    bool clamp(float low, float high) {
        low_ = low, high_ = high, is_clamped_ = true;
        return low <= 0 && high >= 0;
    }

    bool finish(std::string_view activation) {
        if (is_clamped_) return false;
        out_.activation = activation;
        out_.arguments = "{}";
        is_final_ = true;
        return true;
    }

    const StepContext& c_;
    LightEpilogue out_;
    float low_ = -std::numeric_limits<float>::infinity(), high_ = std::numeric_limits<float>::infinity();
    bool is_clamped_ = false, is_final_ = false;
};

} // namespace

std::optional<LightEpilogue> light_epilogue(const StepContext& context) { return Reader(context).read(); }

} // namespace cuvil
