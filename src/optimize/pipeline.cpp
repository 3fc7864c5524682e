#include "optimize/passes.hpp"

namespace cuvil {
namespace {

constexpr PassDef passes[] = {
    // Before all that asks for sizes.
    {"InferencePass", infer_types},
    // Before fusion: its patterns are written for canonical forms.
    {"CanonicalizePass", canonicalize},
    // While composite ops are whole: a batch_norm is folded into a convolution as one node.
    {"FuseOperatorsPass", fuse_operators},
    {"DecomposePass", decompose},
    // Fusion and decomposition leave constants to fold and weights that nobody uses.
    {"CleanupPass", canonicalize},
};

} // namespace

std::span<const PassDef> all_passes() { return passes; }

} // namespace cuvil
