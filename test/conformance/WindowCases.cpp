// The cases of convolutions and pools.
#include "test/conformance/Harness.h"

#include <cmath>
#include <limits>

namespace plimsoll::runtime::conformance {

namespace {
/// One convolution; the three operations are derived from it.
struct Conv {
  const char *name;
  Dims x, w, y;
  Dims strides, pads, dilations;
  int64_t groups = 1;
  DType dtype = DType::F32;
};
} // namespace

static void addConv(std::vector<Case> &cases, const Conv &c) {
  const size_t rank = c.x.size() - 2;
  const std::vector<artifact::AttributeT> attributes = {
      ints("strides", c.strides.empty() ? Dims(rank, 1) : c.strides),
      ints("pads", c.pads.empty() ? Dims(2 * rank, 0) : c.pads),
      ints("dilations", c.dilations.empty() ? Dims(rank, 1) : c.dilations), ints("groups", {c.groups})};
  const bool own = c.dtype == DType::F64;
  const auto add = [&](const char *op, const Dims &first, const Dims &second, const Dims &result, int64_t terms) {
    const std::string suffix = op == std::string("conv")              ? ""
                               : op == std::string("conv_input_grad") ? "InputGrad"
                                                                      : "WeightGrad";
    cases.push_back({c.name + suffix,
                     {op, {read(first, c.dtype), read(second, c.dtype), written(result, c.dtype)}, attributes},
                     Bound::Sum,
                     static_cast<double>(terms),
                     own,
                     {}});
  };
  const int64_t taps = elementCount(c.w) / c.w[0] / c.w[1];
  add("conv", c.x, c.w, c.y, c.w[1] * taps);
  add("conv_input_grad", c.y, c.w, c.x, c.w[0] / c.groups * taps);
  add("conv_weight_grad", c.x, c.y, c.w, elementCount(c.y) / c.y[1]);
}

void addConvCases(std::vector<Case> &cases) {
  addConv(cases, {"Conv3x3", {2, 3, 9, 7}, {5, 3, 3, 3}, {2, 5, 9, 7}, {}, {1, 1, 1, 1}, {}});
  addConv(cases, {"Conv1x1", {2, 17, 5, 5}, {19, 17, 1, 1}, {2, 19, 5, 5}, {}, {}, {}});
  addConv(cases, {"ConvBlocks", {2, 32, 14, 14}, {48, 32, 3, 3}, {2, 48, 14, 14}, {}, {1, 1, 1, 1}, {}});
  addConv(cases, {"ConvStride2", {1, 16, 11, 10}, {8, 16, 3, 3}, {1, 8, 6, 5}, {2, 2}, {1, 1, 1, 1}, {}});
  addConv(cases, {"ConvPatches", {2, 3, 16, 16}, {24, 3, 8, 8}, {2, 24, 2, 2}, {8, 8}, {}, {}});
  addConv(cases, {"ConvDilated", {1, 4, 12, 12}, {6, 4, 3, 3}, {1, 6, 8, 8}, {}, {}, {2, 2}});
  addConv(cases, {"ConvAsymmetricPads", {1, 3, 6, 7}, {4, 3, 3, 2}, {1, 4, 7, 9}, {}, {1, 0, 2, 3}, {}});
  addConv(cases, {"ConvGroups", {2, 12, 7, 7}, {8, 3, 3, 3}, {2, 8, 7, 7}, {}, {1, 1, 1, 1}, {}, 4});
  addConv(cases, {"ConvGroupsOfBlocks", {1, 32, 6, 6}, {32, 16, 3, 3}, {1, 32, 4, 4}, {}, {}, {}, 2});
  addConv(cases, {"ConvDepthwise", {2, 16, 9, 9}, {16, 1, 3, 3}, {2, 16, 5, 5}, {2, 2}, {1, 1, 1, 1}, {}, 16});
  addConv(cases, {"ConvDepthwiseOdd", {1, 5, 6, 6}, {10, 1, 3, 3}, {1, 10, 4, 4}, {}, {}, {}, 5});
  addConv(cases, {"Conv1d", {2, 6, 20}, {8, 6, 5}, {2, 8, 20}, {}, {2, 2}, {}});
  addConv(cases, {"Conv1dCausal", {2, 4, 16}, {4, 4, 3}, {2, 4, 16}, {}, {4, 0}, {2}});
  addConv(cases, {"Conv3d", {1, 3, 5, 6, 7}, {4, 3, 3, 3, 3}, {1, 4, 5, 3, 7}, {1, 2, 1}, {1, 1, 1, 1, 1, 1}, {}});
  addConv(cases, {"ConvSingle", {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {}, {}, {}});
  addConv(cases, {"ConvFloorLeavesRest", {1, 2, 8, 8}, {3, 2, 3, 3}, {1, 3, 3, 3}, {2, 2}, {0, 0, 0, 0}, {}});
  addConv(cases, {"ConvF64", {2, 4, 6, 5}, {6, 2, 3, 3}, {2, 6, 3, 3}, {2, 2}, {1, 1, 1, 1}, {}, 2, DType::F64});
}

namespace {
/// One pool; forward and backward are derived from it.
struct Pool {
  const char *name;
  Dims x, y, kernel, strides, pads, dilations;
  DType dtype = DType::F32;
  int64_t taps() const { return elementCount(kernel); }
};
} // namespace

static std::vector<artifact::AttributeT> poolAttributes(const Pool &p) {
  const size_t rank = p.x.size() - 2;
  return {ints("kernel", p.kernel), ints("strides", p.strides.empty() ? Dims(rank, 1) : p.strides),
          ints("pads", p.pads.empty() ? Dims(2 * rank, 0) : p.pads),
          ints("dilations", p.dilations.empty() ? Dims(rank, 1) : p.dilations)};
}

/// Few distinct values, so that windows hold ties, and a NaN now and then.
static double tiesAndNaN(int64_t at) {
  const double value = std::floor(randomValue(5, at) * 3);
  return at % 29 == 7 ? std::numeric_limits<double>::quiet_NaN() : value;
}

static void addPool(std::vector<Case> &cases, const Pool &p) {
  const std::vector<artifact::AttributeT> attributes = poolAttributes(p);
  const std::string name = p.name;
  const CallSpec max{"max_pool", {read(p.x, p.dtype), written(p.y, p.dtype), written(p.y, DType::I32)}, attributes};
  cases.push_back({"MaxPool" + name, max, Bound::Exact, 1, true, {}});
  cases.push_back({"MaxPoolTies" + name, max, Bound::Exact, 1, true, {{0, tiesAndNaN}}});
  const int64_t plane = elementCount(p.x) / p.x[0] / p.x[1];
  const Fill winners = [plane](int64_t at) { return std::floor((randomValue(3, at) + 1) / 2 * double(plane + 1)) - 1; };
  cases.push_back({"MaxPoolGrad" + name,
                   {"max_pool_grad", {read(p.y, p.dtype), read(p.y, DType::I32), written(p.x, p.dtype)}, attributes},
                   Bound::Sum,
                   static_cast<double>(elementCount(p.y)),
                   true,
                   {{1, winners}}});
  for (int64_t countPad : {0, 1}) {
    std::vector<artifact::AttributeT> average = attributes;
    average.push_back(ints("count_include_pad", {countPad}));
    const std::string suffix = name + (countPad ? "CountPad" : "");
    cases.push_back({"AvgPool" + suffix,
                     {"avg_pool", {read(p.x, p.dtype), written(p.y, p.dtype)}, average},
                     Bound::Sum,
                     static_cast<double>(p.taps() + 1),
                     true,
                     {}});
    cases.push_back({"AvgPoolGrad" + suffix,
                     {"avg_pool_grad", {read(p.y, p.dtype), written(p.x, p.dtype)}, average},
                     Bound::Sum,
                     static_cast<double>(p.taps() + 1),
                     true,
                     {}});
  }
}

void addPoolCases(std::vector<Case> &cases) {
  addPool(cases, {"2x2", {2, 3, 8, 8}, {2, 3, 4, 4}, {2, 2}, {2, 2}, {}, {}});
  addPool(cases, {"3x3Overlap", {2, 3, 9, 7}, {2, 3, 5, 4}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}});
  addPool(cases, {"AsymmetricPads", {1, 2, 6, 5}, {1, 2, 7, 6}, {3, 2}, {1, 1}, {1, 0, 2, 2}, {}});
  addPool(cases, {"Dilated", {1, 2, 9, 9}, {1, 2, 5, 5}, {3, 3}, {1, 1}, {}, {2, 2}});
  addPool(cases, {"CeilMode", {1, 2, 6, 6}, {1, 2, 3, 3}, {3, 3}, {2, 2}, {}, {}});
  addPool(cases, {"1d", {2, 3, 11}, {2, 3, 5}, {3}, {2}, {}, {}});
  addPool(cases, {"3d", {1, 2, 4, 5, 6}, {1, 2, 2, 2, 3}, {2, 2, 2}, {2, 2, 2}, {}, {}});
  addPool(cases, {"Global", {3, 5, 7, 6}, {3, 5, 1, 1}, {7, 6}, {}, {}, {}});
  addPool(cases, {"Single", {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, {}, {}, {}});
  addPool(cases, {"WindowInPadding", {1, 1, 2, 2}, {1, 1, 5, 5}, {1, 1}, {1, 1}, {1, 1, 2, 2}, {}});
  addPool(cases, {"F64", {2, 2, 6, 6}, {2, 2, 3, 3}, {3, 3}, {2, 2}, {1, 1, 0, 0}, {}, DType::F64});
}

} // namespace plimsoll::runtime::conformance
