// The cases of copy, fill, dot, the indexed moves, cumsum and random_uniform; allCases() joins all families.
#include "test/conformance/Harness.h"

#include <cmath>

namespace plimsoll::runtime::conformance {

std::vector<Case> allCases() {
  std::vector<Case> cases;
  addMovementCases(cases);
  addDotCases(cases);
  addIndexedCases(cases);
  addConvCases(cases);
  addPoolCases(cases);
  addAttentionCases(cases);
  return cases;
}

static void addCopyCases(std::vector<Case> &cases) {
  const auto copy = [&](const char *name, const TensorSpec &src, const TensorSpec &dst) {
    cases.push_back({name, {"copy", {src, dst}, {}}, Bound::Exact, 1, true, {}});
  };
  copy("CopyContiguous", read({3, 5, 7}), written({3, 5, 7}));
  copy("CopyBlockAboveGrain", read({100000}), written({100000}));
  copy("CopyScalar", read({}), written({}));
  copy("CopySingleElement", read({1, 1, 1}), written({1, 1, 1}));
  copy("CopyTranspose", read({67, 45}, DType::F32, {1, 67}), written({67, 45}));
  copy("CopyTransposeF64", read({45, 67}, DType::F64, {1, 45}), written({45, 67}, DType::F64));
  copy("CopyTransposeBytes", read({33, 65}, DType::Bool, {1, 33}), written({33, 65}, DType::Bool));
  copy("CopyTransposeHalf", read({33, 65}, DType::F16, {1, 33}), written({33, 65}, DType::F16));
  copy("CopyHeadsInner", read({2, 3, 5, 8}, DType::F32, {120, 8, 24, 1}), written({2, 3, 5, 8}));
  copy("CopyHeadsTransposed", read({2, 3, 8, 5}, DType::F32, {120, 8, 1, 24}), written({2, 3, 8, 5}));
  copy("CopyReversedDims", read({3, 4, 5}, DType::I64, {1, 3, 12}), written({3, 4, 5}, DType::I64));
  copy("CopyConcatWindow", read({4, 3}), written({4, 3}, DType::F32, {10, 1}));
  copy("CopyPadInterior", read({3, 3}, DType::F32, {5, 1}), written({3, 3}, DType::F32, {14, 2}));
  copy("CopyBroadcastRows", read({6, 9}, DType::F32, {0, 1}), written({6, 9}));
  copy("CopyBroadcastColumns", read({6, 9}, DType::F32, {1, 0}), written({6, 9}));
  copy("CopyBroadcastAll", read({6, 9}, DType::I32, {0, 0}), written({6, 9}, DType::I32));
  copy("CopyIntoTransposedTarget", read({31, 17}), written({31, 17}, DType::F32, {1, 31}));
  copy("CopyStridedBothSides", read({9, 7}, DType::F64, {21, 3}), written({9, 7}, DType::F64, {14, 2}));
  copy("CopyManyRows", read({300, 40}, DType::F32, {50, 1}), written({300, 40}));
}

static void addFillCases(std::vector<Case> &cases) {
  const auto fill = [&](const char *name, const TensorSpec &dst, double value) {
    cases.push_back({name, {"fill", {dst}, {number("value", value)}}, Bound::Exact, 1, true, {}});
  };
  fill("FillContiguous", written({50, 200}), 2.5);
  fill("FillF64", written({3, 5}, DType::F64), 0.1);
  fill("FillStrided", written({4, 6}, DType::F32, {20, 3}), -1.5);
  fill("FillI64", written({7}, DType::I64), -3);
  fill("FillI32", written({7}, DType::I32), 12);
  fill("FillBool", written({9}, DType::Bool), 1);
  fill("FillBf16", written({5}, DType::BF16), 1.5);
  fill("FillF16", written({5}, DType::F16), -0.375);
  fill("FillScalar", written({}), 7);
}

static void addScanCases(std::vector<Case> &cases) {
  const auto cumsum = [&](const char *name, const Dims &shape, DType dtype, int64_t axis, int64_t exclusive,
                          int64_t reverse) {
    const double terms =
        static_cast<double>(shape[static_cast<size_t>(axis < 0 ? axis + int64_t(shape.size()) : axis)]);
    cases.push_back({name,
                     {"cumsum",
                      {read(shape, dtype), written(shape, dtype)},
                      {ints("axis", {axis}), ints("exclusive", {exclusive}), ints("reverse", {reverse})}},
                     Bound::Exact,
                     terms,
                     true,
                     {}});
  };
  cumsum("CumsumInner", {4, 33}, DType::F32, 1, 0, 0);
  cumsum("CumsumOuter", {33, 4}, DType::F64, 0, 0, 0);
  cumsum("CumsumMiddleExclusive", {3, 7, 5}, DType::I64, -2, 1, 0);
  cumsum("CumsumReverse", {3, 7, 5}, DType::I32, 1, 0, 1);
  cumsum("CumsumExclusiveReverse", {2000, 3}, DType::F32, 0, 1, 1);
  for (int64_t count : {1, 7, 10001})
    cases.push_back({"RandomUniform" + std::to_string(count),
                     {"random_uniform", {read({2}, DType::I64), written({count})}, {ints("op_id", {7})}},
                     Bound::Exact,
                     1,
                     true,
                     {{0, [](int64_t at) { return at ? 12.0 : 123456789.0; }}}});
}

void addMovementCases(std::vector<Case> &cases) {
  addCopyCases(cases);
  addFillCases(cases);
  addScanCases(cases);
}

void addDotCases(std::vector<Case> &cases) {
  const auto dot = [&](const char *name, const TensorSpec &a, const TensorSpec &b, TensorSpec c, bool accumulate,
                       bool sameBits) {
    if (accumulate)
      c.access = Access::ReadWrite;
    const double terms = static_cast<double>(a.shape.back());
    cases.push_back(
        {name, {"dot", {a, b, c}, {ints("accumulate", {accumulate ? 1 : 0})}}, Bound::Sum, terms, sameBits, {}});
  };
  const DType f32 = DType::F32, f64 = DType::F64;
  dot("DotNN", read({67, 45}), read({45, 33}), written({67, 33}), false, false);
  dot("DotNT", read({67, 45}), read({45, 33}, f32, {1, 45}), written({67, 33}), false, false);
  dot("DotTN", read({67, 45}, f32, {1, 67}), read({45, 33}), written({67, 33}), false, false);
  dot("DotTT", read({67, 45}, f32, {1, 67}), read({45, 33}, f32, {1, 45}), written({67, 33}), false, false);
  dot("DotAccumulate", read({67, 45}), read({45, 33}), written({67, 33}), true, false);
  dot("DotTNAccumulate", read({130, 300}, f32, {1, 130}), read({300, 70}), written({130, 70}), true, false);
  dot("DotDeep", read({64, 2000}), read({2000, 64}), written({64, 64}), false, false);
  dot("DotSingleElement", read({1, 1}), read({1, 1}), written({1, 1}), false, false);
  dot("DotRowVector", read({1, 45}), read({45, 33}), written({1, 33}), false, false);
  dot("DotColumnVector", read({67, 45}), read({45, 1}), written({67, 1}), false, false);
  dot("DotOuterProduct", read({67, 1}), read({1, 33}), written({67, 33}), true, false);
  dot("DotTransposedVector", read({45, 1}, f32, {1, 45}), read({1, 33}, f32, {1, 1}), written({45, 33}), false, false);
  dot("DotPaddedRows", read({67, 45}, f32, {50, 1}), read({45, 33}, f32, {40, 1}), written({67, 33}, f32, {35, 1}),
      false, true);
  dot("DotPaddedRowsAccumulate", read({67, 300}, f32, {310, 1}), read({300, 33}, f32, {40, 1}),
      written({67, 33}, f32, {35, 1}), true, true);
  dot("DotPaddedTransposed", read({200, 45}, f32, {1, 207}), read({45, 130}, f32, {1, 51}),
      written({200, 130}, f32, {1, 200}), false, true);
  dot("DotStridedElements", read({13, 9}, f32, {27, 3}), read({9, 11}, f32, {22, 2}), written({13, 11}, f32, {44, 4}),
      false, true);
  dot("DotBatch", read({5, 13, 21}), read({5, 21, 9}), written({5, 13, 9}), false, false);
  dot("DotBatchTransposed", read({2, 3, 13, 21}, f32, {819, 273, 1, 13}), read({2, 3, 21, 9}, f32, {567, 189, 1, 21}),
      written({2, 3, 13, 9}), false, false);
  dot("DotBatchHeads", read({2, 3, 16, 8}, f32, {384, 8, 24, 1}), read({2, 3, 8, 16}, f32, {384, 8, 1, 24}),
      written({2, 3, 16, 16}), false, false);
  dot("DotBroadcastB", read({4, 13, 21}), read({4, 21, 9}, f32, {0, 9, 1}), written({4, 13, 9}), false, false);
  dot("DotBroadcastA", read({4, 13, 21}, f32, {0, 21, 1}), read({4, 21, 9}), written({4, 13, 9}), false, false);
  dot("DotBroadcastHeads", read({2, 3, 5, 7}), read({2, 3, 7, 6}, f32, {42, 0, 6, 1}), written({2, 3, 5, 6}), false,
      false);
  dot("DotBroadcastBoth", read({3, 5, 7}, f32, {0, 7, 1}), read({3, 7, 6}, f32, {0, 6, 1}), written({3, 5, 6}), false,
      false);
  dot("DotBatchOfRows", read({6, 1, 21}), read({6, 21, 9}, f32, {0, 9, 1}), written({6, 1, 9}), false, false);
  dot("DotF64", read({130, 270}, f64), read({270, 45}, f64), written({130, 45}, f64), false, true);
  dot("DotF64Transposed", read({33, 45}, f64, {1, 33}), read({45, 17}, f64, {1, 45}), written({33, 17}, f64), true,
      true);
  dot("DotF64Batch", read({3, 5, 7}, f64), read({3, 7, 2}, f64, {0, 2, 1}), written({3, 5, 2}, f64), false, true);
}

/// Values in [-extent, extent), negative ones counting from the end.
static Fill indicesBelow(int64_t extent) {
  return [extent](int64_t at) { return std::floor(randomValue(99, at) * static_cast<double>(extent)); };
}

static void addGatherCases(std::vector<Case> &cases) {
  const auto gather = [&](const char *name, const Dims &data, const Dims &indices, const Dims &out, int64_t axis,
                          DType dtype, DType indexType) {
    const int64_t extent = data[static_cast<size_t>(axis < 0 ? axis + int64_t(data.size()) : axis)];
    cases.push_back(
        {name,
         {"gather", {read(data, dtype), read(indices, indexType), written(out, dtype)}, {ints("axis", {axis})}},
         Bound::Exact,
         1,
         true,
         {{1, indicesBelow(extent)}}});
  };
  gather("GatherRows", {10, 7}, {4, 3}, {4, 3, 7}, 0, DType::F32, DType::I64);
  gather("GatherMiddle", {3, 6, 5}, {4}, {3, 4, 5}, 1, DType::F64, DType::I32);
  gather("GatherInner", {3, 6}, {2, 2}, {3, 2, 2}, -1, DType::I64, DType::I64);
  gather("GatherScalarIndex", {5, 4}, {}, {4}, 0, DType::F32, DType::I64);
  gather("GatherBool", {5}, {9}, {9}, 0, DType::Bool, DType::I32);
  gather("GatherMany", {50, 64}, {999}, {999, 64}, 0, DType::F32, DType::I64);
  const auto elements = [&](const char *name, const Dims &data, const Dims &indices, int64_t axis, DType dtype) {
    const int64_t extent = data[static_cast<size_t>(axis)];
    cases.push_back({name,
                     {"gather_elements",
                      {read(data, dtype), read(indices, DType::I64), written(indices, dtype)},
                      {ints("axis", {axis})}},
                     Bound::Exact,
                     1,
                     true,
                     {{1, indicesBelow(extent)}}});
  };
  elements("GatherElementsLabels", {6, 11}, {6, 1}, 1, DType::F32);
  elements("GatherElementsOuter", {6, 5}, {3, 4}, 0, DType::F64);
  elements("GatherElementsMiddle", {3, 4, 5}, {2, 6, 5}, 1, DType::I32);
  elements("GatherElementsBytes", {3, 700}, {3, 700}, 1, DType::U8);
}

static void addScatterCases(std::vector<Case> &cases) {
  const auto scatter = [&](const char *name, const Dims &out, const Dims &indices, const Dims &updates, int64_t axis,
                           DType dtype) {
    const int64_t extent = out[static_cast<size_t>(axis)];
    cases.push_back({name,
                     {"scatter_add",
                      {read(indices, DType::I64), read(updates, dtype), written(out, dtype)},
                      {ints("axis", {axis})}},
                     Bound::Sum,
                     static_cast<double>(elementCount(indices)),
                     true,
                     {{0, indicesBelow(extent)}}});
  };
  scatter("ScatterAddRows", {10, 7}, {4, 3}, {4, 3, 7}, 0, DType::F32);
  scatter("ScatterAddCollisions", {3, 64}, {500}, {500, 64}, 0, DType::F32);
  scatter("ScatterAddMiddle", {3, 6, 5}, {4}, {3, 4, 5}, 1, DType::F64);
  scatter("ScatterAddInner", {5, 2}, {40}, {5, 40}, 1, DType::F32);
  const auto elements = [&](const char *name, const Dims &out, const Dims &indices, int64_t axis, DType dtype) {
    const int64_t extent = out[static_cast<size_t>(axis)];
    cases.push_back({name,
                     {"scatter_add_elements",
                      {read(indices, DType::I32), read(indices, dtype), written(out, dtype)},
                      {ints("axis", {axis})}},
                     Bound::Sum,
                     static_cast<double>(indices[static_cast<size_t>(axis)]),
                     true,
                     {{0, indicesBelow(extent)}}});
  };
  elements("ScatterAddElementsLabels", {6, 11}, {6, 1}, 1, DType::F32);
  elements("ScatterAddElementsCollisions", {6, 3}, {6, 100}, 1, DType::F32);
  elements("ScatterAddElementsOuter", {4, 5}, {900, 3}, 0, DType::F64);
}

void addIndexedCases(std::vector<Case> &cases) {
  addGatherCases(cases);
  addScatterCases(cases);
}

} // namespace plimsoll::runtime::conformance
