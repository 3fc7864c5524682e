// NumPy's files: what is read has a shape and as many elements, and what is written of it reads back as it is. Bytes
// that start as a zip archive are a .npz file, others a .npy file.
#include "expect.hpp"
#include "target.hpp"

#include "tools/cuvil/npy.hpp"
#include "tools/cuvil/npz.hpp"

using namespace cuvil;
using namespace cuvil::cli;

namespace {

// The elements that the shape asks for are there.
void check(const Array& array) {
    uint64_t count = 1;
    for (const int64_t size : array.shape) {
        fuzz::expect(size >= 0, "a negative size");
        if (size == 0) count = 0;
    }
    for (const int64_t size : array.shape)
        if (count != 0) count *= static_cast<uint64_t>(size);
    fuzz::expect(array.strides.size() == array.shape.size(), "a stride for each axis");
    if (array.holds_strings())
        fuzz::expect(array.strings.size() == count, "as many strings as the shape says");
    else
        fuzz::expect(array.bytes.size() == count * array.dtype.bits / 8, "as many bytes as the shape says");
}

// What a run would give to be written. Strings are as UTF-8 leaves them, so only the second reading must be equal.
std::string written(const Array& array) {
    cuvil_value value{};
    if (!array.holds_strings()) {
        value.tag = CUVIL_TENSOR;
        value.as.tensor = {
            const_cast<char*>(array.bytes.data()),    1,       0, static_cast<int32_t>(array.shape.size()), array.dtype,
            const_cast<int64_t*>(array.shape.data()), nullptr, 0};
        return npy_bytes(value);
    }
    std::string bytes;
    std::vector<int64_t> offsets = {0};
    for (const std::string& text : array.strings) {
        bytes += text;
        offsets.push_back(static_cast<int64_t>(bytes.size()));
    }
    value.tag = CUVIL_STRINGS;
    value.as.strings.bytes = bytes.data();
    value.as.strings.offsets = offsets.data();
    value.as.strings.shape = const_cast<int64_t*>(array.shape.data());
    value.as.strings.ndim = static_cast<int32_t>(array.shape.size());
    return npy_bytes(value);
}

void take(const Array& array) {
    check(array);
    const Array first = parse_npy(written(array), "first.npy");
    check(first);
    const Array second = parse_npy(written(first), "second.npy");
    fuzz::expect(first.shape == array.shape && second.shape == array.shape, "the shape reads back");
    fuzz::expect(first.bytes == array.bytes, "the elements read back");
    fuzz::expect(second.strings == first.strings, "the strings read back");
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    try {
        if (!file.starts_with("PK")) {
            take(parse_npy(file, "x.npy"));
            return 0;
        }
        for (const std::string& name : parse_npz_names(file, "x.npz")) {
            try {
                take(parse_npz(file, "x.npz", name));
            } catch (const NpyError&) { // the next one may be sound
            }
        }
    } catch (const NpyError&) { // a refusal
    }
    return 0;
}
