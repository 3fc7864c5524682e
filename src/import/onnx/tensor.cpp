#include "import/onnx/tensor.hpp"

#include "support/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace cuvil::onnx {
namespace {

namespace fs = std::filesystem;

struct DataType {
    std::string_view name;
    std::optional<DType> dtype;
};

// By the number in the schema.
constexpr std::array<DataType, 27> data_types{{
    {"undefined", {}},
    {"float", DType::F32},
    {"uint8", DType::U8},
    {"int8", DType::I8},
    {"uint16", DType::U16},
    {"int16", DType::I16},
    {"int32", DType::I32},
    {"int64", DType::I64},
    {"string", DType::String},
    {"bool", DType::Bool},
    {"float16", DType::F16},
    {"double", DType::F64},
    {"uint32", DType::U32},
    {"uint64", DType::U64},
    {"complex64", DType::C64},
    {"complex128", DType::C128},
    {"bfloat16", DType::BF16},
    {"float8e4m3fn", {}},
    {"float8e4m3fnuz", {}},
    {"float8e5m2", {}},
    {"float8e5m2fnuz", {}},
    {"uint4", {}},
    {"int4", {}},
    {"float4e2m1", {}},
    {"float8e8m0", {}},
    {"uint2", {}},
    {"int2", {}},
}};

uint64_t unsigned_entry(const TensorProto& tensor, std::string_view key, uint64_t fallback, const std::string& what) {
    for (const auto& [name, value] : tensor.external_data) {
        if (name != key) continue;
        uint64_t number = 0;
        auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc() || end != value.data() + value.size())
            throw ImportError("external-data",
                              fmt::format("{}: {} {} of its external data is not a number", what, key, quoted(value)));
        return number;
    }
    return fallback;
}

bool is_inside(const fs::path& folder, const fs::path& file) {
    return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

// Bytes of a bool that are neither 0 nor 1 would break code that relies on it.
Tensor with_clean_bools(Tensor tensor) {
    if (tensor.type.dtype() != DType::Bool ||
        std::all_of(tensor.bytes.begin(), tensor.bytes.end(), [](std::byte b) { return b <= std::byte{1}; }))
        return tensor;
    auto clean = std::make_shared<std::string>();
    for (std::byte b : tensor.bytes) *clean += b == std::byte{0} ? '\0' : '\1';
    tensor.bytes = std::as_bytes(std::span(*clean));
    tensor.storage = std::move(clean);
    return tensor;
}

} // namespace

std::optional<DType> dtype_of(int64_t data_type) {
    if (data_type < 0 || data_type >= static_cast<int64_t>(data_types.size())) return std::nullopt;
    return data_types[static_cast<size_t>(data_type)].dtype;
}

std::string data_type_name(int64_t data_type) {
    if (data_type < 0 || data_type >= static_cast<int64_t>(data_types.size()))
        return fmt::format("number {}", data_type);
    return std::string(data_types[static_cast<size_t>(data_type)].name);
}

