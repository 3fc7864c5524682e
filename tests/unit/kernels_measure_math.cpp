// Writes the table of docs/math.md: the largest error of each function of math.hpp over every STRIDE-th float, and over
// as many doubles of all sizes.
//
//     kernels_measure_math [STRIDE]        1 takes all floats, and hours; 1021 is the default
#include "kernels_math_functions.hpp"
#include "kernels_run.hpp"

#include <bit>
#include <cstdio>
#include <cstdlib>

namespace {

// The fastest level with fma; all have the same bits.
const KernelLevel& measured_level() {
    const KernelLevel* best = nullptr;
    for (const KernelLevel& level : kernel_levels()) {
        best = level.has_fma ? &level : best;
    }
    return *best;
}

template <class T> double largest_error(const Function& f, std::uint64_t stride) {
    const KernelCase run = find_case(measured_level(), f.name + std::string(type_name<T>));
    std::mt19937_64 generator(7);
    double worst = 0;
    std::vector<T> x(4096), y(4096);
    for (std::uint64_t bits = 0; bits < 0x100000000ull;) {
        for (size_t i = 0; i < x.size(); i++, bits += stride) {
            if (sizeof(T) == 4) {
                x[i] = static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
            } else if (i % 2 == 0) {
                x[i] = static_cast<T>(std::bit_cast<double>(generator()));
            } else {
                x[i] = static_cast<T>(static_cast<double>(generator()) * 0x1p-59 - 16);
            }
        }
        const long sizes[] = {static_cast<long>(x.size()), 0};
        const void* in[] = {x.data()};
        void* out[] = {y.data()};
        run(sizes, in, out);
        for (size_t i = 0; i < x.size(); i++) {
            if (f.in_domain == nullptr || f.in_domain(static_cast<double>(x[i]))) {
                worst = std::max(worst, ulps(y[i], f.exact(x[i])));
            }
        }
    }
    return worst;
}

} // namespace

int main(int argc, char** argv) {
    const std::uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1021;
    if (stride == 0) {
        return 2;
    }
    std::printf("| function | f32 | f64 |\n|---|---|---|\n");
    for (const Function& f : functions) {
        std::printf("| `%s` | %.2f | %.2f |\n", f.name, largest_error<float>(f, stride),
                    largest_error<double>(f, stride));
        std::fflush(stdout);
    }
}
