// Shape rules of convolutions and pools: sliding windows. README.md lists them by label.
#include "runtime/Kernels/CallChecker.h"

namespace plimsoll::runtime {

/// window.1, window.2: spatial rank and the number of integers in strides, pads, dilations, kernel.
static bool checkWindowCounts(CallChecker &check, size_t rank) {
  if (!check.require(rank >= 3 && rank <= 5, "window.1",
                     "found tensors of rank " + std::to_string(rank) +
                         ", expected 3 to 5 (batch, channels and 1 to 3 spatial dimensions)"))
    return false;
  for (const char *key : {"strides", "dilations", "kernel", "pads"}) {
    const artifact::AttributeT *found = findAttribute(check.spec, key);
    const size_t expected = (rank - 2) * (std::string_view(key) == "pads" ? 2 : 1);
    if (found && !check.require(found->ints.size() == expected, "window.2",
                                "found " + std::to_string(found->ints.size()) + " integers in attribute '" + key +
                                    "', expected " + std::to_string(expected)))
      return false;
  }
  return true;
}

/// window.3: the output extent follows from input, window, stride and padding. `ceilAllowed` also accepts windows that
/// reach over the end (ONNX ceil_mode) as long as they start inside the input or its leading padding.
static bool checkWindowExtents(CallChecker &check, const std::vector<int64_t> &input,
                               const std::vector<int64_t> &kernel, const std::vector<int64_t> &output,
                               bool ceilAllowed) {
  const size_t rank = input.size() - 2;
  const std::vector<int64_t> strides = intsAttribute(check.spec, "strides", rank, 1);
  const std::vector<int64_t> dilations = intsAttribute(check.spec, "dilations", rank, 1);
  const std::vector<int64_t> pads = intsAttribute(check.spec, "pads", 2 * rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (kernel[d] - 1) * dilations[d] + 1;
    const int64_t room = input[2 + d] + pads[d] + pads[rank + d] - reach;
    const int64_t exact = room >= 0 ? room / strides[d] + 1 : 0;
    const bool startsInside = (output[2 + d] - 1) * strides[d] < input[2 + d] + pads[d];
    const bool ceil = ceilAllowed && output[2 + d] == exact + 1 && startsInside;
    if (!check.require(output[2 + d] == exact || ceil, "window.3",
                       "found output extent " + std::to_string(output[2 + d]) + " in spatial dimension " +
                           std::to_string(d) + ", expected " + std::to_string(exact) + " from input extent " +
                           std::to_string(input[2 + d])))
      return false;
  }
  return true;
}

bool checkConv(CallChecker &check) {
  const std::string &op = check.spec.op;
  const size_t xAt = op == "conv_input_grad" ? 2 : 0, wAt = op == "conv_weight_grad" ? 2 : 1;
  const size_t yAt = 3 - xAt - wAt;
  const std::vector<int64_t> &x = check.shape(xAt), &w = check.shape(wAt), &y = check.shape(yAt);
  if (!checkWindowCounts(check, x.size()))
    return false;
  const std::string found = "found input " + shapeText(x) + ", weight " + shapeText(w) + " and output " + shapeText(y);
  if (!check.require(w.size() == x.size() && y.size() == x.size(), "conv.1", found + ", expected equal ranks"))
    return false;
  const int64_t groups = intAttribute(check.spec, "groups", 1);
  if (!check.require(x[1] % groups == 0 && w[0] % groups == 0, "conv.2",
                     found + " in " + std::to_string(groups) + " groups, expected channels that divide evenly"))
    return false;
  if (!check.require(x[0] == y[0] && w[0] == y[1] && w[1] * groups == x[1], "conv.3",
                     found + ", expected [N, C, s...], [O, C/groups, k...] and [N, O, t...]"))
    return false;
  return checkWindowExtents(check, x, {w.begin() + 2, w.end()}, y, false);
}

/// pool.1: planes agree; pool.2: indices (if any) have y's shape and can name every element of a plane.
static bool checkPoolPlanes(CallChecker &check, const std::vector<int64_t> &x, const std::vector<int64_t> &y) {
  return check.require(x.size() == y.size() && x.size() >= 3 && x[0] == y[0] && x[1] == y[1], "pool.1",
                       "found input " + shapeText(x) + " and output " + shapeText(y) +
                           ", expected [N, C, s...] and [N, C, t...]");
}

static bool checkPoolIndices(CallChecker &check, size_t indicesAt, const std::vector<int64_t> &x,
                             const std::vector<int64_t> &y) {
  return check.require(check.shape(indicesAt) == y, "pool.2",
                       "found indices of shape " + shapeText(check.shape(indicesAt)) + ", expected " + shapeText(y)) &&
         check.require(elementCount(x) / (x[0] * x[1]) < int64_t{1} << 31, "pool.3",
                       "found input planes of shape " + shapeText(x) + ", expected fewer than 2^31 elements each");
}

bool checkPool(CallChecker &check) {
  const bool grad = check.spec.op == "avg_pool_grad";
  const std::vector<int64_t> &x = check.shape(grad ? 1 : 0), &y = check.shape(grad ? 0 : 1);
  if (!checkWindowCounts(check, x.size()) || !checkPoolPlanes(check, x, y))
    return false;
  if (check.spec.op == "max_pool" && !checkPoolIndices(check, 2, x, y))
    return false;
  return checkWindowExtents(check, x, intsAttribute(check.spec, "kernel", x.size() - 2, 1), y, true);
}

bool checkPoolGrad(CallChecker &check) {
  const std::vector<int64_t> &dy = check.shape(0), &dx = check.shape(2);
  return checkWindowCounts(check, dx.size()) && checkPoolPlanes(check, dx, dy) && checkPoolIndices(check, 1, dx, dy);
}

} // namespace plimsoll::runtime
