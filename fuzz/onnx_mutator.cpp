// Changes models as messages, and puts operators for one another.
#include "target.hpp"
#include "wire.hpp"

#include "import/onnx/onnx.hpp"

#include <cstring>
#include <set>

using namespace cuvil;

namespace {

const std::vector<std::string>& operators() {
    static const std::vector<std::string> names = [] {
        std::set<std::string> all;
        for (const ImportedOp& op : onnx_rows()) all.insert(op.name);
        return std::vector<std::string>(all.begin(), all.end());
    }();
    return names;
}

std::string mutated(std::string bytes) {
    const size_t size = bytes.size();
    bytes.resize(size + 16);
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
    return bytes;
}

} // namespace

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t room, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<fuzz::Field> message;
    const bool is_message = fuzz::read_fields({reinterpret_cast<const char*>(data), size}, message);
    if (!is_message || message.empty() || random() % 16 == 0) return LLVMFuzzerMutate(data, size, room);
    for (unsigned changes = 1 + random() % 3; changes > 0; changes--)
        fuzz::change(message, random, operators(), mutated);
    const std::string bytes = fuzz::bytes_of(message);
    if (bytes.empty() || bytes.size() > room) return LLVMFuzzerMutate(data, size, room);
    memcpy(data, bytes.data(), bytes.size());
    return bytes.size();
}
