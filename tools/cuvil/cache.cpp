// cuvil cache: the code that is kept for the next compilation.
#include "codegen/object_cache.hpp"
#include "command.hpp"
#include "cuvil/compile.hpp"

#include <fmt/format.h>

namespace cuvil::cli {

Action add_cache(CLI::App& verb) {
    auto clear = std::make_shared<bool>(false);
    verb.add_flag("--clear", *clear, "Remove it all");
    verb.footer(R"(
Examples:
  cuvil cache
  cuvil cache --clear

Code that was compiled before is not compiled again: every verb that compiles, and Python's cuvil.compile, keep it in
$CUVIL_CACHE_DIR, else in $XDG_CACHE_HOME/cuvil, else in ~/.cache/cuvil. What has not been used for the longest time goes first. An empty
CUVIL_CACHE_DIR, or --no-cache, keeps nothing. A module is the same to the byte with and without.)");
    return [clear](Console& console) {
        const std::filesystem::path folder = default_cache_folder();
        if (folder.empty()) {
            console.out("There is no cache: CUVIL_CACHE_DIR is empty, or there is no home folder.\n");
            return Done;
        }
        const ObjectCache cache(folder);
        const ObjectCache::Contents contents = *clear ? cache.clear() : cache.contents();
        const std::string text = fmt::format("{}: {} object{}, {}", folder.string(), contents.objects,
                                             contents.objects == 1 ? "" : "s", size_text(contents.bytes));
        console.out(*clear ? text + " removed\n"
                           : fmt::format("{} of at most {}\n", text, size_text(ObjectCache::usual_limit)));
        return Done;
    };
}

} // namespace cuvil::cli
