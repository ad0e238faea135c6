// Constants known at import time, and exact evaluation of nodes whose inputs are all known: shape arithmetic, position
// indices, masks and rotary tables fold away here before any graph op is made.
#pragma once

#include "lib/Frontend/ONNX/Model.h"

#include <optional>

namespace plimsoll::onnx {

/// A tensor of numbers on the host, row-major. Integers and booleans live in `ints`, floats (rounded to `dtype` after
/// every operation) in `reals`. A splat stores its one element once.
struct HostTensor {
  DType dtype = DType::I64;
  std::vector<int64_t> dims;
  bool splat = false;
  std::vector<int64_t> ints;
  std::vector<double> reals;

  bool holdsReals() const { return isFloat(dtype); }
  uint64_t count() const { return elementCount(dims).value_or(0); }
  int64_t integer(uint64_t i) const {
    return holdsReals() ? static_cast<int64_t>(reals[splat ? 0 : i]) : ints[splat ? 0 : i];
  }
  double real(uint64_t i) const {
    return holdsReals() ? reals[splat ? 0 : i] : static_cast<double>(ints[splat ? 0 : i]);
  }
  /// Appends an element, rounded or wrapped to dtype.
  void push(double value);
  void push(int64_t value);
  /// Appends element `i` of `from`, which has the same dtype.
  void pushFrom(const HostTensor &from, uint64_t i);
};

/// Nodes with more elements than this in any result are left to the graph.
inline constexpr uint64_t hostElementLimit = uint64_t(64) << 20;

HostTensor hostInts(std::vector<int64_t> values, bool scalar = false);
HostTensor hostSplat(DType dtype, std::vector<int64_t> dims, double value);
/// Copies a stored tensor; fails (nullopt) on strings and sizes over the limit.
std::optional<HostTensor> hostFrom(const TensorData &tensor);
/// Little-endian bytes of `tensor` in its dtype.
std::vector<std::byte> hostBytes(const HostTensor &tensor);
/// Value of `value` after rounding (floats) or wrapping (integers) to `dtype`.
double roundReal(DType dtype, double value);
int64_t wrapInteger(DType dtype, int64_t value);
/// Marks a tensor whose elements are all equal as a splat.
void findSplat(HostTensor &tensor);
/// The tensor with every dimension along which all slices are equal shrunk to size 1: the batch-expanded [B,1,S,S] mask
/// of a static export becomes [1,1,S,S].
HostTensor shrinkRepeats(const HostTensor &tensor);

/// Numpy's broadcast of shapes; nullopt when they do not fit.
std::optional<std::vector<int64_t>> broadcastShapes(std::span<const int64_t> a, std::span<const int64_t> b);

/// Evaluates `node` on known inputs (null = absent). Nullopt: the op has no host form, the inputs do not fit it, or the
/// result would be too large; the importer then builds graph ops (or reports the node).
std::optional<std::vector<HostTensor>> foldNode(const Node &node, const std::vector<const HostTensor *> &inputs,
                                                int64_t opset);

/// Parts of foldNode, one per file; each answers nullopt for ops it does not know.
std::optional<std::vector<HostTensor>> foldElementwise(const Node &node, const std::vector<const HostTensor *> &inputs);
std::optional<std::vector<HostTensor>> foldMovement(const Node &node, const std::vector<const HostTensor *> &inputs,
                                                    int64_t opset);
std::optional<std::vector<HostTensor>> foldIndexing(const Node &node, const std::vector<const HostTensor *> &inputs);
std::optional<std::vector<HostTensor>> foldReduction(const Node &node, const std::vector<const HostTensor *> &inputs);

} // namespace plimsoll::onnx
