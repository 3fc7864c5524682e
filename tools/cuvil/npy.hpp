// NumPy's .npy files, versions 1 to 3: one array each, numbers or strings, in either order of axes and bytes.
#pragma once

#include "console.hpp"
#include "cuvil/cuvil.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cuvil::cli {

// Not a .npy file, damaged, or of a kind that is no tensor. The text is a whole sentence that names the file.
class NpyError : public InputError {
public:
    using InputError::InputError;
};

// An array in memory, little-endian.
struct Array {
    cuvil_dtype dtype{}; // numbers; bits 0: strings
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;     // in elements, of numbers
    std::string bytes;                // numbers
    std::vector<std::string> strings; // row-major
    bool holds_strings() const { return dtype.bits == 0; }
};

// The strides of an array without gaps, row-major or, for `fortran_order`, column-major; zeros where it has no
// elements, whose other sizes may be any.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape, bool fortran_order = false);

// Throws NpyError, and std::system_error where the file cannot be read. 2-byte elements of no kind ("V2"), which is how
// NumPy writes bfloat16, are read as such.
Array read_npy(const std::filesystem::path& path);
// The same from memory; `name` is for messages.
Array parse_npy(std::string_view file, const std::string& name);

// The file of a value, which has no gaps between its elements. Throws NpyError for a list.
std::string npy_bytes(const cuvil_value& value);
// Writes it, whole or not at all; throws std::system_error.
void write_npy(const std::filesystem::path& path, const cuvil_value& value);

} // namespace cuvil::cli
