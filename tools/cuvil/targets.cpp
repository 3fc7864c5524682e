// cuvil targets: what can be compiled for, and what runs here.
#include "command.hpp"
#include "cuvil/compile.hpp"
#include "runtime/cpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cuvil::cli {

Action add_targets(CLI::App& verb) {
    verb.footer("\nExample:\n  cuvil targets");
    return [](Console& console) {
        std::string text;
        for (const Target& target : targets())
            text += fmt::format("{:<12} {} (levels: {})\n", target.name, target.description,
                                fmt::join(target.levels, ", "));
        text += fmt::format("\nThis CPU runs: {}\n", rt::level_list(rt::cpu_levels()));
        console.out(text);
        return Done;
    };
}

} // namespace cuvil::cli
