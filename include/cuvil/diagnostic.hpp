// What Cuvil says to its users: diagnostics in the words of their model, collected and reported all at once.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cuvil {

// A place in the user's model: the file and, inside it, the node, module path or line.
struct Location {
    std::string file; // "model.onnx", "model.py"
    std::string name; // "encoder/layer.3/MatMul_7", "31"; joined by " + " after fusion

    bool empty() const { return file.empty() && name.empty(); }
    bool operator==(const Location&) const = default;
};

enum class Severity { Error, Warning };

struct Diagnostic {
    Severity severity = Severity::Error;
    std::string code; // "shape-mismatch"; listed in docs/errors.md
    std::string message;
    Location where;
    std::string excerpt; // a line of IR or of source
    std::vector<std::string> notes;
    std::string help;
    int count = 1; // how many equal ones this stands for

    Diagnostic& note(std::string text);
    Diagnostic& suggest(std::string text);
    Diagnostic& show(std::string line);
};

// Collects diagnostics; equal ones (code, message, file) are counted, not repeated.
class Diagnostics {
public:
    Diagnostic& error(std::string code, std::string message, Location where = {});
    Diagnostic& warning(std::string code, std::string message, Location where = {});

    bool has_errors() const { return error_count_ != 0; }
    const std::vector<Diagnostic>& all() const { return all_; }

    // Throws Refused with all that was collected so far.
    void stop_if_errors() const;
    std::string render() const;

private:
    Diagnostic& add(Diagnostic diagnostic);
    std::vector<Diagnostic> all_;
    int error_count_ = 0;
};

std::string render(const Diagnostic& diagnostic);

// The input cannot be compiled or is bad: exit status 1, `cuvil.Unsupported` in Python.
class Refused : public std::exception {
public:
    explicit Refused(Diagnostics diagnostics);
    const char* what() const noexcept override { return text_.c_str(); }
    const Diagnostics& diagnostics() const { return diagnostics_; }

private:
    Diagnostics diagnostics_;
    std::string text_;
};

// The user asked to stop (Ctrl-C).
class Cancelled : public std::exception {
public:
    const char* what() const noexcept override { return "cancelled"; }
};

// A bug of ours: exit status 3, `cuvil.InternalError` in Python.
class InternalError : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

} // namespace cuvil
