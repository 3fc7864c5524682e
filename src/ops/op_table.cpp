#include "ops/op_table.hpp"

#include "ops/families.hpp"

namespace cuvil {

std::vector<OpDef> builtin_ops() {
    std::vector<OpDef> all;
    for (std::span<const OpDef> family :
         {source_ops(), arithmetic_ops(), elementary_ops(), activation_ops(), logic_ops(), linear_ops(),
          convolution_ops(), pooling_ops(), recurrent_ops(), resize_ops(), sampling_ops(), reduction_ops(),
          normalization_ops(), movement_ops(), indexing_ops(), order_ops(), control_ops()})
        all.insert(all.end(), family.begin(), family.end());
    return all;
}

const OpTable& builtin_op_table() {
    static const OpTable table = [] {
        OpTable t;
        for (OpDef& def : builtin_ops()) t.add(std::move(def));
        return t;
    }();
    return table;
}

} // namespace cuvil
