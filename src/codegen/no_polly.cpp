// Debian's Clang asks for Polly, which does nothing unless a pass of its is asked for. A Clang that is linked
// statically does without.
#include <llvm/Passes/PassPlugin.h>

// NOLINTNEXTLINE(readability-identifier-naming): the name that Clang links against.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "Polly", "none", [](llvm::PassBuilder&) {}};
}
