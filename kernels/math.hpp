#pragma once
// The functions that expressions over elements are made of. Each takes a scalar or a vector of 16 lanes (of f32, f64 or
// integers where that makes sense), and gives every lane the bits that the scalar would have: no branch, no libm, only
// arithmetic that IEEE 754 and our own choice of polynomials fix. inf, NaN, signed zeros and denormals come out as from
// libm. docs/math.md lists the functions and the largest errors that were found.
#include "kernels/activation.hpp"
#include "kernels/arithmetic.hpp"
#include "kernels/exponential.hpp"
#include "kernels/power.hpp"
#include "kernels/remainder.hpp"
#include "kernels/trigonometric.hpp"
