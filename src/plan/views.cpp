#include "plan/views.hpp"

#include "ir/dim_quotient.hpp"

#include <algorithm>
#include <ranges>

namespace cuvil {
namespace {

constexpr size_t longest_way = 32; // chains of ops are looked through so far

struct Factor {
    Dim size, stride;
};
// An axis, cut into parts that each have one stride.
using Axis = std::vector<Factor>;

// Whether the axes are one after the other in memory, so that they are one.
bool continues(const Factor& outer, const Factor& inner) { return outer.stride == inner.stride * inner.size; }

void append(Axis& axis, const Factor& factor) {
    if (factor.size.is(1)) return;
    if (!axis.empty() && continues(axis.back(), factor))
        axis.back() = {axis.back().size * factor.size, factor.stride};
    else
        axis.push_back(factor);
}

// The axes of a value as strides over another one.
class Trace {
public:
    explicit Trace(const Type& base) {
        std::vector<Dim> strides = row_major_strides(base.shape());
        for (size_t i = 0; i < strides.size(); i++) {
            axes_.emplace_back();
            append(axes_.back(), {base.shape()[i], strides[i]});
        }
    }

    // Goes on to the node's result; false where it has no strides.
    bool follow(const OpNode& node) {
        const Shape& shape = node.result().type().shape();
        if (node.op() == "identity") return true;
        if (node.op() == "reshape") return reshape(shape);
        if (node.op() == "transpose") return transpose(node.get<std::vector<int64_t>>("perm"));
        if (node.op() == "broadcast") return broadcast(node.operand(0)->type().shape(), shape);
        return slice(node);
    }

    // Nothing where one of the last two axes has no single stride.
    std::optional<View> view() const {
        if (axes_.size() < 2 || axes_.back().size() > 1 || axes_[axes_.size() - 2].size() > 1) return std::nullopt;
        View view{{}, {}, offset_};
        Axis leading;
        for (const Axis& axis : axes_ | std::views::take(axes_.size() - 2))
            for (const Factor& factor : axis) append(leading, factor);
        auto add = [&](const Factor& factor) {
            view.shape.push_back(factor.size);
            view.strides.push_back(factor.stride);
        };
        std::ranges::for_each(leading, add);
        for (const Axis& axis : axes_ | std::views::drop(axes_.size() - 2)) add(axis.empty() ? Factor{1, 0} : axis[0]);
        return view;
    }

private:
    // From the last axis to the first, sizes are taken together or cut until they fit.
    bool reshape(const Shape& shape) {
        Axis flat;
        for (const Axis& axis : axes_)
            for (const Factor& factor : axis) append(flat, factor);
        std::vector<Axis> axes(shape.size());
        for (size_t i = shape.size(); i-- > 0;)
            for (Dim missing = shape[i]; !missing.is(1);) {
                if (flat.empty() || flat.back().size.is(0) || missing.is(0)) return false;
                Factor& last = flat.back();
                if (auto rest = divide_exactly(missing, last.size)) {
                    axes[i].insert(axes[i].begin(), last);
                    flat.pop_back();
                    missing = *rest;
                } else if (auto part = divide_exactly(last.size, missing)) {
                    axes[i].insert(axes[i].begin(), {missing, last.stride});
                    last = {*part, last.stride * missing};
                    missing = 1;
                } else {
                    return false;
                }
            }
        axes_ = std::move(axes);
        return flat.empty();
    }

    bool transpose(const std::vector<int64_t>& perm) {
        std::vector<Axis> axes;
        for (int64_t axis : perm) axes.push_back(axes_[static_cast<size_t>(axis)]);
        axes_ = std::move(axes);
        return true;
    }

    bool broadcast(const Shape& from, const Shape& to) {
        axes_.insert(axes_.begin(), to.size() - from.size(), Axis{});
        for (size_t i = 0; i < to.size(); i++) {
            bool is_new = i < to.size() - from.size() || from[i - (to.size() - from.size())] != to[i];
            if (is_new && !to[i].is(1)) axes_[i] = {{to[i], 0}};
        }
        return true;
    }

    // A size that may be below 0 is checked by the step that makes the slice.
    bool slice(const OpNode& node) {
        const Shape &starts = node.get<Shape>("starts"), &sizes = node.get<Shape>("sizes");
        const Shape& from = node.operand(0)->type().shape();
        const auto& steps = node.get<std::vector<int64_t>>("steps");
        for (size_t i = 0; i < axes_.size(); i++) {
            if (starts[i].is(0) && sizes[i] == from[i] && steps[i] == 1) continue;
            if (axes_[i].size() > 1 || sizes[i].lower_bound().value_or(-1) < 0) return false;
            if (axes_[i].empty()) axes_[i] = {{1, 0}};
            Factor& factor = axes_[i][0];
            offset_ = offset_ + starts[i] * factor.stride;
            factor = {sizes[i], factor.stride * Dim(steps[i])};
            if (factor.size.is(1)) axes_[i].clear();
        }
        return true;
    }

    std::vector<Axis> axes_;
    Dim offset_ = 0;
};

} // namespace

bool only_moves(const OpNode& node) {
    return node.op() == "transpose" || node.op() == "slice" || node.op() == "broadcast" || node.op() == "reshape" ||
           node.op() == "identity";
}

std::optional<TracedView> trace_view(Value& value) try {
    std::vector<OpNode*> way; // from the value on backwards
    for (OpNode* node = value.producer(); node && only_moves(*node) && way.size() < longest_way;
         node = node->operand(0)->producer())
        way.push_back(node);
    // The farthest value from which strides lead to this one.
    for (size_t length = way.size(); length > 0; length--) {
        bool moves = std::ranges::any_of(way | std::views::take(length),
                                         [](const OpNode* node) { return node->def().lower.kind != Lowering::Alias; });
        if (!moves) return std::nullopt;
        Value& base = *way[length - 1]->operand(0);
        Trace trace(base.type());
        bool follows = std::ranges::all_of(way | std::views::take(length) | std::views::reverse,
                                           [&](const OpNode* node) { return trace.follow(*node); });
        if (!follows) continue;
        if (auto view = trace.view()) return TracedView{&base, std::move(*view)};
    }
    return std::nullopt;
} catch (const DimOverflow&) {
    return std::nullopt;
}

Value& make_view(Rewriter& edit, const Value& value, const TracedView& traced) {
    const auto& [base, view] = traced;
    Attributes attributes{{"shape", view.shape}, {"strides", view.strides}, {"offset", Shape{view.offset}}};
    return edit.create_typed("view", {base}, std::move(attributes), {value.type()}).result();
}

std::vector<Dim> row_major_strides(const Shape& shape) {
    std::vector<Dim> strides(shape.size());
    Dim stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = stride;
        stride = stride * shape[i];
    }
    return strides;
}

View view_of(const Value& value) {
    const OpNode* node = value.producer();
    if (!node || node->op() != "view") return {value.type().shape(), row_major_strides(value.type().shape()), 0};
    return {node->get<Shape>("shape"), node->get<Shape>("strides"), node->get<Shape>("offset")[0]};
}

std::optional<Dim> row_stride(const View& view) {
    Axis rows;
    for (size_t i = 0; i + 1 < view.shape.size(); i++) append(rows, {view.shape[i], view.strides[i]});
    if (rows.size() > 1) return std::nullopt;
    return rows.empty() ? Dim(0) : rows[0].stride;
}

} // namespace cuvil
