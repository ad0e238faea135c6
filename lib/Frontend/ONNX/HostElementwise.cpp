// Host evaluation of elementwise nodes with numpy broadcasting.
#include "lib/Frontend/ONNX/Attributes.h"

#include <array>
#include <cmath>

namespace plimsoll::onnx {

namespace {
using Inputs = std::vector<const HostTensor *>;
using Folded = std::optional<std::vector<HostTensor>>;

Folded one(HostTensor tensor) {
  std::vector<HostTensor> result;
  result.push_back(std::move(tensor));
  return result;
}

/// Calls `visit(i...)` for each result element with the flat index of each (broadcast) input.
template <size_t N, typename Visit>
void visitBroadcast(std::span<const int64_t> dims, const std::array<const HostTensor *, N> &inputs, Visit visit) {
  std::array<std::vector<int64_t>, N> strides;
  for (size_t k = 0; k < N; ++k) {
    std::vector<int64_t> own = stridesOf(inputs[k]->dims);
    strides[k].assign(dims.size(), 0);
    size_t shift = dims.size() - inputs[k]->dims.size();
    for (size_t d = 0; d < own.size(); ++d)
      strides[k][d + shift] = inputs[k]->dims[d] == 1 ? 0 : own[d];
  }
  uint64_t count = elementCount(dims).value_or(0);
  std::vector<int64_t> at(dims.size(), 0);
  std::array<int64_t, N> flat{};
  for (uint64_t i = 0; i < count; ++i) {
    visit(flat);
    for (size_t d = dims.size(); d-- > 0;) {
      ++at[d];
      for (size_t k = 0; k < N; ++k)
        flat[k] += strides[k][d];
      if (at[d] < dims[d])
        break;
      for (size_t k = 0; k < N; ++k)
        flat[k] -= strides[k][d] * dims[d];
      at[d] = 0;
    }
  }
}

/// Shape of the result; when all inputs are splats the loop runs once and the result is a splat.
template <size_t N>
std::optional<HostTensor> resultFor(DType dtype, const std::array<const HostTensor *, N> &inputs,
                                    std::vector<int64_t> &loop) {
  std::vector<int64_t> dims;
  bool splat = true;
  for (const HostTensor *input : inputs) {
    std::optional<std::vector<int64_t>> wider = broadcastShapes(dims, input->dims);
    if (!wider)
      return std::nullopt;
    dims = *wider;
    splat &= input->splat || input->count() == 1;
  }
  HostTensor result;
  result.dtype = dtype;
  result.dims = dims;
  uint64_t count = result.count();
  if (!elementCount(dims) || (!splat && count > hostElementLimit))
    return std::nullopt;
  result.splat = splat && count > 1;
  loop = result.splat ? std::vector<int64_t>(dims.size(), 1) : dims;
  return result;
}

const std::map<std::string, double (*)(double)> &realUnary() {
  static const std::map<std::string, double (*)(double)> table = {
      {"Neg", [](double x) { return -x; }},
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Sin", [](double x) { return std::sin(x); }},
      {"Cos", [](double x) { return std::cos(x); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Round", [](double x) { return std::nearbyint(x); }},
      {"Relu", [](double x) { return x > 0 ? x : (x != x ? x : 0.0); }},
      {"Sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }},
  };
  return table;
}

const std::map<std::string, int64_t (*)(int64_t)> &integerUnary() {
  static const std::map<std::string, int64_t (*)(int64_t)> table = {
      {"Neg", [](int64_t x) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); }},
      {"Abs", [](int64_t x) { return x < 0 ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x; }},
      {"Sign", [](int64_t x) { return static_cast<int64_t>(x > 0) - (x < 0); }},
      {"Relu", [](int64_t x) { return x > 0 ? x : int64_t(0); }},
      {"Not", [](int64_t x) { return static_cast<int64_t>(x == 0); }},
  };
  return table;
}

double powReal(double x, double y) { return std::pow(x, y); }
/// Python's remainder takes the divisor's sign; fmod the dividend's.
double modReal(double x, double y) {
  double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

const std::map<std::string, double (*)(double, double)> &realBinary() {
  static const std::map<std::string, double (*)(double, double)> table = {
      {"Add", [](double x, double y) { return x + y; }},
      {"Sub", [](double x, double y) { return x - y; }},
      {"Mul", [](double x, double y) { return x * y; }},
      {"Div", [](double x, double y) { return x / y; }},
      {"Pow", powReal},
      {"Mod", modReal},
      {"Max", [](double x, double y) { return x != x   ? x
                                              : y != y ? y
                                              : x > y  ? x
                                                       : y; }},
      {"Min", [](double x, double y) { return x != x   ? x
                                              : y != y ? y
                                              : x < y  ? x
                                                       : y; }},
      {"PRelu", [](double x, double y) { return x < 0 ? x * y : x; }},
  };
  return table;
}

int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }
int64_t divideIntegers(int64_t x, int64_t y) {
  return y == 0 ? 0 : y == -1 ? wrapped(0 - static_cast<uint64_t>(x)) : x / y;
}
int64_t modIntegers(int64_t x, int64_t y) {
  if (y == 0 || y == -1)
    return 0;
  int64_t r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
int64_t powIntegers(int64_t x, int64_t y) {
  return static_cast<int64_t>(std::llround(std::pow(static_cast<double>(x), static_cast<double>(y))));
}

const std::map<std::string, int64_t (*)(int64_t, int64_t)> &integerBinary() {
  static const std::map<std::string, int64_t (*)(int64_t, int64_t)> table = {
      {"Add", [](int64_t x, int64_t y) { return wrapped(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); }},
      {"Sub", [](int64_t x, int64_t y) { return wrapped(static_cast<uint64_t>(x) - static_cast<uint64_t>(y)); }},
      {"Mul", [](int64_t x, int64_t y) { return wrapped(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)); }},
      {"Div", divideIntegers},
      {"Mod", modIntegers},
      {"Pow", powIntegers},
      {"Max", [](int64_t x, int64_t y) { return x > y ? x : y; }},
      {"Min", [](int64_t x, int64_t y) { return x < y ? x : y; }},
      {"And", [](int64_t x, int64_t y) { return static_cast<int64_t>(x != 0 && y != 0); }},
      {"Or", [](int64_t x, int64_t y) { return static_cast<int64_t>(x != 0 || y != 0); }},
      {"Xor", [](int64_t x, int64_t y) { return static_cast<int64_t>((x != 0) != (y != 0)); }},
      {"BitwiseAnd", [](int64_t x, int64_t y) { return x & y; }},
      {"BitwiseOr", [](int64_t x, int64_t y) { return x | y; }},
  };
  return table;
}

const std::map<std::string, bool (*)(double, double)> &comparisons() {
  static const std::map<std::string, bool (*)(double, double)> table = {
      {"Equal", [](double x, double y) { return x == y; }},
      {"Less", [](double x, double y) { return x < y; }},
      {"LessOrEqual", [](double x, double y) { return x <= y; }},
      {"Greater", [](double x, double y) { return x > y; }},
      {"GreaterOrEqual", [](double x, double y) { return x >= y; }},
  };
  return table;
}

template <typename Apply> Folded mapUnary(const HostTensor &x, DType dtype, Apply apply) {
  HostTensor result;
  result.dtype = dtype;
  result.dims = x.dims;
  result.splat = x.splat;
  uint64_t stored = x.splat ? 1 : x.count();
  for (uint64_t i = 0; i < stored; ++i)
    result.push(apply(i));
  return one(std::move(result));
}

Folded foldUnary(const Node &node, const HostTensor &x) {
  if (node.opType == "IsNaN" && x.holdsReals())
    return mapUnary(x, DType::Bool, [&](uint64_t i) { return static_cast<int64_t>(std::isnan(x.real(i))); });
  if (x.holdsReals()) {
    auto found = realUnary().find(node.opType);
    return found == realUnary().end() ? std::nullopt
                                      : mapUnary(x, x.dtype, [&](uint64_t i) { return found->second(x.real(i)); });
  }
  auto found = integerUnary().find(node.opType);
  return found == integerUnary().end() ? std::nullopt
                                       : mapUnary(x, x.dtype, [&](uint64_t i) { return found->second(x.integer(i)); });
}

Folded foldCast(const HostTensor &x, DType to) {
  if (elementBytes(to) == 0)
    return std::nullopt;
  if (x.holdsReals())
    return mapUnary(x, to, [&](uint64_t i) { return x.real(i); });
  return mapUnary(x, to, [&](uint64_t i) { return x.integer(i); });
}

Folded foldBinary(const Node &node, const HostTensor &x, const HostTensor &y) {
  std::array<const HostTensor *, 2> inputs{&x, &y};
  std::vector<int64_t> loop;
  auto compareWith = comparisons().find(node.opType);
  bool compares = compareWith != comparisons().end();
  if (x.dtype != y.dtype && node.opType != "Pow")
    return std::nullopt;
  std::optional<HostTensor> result = resultFor<2>(compares ? DType::Bool : x.dtype, inputs, loop);
  if (!result)
    return std::nullopt;
  auto fill = [&](auto apply) {
    visitBroadcast<2>(loop, inputs, [&](const std::array<int64_t, 2> &at) {
      result->push(apply(static_cast<uint64_t>(at[0]), static_cast<uint64_t>(at[1])));
    });
    return one(std::move(*result));
  };
  if (compares)
    return fill([&](uint64_t i, uint64_t j) {
      if (x.holdsReals())
        return static_cast<int64_t>(compareWith->second(x.real(i), y.real(j)));
      int64_t a = x.integer(i), b = y.integer(j); // the sign of a-b, so that large integers compare exactly
      return static_cast<int64_t>(compareWith->second(static_cast<double>((a > b) - (a < b)), 0));
    });
  if (x.holdsReals()) {
    auto found = realBinary().find(node.opType);
    if (found == realBinary().end())
      return std::nullopt;
    bool truncatedMod = node.opType == "Mod" && intAttribute(node, "fmod", 0) == 1;
    return fill([&](uint64_t i, uint64_t j) {
      return truncatedMod ? std::fmod(x.real(i), y.real(j)) : found->second(x.real(i), y.real(j));
    });
  }
  auto found = integerBinary().find(node.opType);
  if (found == integerBinary().end())
    return std::nullopt;
  return fill([&](uint64_t i, uint64_t j) { return found->second(x.integer(i), y.integer(j)); });
}

Folded foldWhere(const HostTensor &condition, const HostTensor &x, const HostTensor &y) {
  std::array<const HostTensor *, 3> inputs{&condition, &x, &y};
  std::vector<int64_t> loop;
  std::optional<HostTensor> result = resultFor<3>(x.dtype, inputs, loop);
  if (!result || x.dtype != y.dtype)
    return std::nullopt;
  visitBroadcast<3>(loop, inputs, [&](const std::array<int64_t, 3> &at) {
    bool taken = condition.integer(static_cast<uint64_t>(at[0])) != 0;
    result->pushFrom(taken ? x : y, static_cast<uint64_t>(taken ? at[1] : at[2]));
  });
  return one(std::move(*result));
}

/// Max, Min and Sum take any number of inputs.
Folded foldVariadic(const Node &node, const Inputs &inputs) {
  Node pair = node;
  if (node.opType == "Sum")
    pair.opType = "Add";
  HostTensor sum = *inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (!inputs[i])
      return std::nullopt;
    Folded next = foldBinary(pair, sum, *inputs[i]);
    if (!next)
      return std::nullopt;
    sum = std::move(next->front());
  }
  return one(std::move(sum));
}

Folded foldClip(const Node &node, const Inputs &inputs) {
  const HostTensor &x = *inputs[0];
  double low = -HUGE_VAL, high = HUGE_VAL;
  if (inputs.size() > 1 && inputs[1] && inputs[1]->count() == 1)
    low = inputs[1]->real(0);
  if (inputs.size() > 2 && inputs[2] && inputs[2]->count() == 1)
    high = inputs[2]->real(0);
  return mapUnary(x, x.dtype, [&](uint64_t i) { return std::min(std::max(x.real(i), low), high); });
}
} // namespace

std::optional<std::vector<HostTensor>> foldElementwise(const Node &node, const Inputs &inputs) {
  if (inputs.empty() || !inputs[0])
    return std::nullopt;
  const std::string &op = node.opType;
  if (op == "Identity" || op == "StopGradient")
    return one(*inputs[0]);
  if (op == "Cast")
    return foldCast(*inputs[0], static_cast<DType>(intAttribute(node, "to", 0)));
  if (op == "CastLike" && inputs.size() == 2 && inputs[1])
    return foldCast(*inputs[0], inputs[1]->dtype);
  if (op == "Where" && inputs.size() == 3 && inputs[1] && inputs[2])
    return foldWhere(*inputs[0], *inputs[1], *inputs[2]);
  if (op == "Clip")
    return foldClip(node, inputs);
  if (op == "Max" || op == "Min" || op == "Sum")
    return foldVariadic(node, inputs);
  if (inputs.size() == 1)
    return foldUnary(node, *inputs[0]);
  if (inputs.size() == 2 && inputs[1])
    return foldBinary(node, *inputs[0], *inputs[1]);
  return std::nullopt;
}

} // namespace plimsoll::onnx
