// What the generated elementwise.cpp is made of.
#pragma once

#include "eval/element_types.hpp"
#include "kernels/map.hpp"

namespace cuvil::evaluation {

// y = f(x...) element by element; all have the same number of elements. A bool is a byte, in the lanes of f as well.
template <class... X, class F> void map_all(const Result& y, F f, const X*... x) {
    using Y = element_of<decltype(f(load(x)...))>;
    const i64 shape[1] = {y.count()};
    map<1>(shape, {0, map_rows(shape)}, elements<Y>(y), f, Operand<1, X>{x, {1}}...);
}

} // namespace cuvil::evaluation
