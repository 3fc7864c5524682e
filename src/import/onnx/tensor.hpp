// Tensors of a model: their types and where their bytes are.
#pragma once

#include "import/builder.hpp"
#include "import/onnx/proto.hpp"
#include "support/file.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace cuvil::onnx {

// Nothing for the data types that Cuvil does not have.
std::optional<DType> dtype_of(int64_t data_type);
// "float8e4m3fn", ...; for errors.
std::string data_type_name(int64_t data_type);

struct Tensor {
    Type type; // of fixed sizes
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> storage; // keeps `bytes` alive
};

// A file of external data that cannot be used, whatever tensor asks for it.
class DataFileError : public ImportError {
public:
    using ImportError::ImportError;
};

// Reads tensors from the model's own bytes and from the files beside it that hold external data.
class TensorReader {
public:
    // `storage` keeps the model's bytes alive. Without `folder` there is no external data.
    TensorReader(std::shared_ptr<const void> storage, std::optional<std::filesystem::path> folder)
        : storage_(std::move(storage)), folder_(std::move(folder)) {}

    // Throws ImportError, for a file with data DataFileError. `what` is the tensor in the words of the message:
    // `initializer "w"`.
    Tensor read(const TensorProto& tensor, const std::string& what);

private:
    Tensor read_external(const TensorProto& tensor, Type type, uint64_t size, const std::string& what);
    const std::shared_ptr<const MappedFile>& open(std::string_view location);

    std::shared_ptr<const void> storage_;
    std::optional<std::filesystem::path> folder_;
    std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

} // namespace cuvil::onnx
