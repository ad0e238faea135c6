// Shape rules of copy, dot, the indexed moves, cumsum, random_uniform and attention. README.md lists them by label.
#include "runtime/Kernels/CallChecker.h"
#include "runtime/Kernels/Geometry.h"

namespace plimsoll::runtime {

bool checkCopy(CallChecker &check) {
  return check.require(check.shape(0) == check.shape(1), "copy.1",
                       "found src of shape " + shapeText(check.shape(0)) + " and dst of shape " +
                           shapeText(check.shape(1)) + ", expected equal shapes");
}

bool checkDot(CallChecker &check) {
  const std::vector<int64_t> &a = check.shape(0), &b = check.shape(1), &c = check.shape(2);
  const std::string found =
      "found a of shape " + shapeText(a) + ", b of shape " + shapeText(b) + " and c of shape " + shapeText(c);
  if (!check.require(a.size() >= 2 && b.size() == a.size() && c.size() == a.size(), "dot.1",
                     found + ", expected the same rank of at least 2"))
    return false;
  const size_t n = a.size();
  for (size_t d = 0; d + 2 < n; ++d)
    if (!check.require(a[d] == b[d] && a[d] == c[d], "dot.2",
                       found + ", expected equal batch dimensions (broadcast by stride 0)"))
      return false;
  return check.require(a[n - 1] == b[n - 2] && a[n - 2] == c[n - 2] && b[n - 1] == c[n - 1], "dot.3",
                       found + ", expected [..., M, K], [..., K, N] and [..., M, N]");
}

/// axis.1: the axis names a dimension of operand `index`.
static bool checkAxis(CallChecker &check, size_t index) {
  const auto rank = static_cast<int64_t>(check.rank(index));
  const int64_t axis = intAttribute(check.spec, "axis", 0);
  return check.require(axis >= -rank && axis < rank, "axis.1",
                       "found axis " + std::to_string(axis) + " for a tensor of shape " +
                           shapeText(check.shape(index)) + ", expected one in [-" + std::to_string(rank) + ", " +
                           std::to_string(rank) + ")");
}

/// The shape of gather's result: data with its axis replaced by the shape of the indices.
static std::vector<int64_t> gatheredShape(const std::vector<int64_t> &data, const std::vector<int64_t> &indices,
                                          int64_t axis) {
  std::vector<int64_t> shape(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  return shape;
}

bool checkGather(CallChecker &check) {
  if (!checkAxis(check, 0))
    return false;
  const std::vector<int64_t> expected =
      gatheredShape(check.shape(0), check.shape(1), axisAttribute(check.spec, check.rank(0)));
  return check.require(check.shape(2) == expected, "gather.1",
                       "found out of shape " + shapeText(check.shape(2)) + ", expected " + shapeText(expected));
}

bool checkScatterAdd(CallChecker &check) {
  if (!checkAxis(check, 2))
    return false;
  const std::vector<int64_t> expected =
      gatheredShape(check.shape(2), check.shape(0), axisAttribute(check.spec, check.rank(2)));
  return check.require(check.shape(1) == expected, "scatter_add.1",
                       "found updates of shape " + shapeText(check.shape(1)) + ", expected " + shapeText(expected));
}

/// The indices and the tensor of their shape must fit in the indexed one in every dimension but the axis.
static bool checkElements(CallChecker &check, size_t indexed, size_t indices, size_t same, const char *rule) {
  if (!checkAxis(check, indexed))
    return false;
  const auto axis = static_cast<size_t>(axisAttribute(check.spec, check.rank(indexed)));
  bool fits = check.rank(indices) == check.rank(indexed) && check.shape(indices) == check.shape(same);
  for (size_t d = 0; fits && d < check.rank(indexed); ++d)
    fits = d == axis || check.shape(indices)[d] <= check.shape(indexed)[d];
  return check.require(fits, rule,
                       "found indices of shape " + shapeText(check.shape(indices)) + " with tensors of shape " +
                           shapeText(check.shape(same)) + " and " + shapeText(check.shape(indexed)) +
                           ", expected the indices' shape twice, not larger than the third outside the axis");
}

bool checkGatherElements(CallChecker &check) { return checkElements(check, 0, 1, 2, "gather_elements.1"); }

bool checkScatterAddElements(CallChecker &check) { return checkElements(check, 2, 0, 1, "scatter_add_elements.1"); }

bool checkCumsum(CallChecker &check) {
  return checkAxis(check, 0) && check.require(check.shape(0) == check.shape(1), "cumsum.1",
                                              "found x of shape " + shapeText(check.shape(0)) + " and y of shape " +
                                                  shapeText(check.shape(1)) + ", expected equal shapes");
}

bool checkRandomUniform(CallChecker &check) {
  return check.require(check.shape(0) == std::vector<int64_t>{2}, "random_uniform.1",
                       "found seed of shape " + shapeText(check.shape(0)) + ", expected [2] (seed, step)") &&
         check.require(elementCount(check.shape(1)) <= int64_t{1} << 34, "random_uniform.2",
                       "found " + std::to_string(elementCount(check.shape(1))) +
                           " elements, expected at most 2^34, the counter's reach");
}

static bool checkShapeIs(CallChecker &check, size_t index, const char *name, const std::vector<int64_t> &expected,
                         const char *rule) {
  return check.require(check.shape(index) == expected, rule,
                       "found " + std::string(name) + " of shape " + shapeText(check.shape(index)) + ", expected " +
                           shapeText(expected));
}

/// Rules of q, k, v at operands `first`, `first + 1`, `first + 2` and of the mask after them.
static bool checkAttentionInputs(CallChecker &check, size_t first) {
  const std::vector<int64_t> &q = check.shape(first), &k = check.shape(first + 1), &v = check.shape(first + 2);
  const std::string found =
      "found q of shape " + shapeText(q) + ", k of shape " + shapeText(k) + " and v of shape " + shapeText(v);
  if (!check.require(q.size() == 4 && k.size() == 4 && v.size() == 4, "attention.1",
                     found + ", expected [B, H, S, D], [B, Hk, T, D] and [B, Hk, T, Dv]"))
    return false;
  if (!check.require(q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3], "attention.1",
                     found + ", expected [B, H, S, D], [B, Hk, T, D] and [B, Hk, T, Dv]"))
    return false;
  if (!check.require(q[1] % k[1] == 0, "attention.2",
                     found + ", expected the heads of q to be a multiple of the heads of k"))
    return false;
  if (!intAttribute(check.spec, "has_mask", 0))
    return true;
  return checkShapeIs(check, first + 3, "mask", {q[0], q[1], q[2], k[2]}, "attention.3");
}

bool checkAttention(CallChecker &check) {
  if (!checkAttentionInputs(check, 0))
    return false;
  const std::vector<int64_t> &q = check.shape(0), &v = check.shape(2);
  const size_t out = check.spec.operands.size() - 2;
  return checkShapeIs(check, out, "out", {q[0], q[1], q[2], v[3]}, "attention.4") &&
         checkShapeIs(check, out + 1, "lse", {q[0], q[1], q[2]}, "attention.5");
}

bool checkAttentionGrad(CallChecker &check) {
  if (!checkAttentionInputs(check, 1))
    return false;
  const std::vector<int64_t> &q = check.shape(1), &v = check.shape(3);
  const std::vector<int64_t> outShape = {q[0], q[1], q[2], v[3]};
  const size_t out = check.spec.operands.size() - 5;
  return checkShapeIs(check, 0, "dout", outShape, "attention.4") &&
         checkShapeIs(check, out, "out", outShape, "attention.4") &&
         checkShapeIs(check, out + 1, "lse", {q[0], q[1], q[2]}, "attention.5") &&
         checkShapeIs(check, out + 2, "dq", q, "attention.6") &&
         checkShapeIs(check, out + 3, "dk", check.shape(2), "attention.6") &&
         checkShapeIs(check, out + 4, "dv", v, "attention.6");
}

} // namespace plimsoll::runtime
