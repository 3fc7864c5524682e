#include "ir/size_equations.hpp"

#include <gtest/gtest.h>

namespace cuvil {
namespace {

const Dim n = Dim::symbol("N"), m = Dim::symbol("M"), k = Dim::symbol("K");

TEST(SizeEquations, EqualNormalFormsNeedNone) {
    SizeEquations none;
    EXPECT_TRUE(none.equal(n + 1, Dim(1) + n));
    EXPECT_FALSE(none.equal(n, m));
    EXPECT_FALSE(none.equal(n, 4));
}

TEST(SizeEquations, SymbolsStandForEachOther) {
    SizeEquations e;
    e.add(n, m);
    e.add(m, k);
    EXPECT_TRUE(e.equal(k * 4 + n, m * 5));
    EXPECT_FALSE(e.equal(k * 4, m * 5));
    e.add(k, 3);
    EXPECT_TRUE(e.equal(n * m, 9));
}

TEST(SizeEquations, ProductsAreEqualAlongAChain) {
    SizeEquations e;
    e.add(n * m, k * 2);
    e.add(k * 2, n * n);
    EXPECT_TRUE(e.equal(n * m, n * n));
    EXPECT_FALSE(e.equal(n, m)); // n may be 0
    e.add(m, 5);                 // an older equation is seen with the new value
    EXPECT_TRUE(e.equal(n * 5, n * n));
}

TEST(SizeEquations, CountsAreEqualAxisByAxisOrAsProducts) {
    SizeEquations e;
    const Dim half = Dim::floordiv(n, 2), other = Dim::floordiv(m + 1, 2);
    e.add(half * 2, other);
    EXPECT_TRUE(e.equal_counts({k, half * 2, 3}, {3 * k, other}));
    EXPECT_FALSE(e.equal_counts({k, half}, {k, other}));
    e.add(n * 6, m * k);
    EXPECT_TRUE(e.equal_counts({2, n, 3}, {k, m}));
}

TEST(SizeEquations, ASymbolInItsOwnValueIsNotSolved) {
    SizeEquations e;
    e.add(n, Dim::floordiv(n, 2) * 2);
    EXPECT_TRUE(e.equal(Dim::floordiv(n, 2) * 2, n));
    EXPECT_FALSE(e.equal(Dim::floordiv(n, 2), n));
}

TEST(SizeEquations, WhatIsTooLargeIsNotKnown) {
    const Dim large = int64_t{1} << 60;
    SizeEquations e;
    e.add(n, large);
    e.add(m, k);
    EXPECT_FALSE(e.equal(n * n, m));
    EXPECT_TRUE(e.equal_counts({n, n, m}, {n, n, k})) << "axis by axis";
    e.add(k, n * n);
    EXPECT_TRUE(e.equal(m, k));
}

} // namespace
} // namespace cuvil