Tensor TensorReader::read(const TensorProto& tensor, const std::string& what) {
    std::optional<DType> dtype = dtype_of(tensor.data_type);
    if (!dtype)
        throw ImportError("unsupported-type",
                          fmt::format("{} has elements of type {}", what, data_type_name(tensor.data_type)));
    if (tensor.is_segment) throw ImportError("bad-tensor", what + " is only a segment of a tensor");
    uint64_t size = std::max<uint64_t>(size_of(*dtype), 1);
    int64_t count = 1;
    Shape shape;
    for (int64_t dim : tensor.dims) {
        if (dim < 0 || __builtin_mul_overflow(count, dim, &count))
            throw ImportError("bad-tensor",
                              fmt::format("{} has the impossible shape [{}]", what, fmt::join(tensor.dims, ",")));
        shape.emplace_back(dim);
    }
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(count), &size))
        throw ImportError("bad-tensor",
                          fmt::format("{} has the impossible shape [{}]", what, fmt::join(tensor.dims, ",")));
    Type type = Type::tensor(*dtype, std::move(shape));

    if (tensor.is_external) return with_clean_bools(read_external(tensor, std::move(type), size, what));
    if (tensor.raw_data && *dtype != DType::String) {
        if (tensor.raw_data->size() != size)
            throw ImportError("bad-tensor", fmt::format("{} has {} bytes of data, {} takes {}", what,
                                                        tensor.raw_data->size(), type.text(), size));
        auto bytes = std::as_bytes(std::span(tensor.raw_data->data(), tensor.raw_data->size()));
        return with_clean_bools({std::move(type), bytes, storage_});
    }
    std::shared_ptr<std::string> data;
    try {
        data = std::make_shared<std::string>(typed_data(tensor, *dtype));
    } catch (const MalformedModel&) {
        throw ImportError("bad-tensor", "the data of " + what + " are broken");
    }
    uint64_t elements = data->size() / std::max<uint64_t>(size_of(*dtype), 1);
    if (*dtype == DType::String) {
        elements = 0;
        for (size_t at = 0; at < data->size(); elements++) {
            uint64_t length = 0;
            std::copy_n(data->data() + at, sizeof length, reinterpret_cast<char*>(&length));
            at += sizeof length + length;
        }
    }
    if (elements != static_cast<uint64_t>(count))
        throw ImportError("bad-tensor",
                          fmt::format("{} has {} elements of data, {} takes {}", what, elements, type.text(), count));
    auto bytes = std::as_bytes(std::span(*data));
    return with_clean_bools({std::move(type), bytes, std::move(data)});
}

Tensor TensorReader::read_external(const TensorProto& tensor, Type type, uint64_t size, const std::string& what) {
    if (type.dtype() == DType::String) throw ImportError("external-data", what + ": strings cannot be external data");
    std::string_view location;
    for (const auto& [key, value] : tensor.external_data)
        if (key == "location") location = value;
    uint64_t offset = unsigned_entry(tensor, "offset", 0, what);
    uint64_t length = unsigned_entry(tensor, "length", size, what);
    if (length != size)
        throw ImportError("external-data", fmt::format("{} has {} bytes of external data, {} takes {}", what, length,
                                                       type.text(), size));
    const std::shared_ptr<const MappedFile>& file = open(location);
    std::span<const std::byte> bytes = file->bytes();
    if (offset > bytes.size() || length > bytes.size() - offset)
        throw ImportError("external-data", fmt::format("{}: {} has {} bytes, its data would be {} bytes from {} on",
                                                       what, quoted(location), bytes.size(), length, offset));
    return {std::move(type), bytes.subspan(offset, length), file};
}

const std::shared_ptr<const MappedFile>& TensorReader::open(std::string_view location) {
    if (auto known = files_.find(location); known != files_.end()) return known->second;
    auto fail = [&](std::string_view why, std::string help = {}) -> void {
        throw DataFileError("external-data", fmt::format("the file of external data {} {}", quoted(location), why),
                            std::move(help));
    };
    if (!folder_)
        fail("cannot be found: a model given as bytes has no folder",
             "give the model as a file, or the file's path beside the bytes");
    fs::path relative{std::string(location)};
    bool leaves = location.find('\0') != std::string_view::npos || relative.empty() || relative.is_absolute() ||
                  std::find(relative.begin(), relative.end(), "..") != relative.end();
    if (leaves) fail("is not a path inside the model's folder", "external data is read from beside the model only");
    std::error_code error;
    fs::path root = fs::canonical(folder_->empty() ? fs::path(".") : *folder_, error);
    fs::path file = error ? fs::path() : fs::canonical(root / relative, error);
    if (error) fail("cannot be read: " + error.message(), "the file with the weights must lie beside the model");
    if (!is_inside(root, file))
        fail("is a link that leads out of the model's folder", "copy the file itself beside the model");
    try {
        return files_.emplace(location, std::make_shared<const MappedFile>(file)).first->second;
    } catch (const std::system_error& e) {
        fail("cannot be read: " + e.code().message());
        throw;
    }
}

} // namespace cuvil::onnx
