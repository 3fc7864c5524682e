// Changes protobuf messages field by field. Changing bytes breaks the lengths around them, so that most of what comes
// out is refused at once; these changes keep all lengths right. They need no schema: bytes that read as a message are
// one.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil::fuzz {

struct Field {
    uint32_t number = 0; // the field's, not its value
    uint32_t type = 0;   // protobuf's wire type
    uint64_t value = 0;  // types 0, 1 and 5
    std::string bytes;   // type 2, unless it is a message
    bool is_message = false;
    std::vector<Field> fields;
};

// The fields of a message; false where the bytes are none, or are nested very deep.
bool read_fields(std::string_view bytes, std::vector<Field>& fields, int depth = 0);
std::string bytes_of(const std::vector<Field>& fields);

// Changes one field, somewhere in the message, in one of many ways. `words` are names of which one may stand for
// another; `mutate` changes bytes.
void change(std::vector<Field>& message, std::mt19937& random, const std::vector<std::string>& words,
            std::string (*mutate)(std::string bytes));

} // namespace cuvil::fuzz
