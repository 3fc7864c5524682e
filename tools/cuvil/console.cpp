#include "console.hpp"

#include "support/words.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuvil::cli {
namespace {

bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

// The part of a diagnostic's line that is coloured, by how the line begins.
struct Paint {
    std::string_view prefix, escape;
};
constexpr Paint paints[] = {
    {"error", "\033[1;31m"}, {"warning", "\033[1;33m"}, {"note:", "\033[1;36m"},
    {"help:", "\033[1;32m"}, {"  -->", "\033[1;34m"},   {"   |", "\033[1;34m"},
};

} // namespace

void Console::set_color(Color color) {
    const char* no_color = std::getenv("NO_COLOR");
    const bool wanted = stderr_is_terminal() && !(no_color && *no_color);
    color_ = color == Color::Always || (color == Color::Auto && wanted);
}

void Console::out(std::string_view text) {
    if (fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0) return;
    if (errno == EPIPE) return;
    throw InputError(std::string("cannot write to the standard output: ") + strerror(errno));
}

void Console::err(std::string_view text) {
    end_progress();
    fwrite(text.data(), 1, text.size(), stderr);
}

std::string Console::painted(std::string_view text) const {
    if (!color_) return std::string(text);
    std::string out;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text = end == std::string_view::npos ? "" : text.substr(end + 1);
        for (const Paint& paint : paints) {
            if (!line.starts_with(paint.prefix)) continue;
            // "error[code]:" is painted up to its colon.
            size_t painted = paint.prefix.size();
            if (const size_t colon = line.find(": "); line[0] == 'e' || line[0] == 'w')
                painted = colon == std::string_view::npos ? painted : colon + 1;
            out += fmt::format("{}{}\033[0m", paint.escape, line.substr(0, painted));
            line.remove_prefix(painted);
            break;
        }
        out += line;
        out += '\n';
    }
    return out;
}

void Console::show(const Diagnostics& diagnostics) {
    for (const Diagnostic& d : diagnostics.all())
        if (d.severity == Severity::Error || !quiet_) err(painted(render(d)));
}

void Console::error(std::string_view message) { err(painted(fmt::format("error: {}\n", message))); }

double Console::seconds_of_stage() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - stage_start_).count();
}

void Console::progress(const Progress& progress) {
    const std::string stage = fmt::format("[{}/{}] {}", progress.step, progress.steps, progress.stage);
    if (stage != stage_) {
        end_progress();
        stage_ = stage;
        stage_start_ = std::chrono::steady_clock::now();
        if (verbose_ && !stderr_is_terminal()) fmt::print(stderr, "{} ...\n", stage_);
    }
    if (quiet_ || !stderr_is_terminal()) return;
    const std::string done = progress.total > 0 ? fmt::format(" {} of {} objects,", progress.done, progress.total) : "";
    fmt::print(stderr, "\r\033[K{}{} {:.1f}s", stage_, done, seconds_of_stage());
    fflush(stderr);
    line_is_shown_ = true;
}

void Console::end_progress() {
    if (line_is_shown_) fmt::print(stderr, "\r\033[K");
    line_is_shown_ = false;
    if (verbose_ && !stage_.empty()) fmt::print(stderr, "{} {:.1f}s\n", stage_, seconds_of_stage());
    stage_.clear();
}

std::string size_text(uint64_t bytes) {
    if (bytes < 1000) return counted(bytes, "byte");
    double size = static_cast<double>(bytes);
    const char* unit = "bytes";
    for (const char* next : {"kB", "MB", "GB", "TB"}) {
        if (size < 999.95) break;
        size /= 1000;
        unit = next;
    }
    return fmt::format("{:.1f} {}", size, unit);
}

std::string duration_text(double seconds) {
    if (seconds >= 1) return fmt::format("{:.1f} s", seconds);
    if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
    return fmt::format("{:.3g} us", seconds * 1e6);
}

} // namespace cuvil::cli
