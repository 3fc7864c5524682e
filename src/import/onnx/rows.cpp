#include "import/onnx/rows.hpp"

#include "import/onnx/onnx.hpp"
#include "support/words.hpp"

#include <algorithm>
#include <tuple>

namespace cuvil {
namespace onnx {
namespace {

const std::vector<Row>& all_rows() {
    static const std::vector<Row> rows = [] {
        std::vector<Row> all;
        for (std::span<const Row> family :
             {activation_rows(),  attention_rows(), linear_attention_rows(), constant_rows(),  control_rows(),
              convolution_rows(), einsum_rows(),    elementwise_rows(),      indexing_rows(),  linear_rows(),
              loop_rows(),        movement_rows(),  normalization_rows(),    order_rows(),     pad_rows(),
              pooling_rows(),     training_rows(),  rearrange_rows(),        recurrent_rows(), reduction_rows(),
              resize_rows(),      sampling_rows(),  sequence_rows(),         signal_rows(),    slice_rows(),
              softmax_rows()})
            all.insert(all.end(), family.begin(), family.end());
        std::sort(all.begin(), all.end(),
                  [](const Row& a, const Row& b) { return std::tie(a.name, a.since) < std::tie(b.name, b.since); });
        return all;
    }();
    return rows;
}

} // namespace

const Row* find_row(std::string_view name, int64_t opset, std::string_view domain) {
    const std::vector<Row>& rows = all_rows();
    auto at =
        std::lower_bound(rows.begin(), rows.end(), name, [](const Row& r, std::string_view n) { return r.name < n; });
    for (; at != rows.end() && at->name == name; ++at)
        if (at->domain == domain && at->since <= opset && (at->until == newest || opset <= at->until)) return &*at;
    return nullptr;
}

std::vector<const Row*> rows_like(std::string_view name) {
    std::vector<const Row*> like;
    for (const Row& row : all_rows())
        if (row.name == name) like.push_back(&row);
    for (const Row& row : all_rows())
        if (row.name != name && equal_but_for_case(row.name, name)) like.push_back(&row);
    return like;
}

bool has_attribute(const Row& row, std::string_view attribute) {
    for (std::string_view rest = row.attributes; !rest.empty();) {
        size_t end = std::min(rest.find(' '), rest.size());
        if (rest.substr(0, end) == attribute) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

} // namespace onnx

std::vector<ImportedOp> onnx_rows() {
    std::vector<ImportedOp> ops;
    for (const onnx::Row& row : onnx::all_rows())
        ops.push_back({std::string(row.name), row.since, row.until, std::string(row.builds), std::string(row.domain)});
    return ops;
}

} // namespace cuvil
