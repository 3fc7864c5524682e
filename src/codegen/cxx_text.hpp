// C++ text: lines, sizes as expressions, and elementwise nodes as statements.
#pragma once

#include "plan/plan.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

// Lines with indentation.
class CxxText {
public:
    template <class... Args> void line(fmt::format_string<Args...> format, Args&&... args) {
        text_ +=
            std::string(static_cast<size_t>(depth_) * 4, ' ') + fmt::format(format, std::forward<Args>(args)...) + '\n';
    }
    void blank() { text_ += '\n'; }
    template <class... Args> void open(fmt::format_string<Args...> format, Args&&... args) {
        line(format, std::forward<Args>(args)...);
        depth_++;
    }
    void close(std::string_view end = "}") {
        depth_--;
        line("{}", end);
    }
    // Lines that were written elsewhere, at the current depth.
    void paste(const std::string& lines);
    const std::string& text() const { return text_; }

private:
    std::string text_;
    int depth_ = 0;
};

// A dim as an i64 expression over `d[...]`, the table of dims.
std::string size_text(const Plan& plan, const Dim& dim);
// The same to be multiplied with something: a sum stands in parentheses.
std::string factor_text(const Plan& plan, const Dim& dim);
// "{1, d[0], 3}"
std::string sizes_text(const Plan& plan, const Shape& shape);
// The same in checked arithmetic, as calls of a CheckedSizes named `sizes`.
std::string checked_size_text(const Plan& plan, const Dim& dim);
// A value that is computed like a size and is none: beyond 64 bits it wraps.
std::string wrapping_size_text(const Plan& plan, const Dim& dim);
// The bytes of a block from the host, which only data shows, so that nothing has checked them: -1 beyond 64 bits.
std::string block_bytes_text(const Plan& plan, const Dim& bytes);

// A double as a C++ expression; of NaNs, the usual one.
std::string number_text(double value);
// The one element of a literal as a C++ constant that keeps its bits: "f32(0x1.8p+1f)".
std::string literal_text(const Program& program, const Value& value);

// The C ABI's cuvil_dtype of a tensor's elements: "{2, 32, 1}".
std::string cxx_dtype(DType dtype);

// Text that may stand in a comment, a string or a symbol of generated code: printable ASCII without quotes, backslashes
// and @.
std::string harmless(std::string_view text);

} // namespace cuvil
