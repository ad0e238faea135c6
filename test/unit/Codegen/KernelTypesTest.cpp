// Storage types, conversions, integer arithmetic and the numbers at their edges.
#include "KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace plimsoll::codegen;
using namespace plimsoll::codegen::test;
using plimsoll::reference::HostTensor;

namespace {

/// One op on operands of `shape`, all of element types named in `types` (the last one is the result's).
std::string oneOp(const std::string &op, const std::vector<std::string> &types, const std::string &shape,
                  const std::string &suffix) {
  auto tensor = [&](const std::string &element) {
    return "tensor<" + shape + (shape.empty() ? "" : "x") + element + ">";
  };
  std::string arguments, inner, values, names, list, result = tensor(types.back());
  for (size_t i = 0; i + 1 < types.size(); ++i) {
    std::string number = std::to_string(i), comma = i ? ", " : "";
    arguments += comma + "%a" + number + ": " + tensor(types[i]);
    inner += comma + "%x" + number + ": " + tensor(types[i]);
    values += comma + "%a" + number;
    names += comma + "%x" + number;
    list += comma + tensor(types[i]);
  }
  std::string space = shape;
  for (char &c : space)
    c = c == 'x' ? ',' : c;
  return "func.func @f(" + arguments + ") -> " + result + " {\n  %r = graph.group " + values + " space [" + space +
         "] reduced [] : (" + list + ") -> " + result + " {\n  ^bb0(" + inner + "):\n    %0 = graph." + op + " " +
         names + " : " + suffix + "\n    graph.yield %0 : " + result + "\n  }\n  return %r : " + result + "\n}";
}

void compare(const std::string &text, double relative, const RunSettings &settings = {}, double scale = 4) {
  SCOPED_TRACE(text);
  MLIRContext context;
  GroupCase test(context, text);
  std::vector<HostTensor> inputs;
  for (Type type : test.group.getInputs().getTypes())
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), inputs.size() + 3, scale));
  if (text.find("graph.div") != std::string::npos) // the oracle refuses division by zero
    for (HostTensor &tensor : inputs) {
      for (int64_t &value : tensor.ints)
        value = value - 3 == 0 ? 5 : value - 3;
      plimsoll::reference::roundInPlace(tensor);
    }
  std::vector<HostTensor> found = runKernel(test, inputs, settings), expected = runReference(test, inputs);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    plimsoll::reference::roundInPlace(expected[i]);
    expectNear(found[i], expected[i], relative, 0);
  }
}

std::string same(const std::string &element) { return "tensor<37x" + element + ">"; }

} // namespace

TEST(KernelTypes, FloatsOfEveryWidth) {
  for (const char *cpu : {"native", "x86-64-v3"})
    for (auto [type, bound] :
         {std::pair("f64", 1e-15), std::pair("f32", 2e-7), std::pair("f16", 1e-3), std::pair("bf16", 8e-3)}) {
      compare(oneOp("add", {type, type, type}, "37", same(type)), bound, {cpu});
      compare(oneOp("div", {type, type, type}, "37", same(type)), bound, {cpu});
      compare(oneOp("tanh", {type, type}, "37", same(type)), bound, {cpu});
      compare(oneOp("erf", {type, type}, "37", same(type)), bound, {cpu});
      compare(oneOp("maximum", {type, type, type}, "37", same(type)), 0, {cpu});
    }
}

TEST(KernelTypes, IntegersOfEveryWidth) {
  for (const char *type : {"i64", "i32", "i16", "i8", "ui8"})
    for (const char *op : {"add", "mul", "div", "maximum", "minimum"})
      compare(oneOp(op, {type, type, type}, "37", same(type)), 0);
  compare(oneOp("sign", {"i32", "i32"}, "37", same("i32")), 0);
  compare(oneOp("abs", {"i64", "i64"}, "37", same("i64")), 0);
}

TEST(KernelTypes, IntegerDivisionNeverTraps) {
  MLIRContext context;
  GroupCase test(context, oneOp("div", {"i32", "i32", "i32"}, "3", "tensor<3xi32>"));
  Type type = test.group.getInputs()[0].getType();
  std::vector<HostTensor> found =
      runKernel(test, {HostTensor::ofInts(type, {7, INT32_MIN, -9}), HostTensor::ofInts(type, {0, -1, 2})}, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ints, (std::vector<int64_t>{0, INT32_MIN, -4}));
}

TEST(KernelTypes, BooleansAreBytes) {
  compare(oneOp("and", {"i1", "i1", "i1"}, "37", same("i1")), 0);
  compare(oneOp("not", {"i1", "i1"}, "37", same("i1")), 0);
  compare(oneOp("select", {"i1", "f32", "f32", "f32"}, "37", "tensor<37xi1>, tensor<37xf32>"), 0);
  compare(oneOp("select", {"i1", "i64", "i64", "i64"}, "37", "tensor<37xi1>, tensor<37xi64>"), 0);
  for (const char *direction : {"eq", "ne", "lt", "le", "gt", "ge"})
    for (const char *type : {"f32", "i64", "ui8", "bf16"})
      compare(
          oneOp(std::string("compare <") + direction + ">", {type, type, "i1"}, "37", same(type) + " -> tensor<37xi1>"),
          0);
}

TEST(KernelTypes, Conversions) {
  const char *types[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i8", "ui8", "i1"};
  for (const char *from : types)
    for (const char *to : types)
      if (std::string(from) != to && !(std::string(from) == "f64" && std::string(to) != "f32" &&
                                       std::string(to)[0] != 'i' && std::string(to)[0] != 'u'))
        compare(oneOp("convert", {from, to}, "37", same(from) + " -> " + same(to)), 0, {},
                std::string(to) == "ui8" ? 0 : 4);
}

TEST(KernelTypes, FloatsOutOfRangeSaturate) {
  MLIRContext context;
  GroupCase test(context, oneOp("convert", {"f32", "i32"}, "5", "tensor<5xf32> -> tensor<5xi32>"));
  HostTensor input = HostTensor::ofFloats(test.group.getInputs()[0].getType(), {NAN, 3e9, -3e9, INFINITY, -1.9});
  std::vector<HostTensor> found = runKernel(test, {input}, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ints, (std::vector<int64_t>{0, INT32_MAX, INT32_MIN, INT32_MAX, -1}));
}

TEST(KernelTypes, NanPropagates) {
  for (const char *op : {"maximum", "minimum", "add"}) {
    MLIRContext context;
    GroupCase test(context, oneOp(op, {"f32", "f32", "f32"}, "3", "tensor<3xf32>"));
    Type type = test.group.getInputs()[0].getType();
    std::vector<HostTensor> found =
        runKernel(test, {HostTensor::ofFloats(type, {NAN, 1, NAN}), HostTensor::ofFloats(type, {1, NAN, NAN})}, {});
    ASSERT_EQ(found.size(), 1u);
    for (double value : found[0].floats)
      EXPECT_TRUE(std::isnan(value)) << op;
  }
}

TEST(KernelTypes, ScalarsAndEmptyTensors) {
  compare(oneOp("exp", {"f32", "f32"}, "", "tensor<f32>"), 2e-7);
  compare(oneOp("exp", {"f32", "f32"}, "1x1", "tensor<1x1xf32>"), 2e-7);
  compare(oneOp("exp", {"f32", "f32"}, "3x0", "tensor<3x0xf32>"), 2e-7);
}
