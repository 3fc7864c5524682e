// Python values -> the loader's inputs.
#pragma once

#include "spec.hpp"

#include <array>
#include <memory>
#include <vector>

namespace cuvil::python {

// What keeps the memory behind one cuvil_value alive: a buffer of a Python object, or copies.
class Feed {
public:
    Feed() = default;
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;
    ~Feed();

    // A view of `value` for the input `spec`: numbers in any strides are not copied. What is no buffer of the right
    // dtype goes through cuvil._feeds, which converts what loses nothing and raises TypeError for the rest.
    void take(PyObject* value, const Spec& spec, cuvil_value& out);

private:
    bool take_buffer(PyObject* value, const cuvil_dtype& dtype, cuvil_value& out);
    void take_strings(PyObject* value, const Spec& spec, cuvil_value& out);
    void take_list(PyObject* value, const Spec& spec, cuvil_value& out);

    static constexpr int most_axes = 64;
    Py_buffer buffer_{};
    bool holds_buffer_ = false;
    std::array<int64_t, most_axes> shape_;
    std::array<int64_t, most_axes> strides_;

    struct Strings {
        std::string bytes;
        std::vector<int64_t> offsets;
    };
    std::unique_ptr<Strings> strings_;
    struct Items {
        std::unique_ptr<Feed[]> feeds;
        std::vector<cuvil_value> values;
    };
    std::unique_ptr<Items> items_;
};

} // namespace cuvil::python
