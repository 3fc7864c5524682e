#include "codegen/objcopy.hpp"

#include "codegen/clang.hpp"
#include "cuvil/diagnostic.hpp"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ObjCopy/ConfigManager.h>
#include <llvm/ObjCopy/ObjCopy.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBufferRef.h>
#include <llvm/Support/raw_ostream.h>

#include <utility>

namespace cuvil {

static void stop_if_error(llvm::Error error) {
    if (error) throw InternalError("the object's names cannot be changed: " + llvm::toString(std::move(error)));
}

std::string with_names(std::string_view object, const VisibleNames& names) {
    throw_fatal_errors();
    llvm::objcopy::ConfigManager manager;
    llvm::objcopy::CommonConfig& config = manager.Common;
    config.InputFilename = config.OutputFilename = "object";
    const auto keep = [&](const std::string& pattern) {
        stop_if_error(config.SymbolsToKeepGlobal.addMatcher(llvm::objcopy::NameOrPattern::create(
            pattern, llvm::objcopy::MatchStyle::Wildcard, [](llvm::Error error) { return error; })));
    };
    for (const std::string& pattern : names.kept) keep(pattern);
    for (const auto& [from, to] : names.renamed) { // after it was decided what stays visible
        keep(from);
        config.SymbolsToRename.try_emplace(from, to);
    }

    auto binary = llvm::object::ObjectFile::createObjectFile(
        llvm::MemoryBufferRef({object.data(), object.size()}, config.InputFilename));
    if (!binary) stop_if_error(binary.takeError());
    llvm::SmallVector<char, 0> out;
    llvm::raw_svector_ostream stream(out);
    stop_if_error(llvm::objcopy::executeObjcopyOnBinary(manager, **binary, stream));
    return std::string(out.begin(), out.end());
}

} // namespace cuvil
