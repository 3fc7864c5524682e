// How far a tensor is from what was expected.
#pragma once

#include "eval/interpret.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cuvil::evaluation {

// What may differ. An element passes if |actual - expected| <= absolute + relative * |expected|, or if no more than
// `ulp` representable numbers lie between the two. Integers, bools and strings have to be equal.
struct Tolerance {
    double absolute = 0, relative = 0;
    std::optional<uint64_t> ulp = {};
};

// The largest finite |x| of a tensor of floats; 0 where there is none.
double largest_magnitude(const Tensor& x);

// A difference as a part of that; 0 of 0.
double part_of_largest(double difference, const Tensor& x);

// What rounding alone may do to the results of a whole model in this type, judged by the largest finite element of
// `expected`: sums in another order lose digits of their largest terms, even where little is left of them.
Tolerance default_tolerance(const Tensor& expected);

struct Difference {
    std::string mismatch; // of dtype or shape, as a sentence; all else is then empty
    int64_t count = 0;    // elements
    int64_t outside = 0;  // that do not pass
    int64_t unequal = 0;  // in more than the sign of a zero and the bits of a NaN
    // Infinite where one side alone is an infinity or NaN. Relative ones are of expected values other than 0.
    double largest_absolute = 0, largest_relative = 0, mean_absolute = 0;
    uint64_t largest_ulp = 0;  // floats only
    std::optional<int64_t> at; // the worst element, in row-major order; nothing where all are equal
    std::string actual, expected;

    bool passes() const { return mismatch.empty() && outside == 0; }
};

// Both NaN are equal, as are infinities of one sign, and 0 and -0.
Difference compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// How many steps from one representable number to the next lead from a to b; 0 and -0 are one number. The largest
// number for NaN on one side only, 0 for NaN on both.
uint64_t ulp_distance(double a, double b);
uint64_t ulp_distance(float a, float b);

// "[0,3]" for an offset in row-major order.
std::string index_text(int64_t offset, const std::vector<int64_t>& shape);
// "f32[1,3]"
std::string type_text(const Tensor& tensor);

} // namespace cuvil::evaluation
