// What compute.cpp asks of the kernels. The IR and the kernels both name things like Shape in namespace cuvil, so no
// source includes headers of both; this one is all they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::evaluation {

// A row-major tensor; `data` is aligned for its elements.
struct Array {
    std::string_view type; // of the elements, as the kernels name it: "f32", "bool"
    size_t element_size;   // bytes
    std::vector<int64_t> shape;
    const std::byte* data;

    int64_t count() const {
        int64_t product = 1;
        for (int64_t size : shape) product *= size;
        return product;
    }
};

struct Result {
    std::string_view type;
    size_t element_size;
    std::vector<int64_t> shape;
    std::byte* data;

    int64_t count() const { return Array{type, element_size, shape, data}.count(); }
};

// Of sliding windows, axis by axis.
struct Window {
    std::vector<int64_t> kernel, strides, dilations;
    std::vector<int64_t> pads; // before each axis, then behind each
};

// Each function writes all of `y`, or returns false where it has no kernel for the element types or sizes. Axes count
// from 0.

// ---- Elementwise

// An op whose record has a scalar lowering.
bool map_elements(std::string_view op, std::span<const Array> x, const Result& y);
bool cast_elements(const Array& x, const Result& y);

// ---- Products and windows

bool matmul(const Array& a, const Array& b, const Result& y);
bool eliminate(const Array& x, const Result& y);
struct Attending {
    double scale, fill;
    bool nan_to_zero;
};
// Of f32; `mask` may be nullptr.
bool attention(const Array& q, const Array& k, const Array& v, const Array* mask, const Attending& how,
               const Result& y);
// For images of two or three axes.
bool conv(const Array& x, const Array& weight, const Array* bias, const Window& window, int64_t groups,
          const Result& y);
bool conv_transpose(const Array& x, const Array& weight, const Array* bias, const Window& window, int64_t groups,
                    const Result& y);
// `counts` are the numbers of windows along the axes.
bool col2im(const Array& x, const Window& window, const std::vector<int64_t>& counts, const Result& y);
bool max_pool2d(const Array& x, const Window& window, const Result& y);
bool avg_pool2d(const Array& x, const Window& window, bool count_include_pad, const Result& y);
bool sum_pool2d(const Array& x, const Window& window, const Result& y);
bool pool_indices(const Array& x, const Window& window, bool column_major, const Result& y);

// ---- Along axes

// `family` is the kernel that the op's record names: "Sum", "Mean", ...
bool reduce(std::string_view family, const Array& x, const std::vector<int64_t>& axes, const Result& y);
// "softmax", "log_softmax" or "hardmax".
bool softmax(std::string_view op, const Array& x, int64_t axis, const Result& y);
// Over the axes from the given one on.
bool layer_norm(const Array& x, const Array* scale, const Array* bias, int64_t axis, double epsilon, const Result& y);
bool rms_norm(const Array& x, const Array* scale, int64_t axis, double epsilon, const Result& y);
// x, scale, bias, mean, variance.
bool batch_norm(std::span<const Array> x, double epsilon, const Result& y);
bool arg_extreme(const Array& x, int64_t axis, bool is_largest, bool takes_last, const Result& y);
bool top_k(const Array& x, int64_t axis, bool takes_largest, const Result& y);
bool sort_rows(const Array& x, const Result& y);
// "Sum" or "Prod".
bool cumulate(std::string_view family, const Array& x, int64_t axis, bool exclusive, bool reverse, const Result& y);
// The operands of the op; `score_threshold` may be nullptr.
bool suppress(std::span<const Array> x, const Array* score_threshold, bool is_centered, const Result& y);

struct Recurrence {
    std::string_view op; // "lstm", "gru" or "rnn"
    std::vector<std::string> activations;
    std::vector<double> alphas, betas;
    double clip;
    bool reverse;
    bool is_special; // an LSTM couples its gates, a GRU resets the product
    const Array *x, *weights, *initial_h, *initial_c, *lengths, *peepholes, *reset_bias; // nullptr: left out
};
bool recur(const Recurrence& layer, std::span<const Result> y);

// ---- Moving elements

bool transpose(const Array& x, const std::vector<int64_t>& perm, const Result& y);
bool broadcast(const Array& x, const Result& y);
bool slice(const Array& x, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps, const Result& y);
bool concat(std::span<const Array> x, int64_t axis, const Result& y);
bool pad(const Array& x, const std::vector<int64_t>& low, double value, const Result& y);
bool range(const Array& start, const Array& delta, const Result& y);

// ---- By indices; false if one is out of range, too

bool gather(const Array& x, const Array& indices, int64_t axis, const Result& y);
bool gather_elements(const Array& x, const Array& indices, int64_t axis, const Result& y);
bool gather_nd(const Array& x, const Array& indices, int64_t batch_axes, const Result& y);
// `reduction`: "none", "add", "mul", "max" or "min".
bool scatter_elements(const Array& x, const Array& indices, const Array& updates, int64_t axis,
                      std::string_view reduction, const Result& y);
bool scatter_nd(const Array& x, const Array& indices, const Array& updates, std::string_view reduction,
                const Result& y);
// How many elements are not 0; y has two axes, of which the second is so long.
int64_t nonzero_count(const Array& x);
bool nonzero(const Array& x, const Result& y);

// ---- Sampling

// Along one axis of x. Axes that keep their sizes are not resized.
struct Resampling {
    double numerator = 1, offset = 0, denominator = 1, start = 0, end = 1;
    double scale = 1;
    bool is_resized = false;
};
struct Resize {
    std::vector<Resampling> axes;   // of x
    std::string_view mode, nearest; // as the op's attributes
    double cubic, outside;
    bool exclude_outside, antialias, extrapolate;
};
bool resize(const Array& x, const Resize& how, const Result& y);
bool simplest_fractions(const Array& x, const Result& y);
bool grid_sample(const Array& x, const Array& grid, std::string_view mode, std::string_view outside,
                 bool aligns_corners, const Result& y);
struct RegionSampling {
    double scale, shift;
    int64_t samples;
    bool takes_max, is_enlarged;
};
// False for regions of images that do not exist, too. Without `images` it is roi_max_pool.
bool sample_regions(const Array& x, const Array& regions, const Array* images, const RegionSampling& how,
                    const Result& y);
bool deformed_windows(const Array& x, const Array& offset, const Array* mask, const Window& window, int64_t groups,
                      const Result& y);

} // namespace cuvil::evaluation
