// Python values -> the loader's inputs, and memory of Python's for its outputs.
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

    // A view of `value` for the input `spec`: numbers in any strides are not copied. Arrays of NumPy first, then the
    // buffer protocol, then DLPack. What is none of these, or of another dtype, goes through cuvil._feeds, which
    // converts what loses nothing and raises TypeError for the rest.
    void take(PyObject* value, const Spec& spec, cuvil_value& out);

    // The same without any copy: throws TypeError for what is not numbers of the very dtype in memory of its own.
    void take_in_place(PyObject* value, const Spec& spec, cuvil_value& out);

    // A view of `value` for the output `spec` to be written to: an array of the very dtype that may be written.
    void take_target(PyObject* value, const Spec& spec, cuvil_value& out);

private:
    bool take_view(PyObject* value, const cuvil_dtype& dtype, bool is_written, cuvil_value& out);
    bool take_array(PyObject* value, const cuvil_dtype& dtype, bool is_written, cuvil_value& out);
    bool take_buffer(PyObject* value, const cuvil_dtype& dtype, bool is_written, cuvil_value& out);
    bool take_dlpack(PyObject* value, const cuvil_dtype& dtype, cuvil_value& out);
    void take_strings(PyObject* value, const Spec& spec, cuvil_value& out);
    void take_list(PyObject* value, const Spec& spec, cuvil_value& out);

    static constexpr int most_axes = 64;
    Py_buffer buffer_; // where holds_buffer_
    bool holds_buffer_ = false;
    nb::object owner_; // the array, or the capsule of DLPack, that is read
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
