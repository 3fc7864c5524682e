// The table of ONNX operators: name and versions -> function that builds IR.
#pragma once

#include "import/onnx/node.hpp"

#include <climits>
#include <span>
#include <string_view>

namespace cuvil::onnx {

// The operator sets of the default domain that can be imported; of the first five, the operators that 6 has alike.
constexpr int oldest_opset = 1, newest_opset = 28;
constexpr int newest = 0; // `until` of a definition that still holds
constexpr int any = INT_MAX;

struct Row {
    std::string_view name;
    int since, until; // versions of the operator set in which it means this
    Values (*build)(Node&);
    int least_inputs, most_inputs;
    std::string_view attributes;  // all that the definition has, with blanks between
    std::string_view builds;      // what it becomes, for `cuvil ops`
    int lists = 0;                // so many inputs, the first ones, need not be tensors
    std::string_view domain = ""; // of the operator; empty: the default one
};

std::span<const Row> activation_rows();
std::span<const Row> attention_rows();
std::span<const Row> constant_rows();
std::span<const Row> control_rows();
std::span<const Row> convolution_rows();
std::span<const Row> einsum_rows();
std::span<const Row> elementwise_rows();
std::span<const Row> indexing_rows();
std::span<const Row> linear_attention_rows();
std::span<const Row> linear_rows();
std::span<const Row> loop_rows();
std::span<const Row> movement_rows();
std::span<const Row> normalization_rows();
std::span<const Row> order_rows();
std::span<const Row> pad_rows();
std::span<const Row> pooling_rows();
std::span<const Row> rearrange_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> reduction_rows();
std::span<const Row> resize_rows();
std::span<const Row> sampling_rows();
std::span<const Row> sequence_rows();
std::span<const Row> signal_rows();
std::span<const Row> slice_rows();
std::span<const Row> softmax_rows();
std::span<const Row> training_rows();

// nullptr: not in this version. The default domain is "" here.
const Row* find_row(std::string_view name, int64_t opset, std::string_view domain = "");
// All rows of the name, then those whose name differs in case only.
std::vector<const Row*> rows_like(std::string_view name);
bool has_attribute(const Row& row, std::string_view attribute);

} // namespace cuvil::onnx
