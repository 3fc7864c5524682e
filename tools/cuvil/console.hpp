// What the program prints, and where: results on stdout, all else on stderr.
#pragma once

#include "cuvil/compile.hpp"
#include "cuvil/diagnostic.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cuvil::cli {

enum ExitStatus { Done = 0, RefusedInput = 1, Usage = 2, OurBug = 3, Interrupted = 130 };

// The command line asks for something that makes no sense: exit status 2.
class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// A file or value from the user is bad: exit status 1.
class InputError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class Console {
public:
    enum class Color { Auto, Always, Never };
    void set_color(Color color);
    void set_quiet(bool quiet) { quiet_ = quiet; }
    void set_verbose(bool verbose) { verbose_ = verbose; }
    bool is_quiet() const { return quiet_; }
    bool is_verbose() const { return verbose_; }

    // Text to stdout. A reader that left early ("| head") is no error; a full disk is an InputError.
    void out(std::string_view text);
    // Text to stderr, below the progress line.
    void err(std::string_view text);
    // Without warnings when quiet.
    void show(const Diagnostics& diagnostics);
    // "error: MESSAGE" in the colours of diagnostics.
    void error(std::string_view message);

    // The line "[4/5] codegen 3 of 12 objects, 0.8s": on a terminal, replaced as it changes. With --verbose a line
    // stays for each stage, and where there is no terminal another one says that it begins.
    void progress(const Progress& progress);
    void end_progress();

private:
    std::string painted(std::string_view text) const;
    double seconds_of_stage() const;

    bool color_ = false;
    bool quiet_ = false;
    bool verbose_ = false;
    bool line_is_shown_ = false;
    std::string stage_;
    std::chrono::steady_clock::time_point stage_start_{};
};

// "45.2 MB": powers of 1000, as file managers and du --si say it.
std::string size_text(uint64_t bytes);
// "0.8 s", "12 ms", "3.4 us"
std::string duration_text(double seconds);

} // namespace cuvil::cli
