// What a step has to do, and how long that takes one core of the target, estimated. Kernels are chosen by it where
// there are several, and `cuvil inspect --kernels` tells it. It knows nothing of the machine that compiles: the choice
// decides bits.
#pragma once

#include "plan/plan.hpp"
#include "plan/winograd.hpp"

#include <optional>
#include <utility>

namespace cuvil {

struct Work {
    Dim multiplications = 0; // that are done: of Winograd's method, its own
    Dim rows = 1;            // that take each weight from its register
    Dim weights = 0;         // bytes of constants
    Dim values = 0;          // bytes of all else that is read or written
    Dim transforms = 0;      // 16 channels that go to or come from a point of Winograd's method
};
// Under the names that the manifest has.
inline constexpr std::pair<const char*, Dim Work::*> work_members[] = {{"multiplications", &Work::multiplications},
                                                                       {"rows", &Work::rows},
                                                                       {"weights", &Work::weights},
                                                                       {"values", &Work::values},
                                                                       {"transforms", &Work::transforms}};

// Of a convolution from c to k channels of n images with oh x ow pixels, `taps` weights for each pair of channels.
Work direct_convolution_work(const Dim& n, const Dim& c, const Dim& k, const Dim& oh, const Dim& ow, const Dim& taps);
// The same by Winograd's method.
Work winograd_work(const PointScheme& scheme, const Dim& n, const Dim& c, const Dim& k, const Dim& oh, const Dim& ow);
// Of a planned step. The ops in the kernel's epilogue count with the bytes that they read and write.
Work work_of(const Plan& plan, const Step& step);

struct Estimate {
    double nanoseconds;
    double share_of_peak; // 0 to 1: the part of the time that the multiplications take at their quickest
};
// For one core between those with AVX2 and those with AVX-512. Nothing where a size is open.
std::optional<Estimate> estimate(const Work& work);

} // namespace cuvil
