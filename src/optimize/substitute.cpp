#include "optimize/substitute.hpp"

#include "ir/record_check.hpp"

#include <algorithm>

namespace cuvil {

Dim substituted(const Dim& dim, const Sizes& sizes) {
    return dim.substitute([&](const std::string& symbol) -> std::optional<Dim> {
        auto found = sizes.find(symbol);
        return found == sizes.end() ? std::nullopt : std::optional(found->second);
    });
}

namespace {

std::vector<Dim> substituted(std::vector<Dim> dims, const Sizes& sizes) {
    for (Dim& dim : dims) dim = substituted(dim, sizes);
    return dims;
}

} // namespace

Type substituted(const Type& type, const Sizes& sizes) {
    auto elements = [&] {
        std::vector<Type> all;
        for (const Type& element : type.elements()) all.push_back(substituted(element, sizes));
        return all;
    };
    switch (type.kind()) {
    case Type::Kind::Tensor: return type.has_rank() ? type.with_shape(substituted(type.shape(), sizes)) : type;
    case Type::Kind::List: return Type::list(elements().at(0));
    case Type::Kind::Optional: return Type::optional(elements().at(0));
    case Type::Kind::Tuple: return Type::tuple(elements());
    default: return type;
    }
}

namespace {

void substitute(Value& value, const Sizes& sizes) {
    value.set_type(substituted(value.type(), sizes));
    if (value.type().has_rank()) (void)plain_bytes(value.type());
    if (value.elements()) value.set_elements(substituted(*value.elements(), sizes));
}

} // namespace

void substitute(Region& region, const Sizes& sizes, Rewriter& rewriter) {
    for (const auto& argument : region.arguments()) substitute(*argument, sizes);
    for (const auto& node : region.nodes()) {
        for (const auto& result : node->results()) substitute(*result, sizes);
        for (const AttributeDef& attribute : node->def().attributes)
            if (attribute.kind == AttributeKind::Dims && node->attributes().contains(attribute.name))
                rewriter.set_attribute(*node, std::string(attribute.name),
                                       substituted(node->get<Shape>(attribute.name), sizes));
        for (const auto& inner : node->regions()) substitute(*inner, sizes, rewriter);
    }
}

namespace {

bool may_hold(const Dim& left, const Dim& right, const Sizes& sizes) {
    return compare(substituted(left, sizes), substituted(right, sizes)) != Equality::Different ||
           compare(left, right) == Equality::Different; // whatever the sizes are
}

} // namespace

bool may_hold(const Region& region, const Sizes& sizes) {
    return std::ranges::all_of(region.nodes(), [&](const auto& node) {
        for (const auto& inner : node->regions())
            if (!may_hold(*inner, sizes)) return false;
        if (node->op() != "require") return true;
        const Shape &left = node->template get<Shape>("left"), &right = node->template get<Shape>("right");
        for (size_t i = 0; i < left.size(); i++)
            if (!may_hold(left[i], right[i], sizes)) return false;
        return true;
    });
}

} // namespace cuvil
