// What evaluate.cpp asks of the kernels. The IR and the kernels both name things like Shape in namespace cuvil, so no
// source includes headers of both; this one is all they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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

struct Window {
    std::vector<int64_t> kernel, strides, dilations;
    std::vector<int64_t> pads; // top, left, bottom, right
};

// Each function writes all of `y`, or returns false where it has no kernel for the element types or sizes.

// An op whose record has a scalar lowering.
bool map_elements(std::string_view op, std::span<const Array> x, const Result& y);
bool cast_elements(const Array& x, const Result& y);

bool matmul(const Array& a, const Array& b, const Result& y);
bool conv2d(const Array& x, const Array& weight, const Array* bias, const Window& window, int64_t groups,
            const Result& y);
bool max_pool2d(const Array& x, const Window& window, const Result& y);
bool avg_pool2d(const Array& x, const Window& window, bool count_include_pad, const Result& y);

// `family` is the kernel that the op's record names: "Sum", "Mean", ... Axes count from 0.
bool reduce(std::string_view family, const Array& x, const std::vector<int64_t>& axes, const Result& y);
bool softmax(const Array& x, int64_t axis, bool logarithm, const Result& y);

bool transpose(const Array& x, const std::vector<int64_t>& perm, const Result& y);
bool broadcast(const Array& x, const Result& y);
bool slice(const Array& x, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps, const Result& y);
bool concat(std::span<const Array> x, int64_t axis, const Result& y);
bool pad(const Array& x, const std::vector<int64_t>& low, double value, const Result& y);
bool range(const Array& start, const Array& delta, const Result& y);
// False if an index is out of range, too.
bool gather(const Array& x, const Array& indices, int64_t axis, const Result& y);

} // namespace cuvil::evaluation
