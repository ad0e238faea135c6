// The cases of attention and attention_grad. The gradient's out and lse operands must belong to its q, k, v: they are
// computed by the reference forward pass when the case is made.
#include "test/conformance/Harness.h"

#include <cmath>
#include <limits>
#include <memory>

namespace plimsoll::runtime::conformance {

namespace {

enum class Mask { None, Bool, Float, KeyPadding, FullyMaskedRows };

struct Attention {
  const char *name;
  int64_t b, h, hk, s, t, d, dv;
  bool causal = false;
  Mask mask = Mask::None;
  bool tokensOuter = false; ///< q, k, v, out as [B, S, H, D] in memory
  DType dtype = DType::F32;
};

} // namespace

static Dims headStrides(const Attention &a, int64_t heads, int64_t rows, int64_t depth) {
  return a.tokensOuter ? Dims{rows * heads * depth, depth, heads * depth, 1}
                       : contiguousStrides({a.b, heads, rows, depth});
}

static TensorSpec headTensor(const Attention &a, Access access, int64_t heads, int64_t rows, int64_t depth) {
  return {a.dtype, {a.b, heads, rows, depth}, headStrides(a, heads, rows, depth), access};
}

static TensorSpec maskTensor(const Attention &a) {
  const Dims shape = {a.b, a.h, a.s, a.t};
  if (a.mask == Mask::Float)
    return read(shape, a.dtype, {0, a.s * a.t, a.t, 1});
  if (a.mask == Mask::KeyPadding)
    return read(shape, DType::Bool, {a.t, 0, 0, 1});
  return read(shape, DType::Bool, {a.s * a.t, 0, a.t, 1});
}

/// Whether a mask element keeps its score; FullyMaskedRows hides rows 1, 4, 7, ...
static double maskValue(const Attention &a, int64_t at) {
  const double random = randomValue(11, at);
  switch (a.mask) {
  case Mask::Float:
    return random < -0.6 ? -std::numeric_limits<double>::infinity() : random;
  case Mask::KeyPadding:
    return at % a.t < a.t - (at / a.t) % a.t;
  case Mask::FullyMaskedRows:
    return at / a.t % 3 == 1 ? 0 : random > -0.5;
  default:
    return random > -0.5;
  }
}

static std::vector<artifact::AttributeT> attributesOf(const Attention &a) {
  return {number("scale", 1.0 / std::sqrt(static_cast<double>(a.d))), ints("causal", {a.causal ? 1 : 0}),
          ints("has_mask", {a.mask == Mask::None ? 0 : 1})};
}

static Case forwardCase(const Attention &a) {
  CallSpec spec{"attention",
                {headTensor(a, Access::Read, a.h, a.s, a.d), headTensor(a, Access::Read, a.hk, a.t, a.d),
                 headTensor(a, Access::Read, a.hk, a.t, a.dv)},
                attributesOf(a)};
  Case test{std::string("Attention") + a.name, {}, Bound::Attention, 1, true, {}};
  if (a.mask != Mask::None) {
    spec.operands.push_back(maskTensor(a));
    test.fill[3] = [a](int64_t at) { return maskValue(a, at); };
  }
  spec.operands.push_back(headTensor(a, Access::Write, a.h, a.s, a.dv));
  spec.operands.push_back(written({a.b, a.h, a.s}, a.dtype));
  test.spec = std::move(spec);
  return test;
}

/// The gradient of `forward`, fed with its inputs and its reference results.
static Case backwardCase(const Attention &a, const Case &forward) {
  const auto results = std::make_shared<Operands>(runReference(forward));
  Case test{std::string("AttentionGrad") + a.name,
            {"attention_grad", {}, forward.spec.attributes},
            Bound::Attention,
            1,
            true,
            {}};
  std::vector<TensorSpec> &operands = test.spec.operands;
  operands.push_back(headTensor(a, Access::Read, a.h, a.s, a.dv));
  for (size_t i = 0; i < forward.spec.operands.size(); ++i) {
    TensorSpec operand = forward.spec.operands[i];
    operand.access = Access::Read;
    test.fill[operands.size()] = [results, i](int64_t at) { return results->buffers[i].get(at); };
    operands.push_back(operand);
  }
  for (size_t i : {size_t{0}, size_t{1}, size_t{2}}) {
    operands.push_back(forward.spec.operands[i]);
    operands.back().access = Access::Write;
  }
  return test;
}

void addAttentionCases(std::vector<Case> &cases) {
  const std::vector<Attention> attentions = {
      {"Plain", 2, 3, 3, 70, 70, 16, 16},
      {"Tokens", 2, 2, 2, 65, 65, 8, 8, false, Mask::None, true},
      {"Causal", 1, 2, 2, 130, 130, 20, 20, true},
      {"CausalTokens", 2, 2, 2, 64, 64, 64, 64, true, Mask::None, true},
      {"CausalMoreKeys", 1, 1, 1, 40, 100, 8, 8, true},
      {"CausalMoreRows", 1, 1, 1, 150, 70, 8, 8, true},
      {"Cross", 1, 2, 2, 33, 97, 12, 20},
      {"Grouped", 2, 6, 2, 40, 40, 8, 8, true},
      {"MultiQuery", 1, 4, 1, 17, 80, 5, 7},
      {"BoolMask", 2, 2, 2, 70, 66, 8, 8, false, Mask::Bool},
      {"FloatMask", 2, 2, 2, 35, 66, 8, 8, false, Mask::Float},
      {"KeyPadding", 3, 2, 2, 20, 80, 8, 8, false, Mask::KeyPadding},
      {"CausalKeyPadding", 2, 2, 1, 70, 70, 8, 8, true, Mask::KeyPadding, true},
      {"FullyMasked", 1, 2, 2, 50, 70, 8, 8, false, Mask::FullyMaskedRows},
      {"Single", 1, 1, 1, 1, 1, 1, 1},
      {"SingleKey", 2, 1, 1, 5, 1, 3, 2},
      {"F64", 1, 2, 1, 9, 11, 4, 3, true, Mask::Bool, false, DType::F64},
  };
  for (const Attention &attention : attentions) {
    cases.push_back(forwardCase(attention));
    cases.push_back(backwardCase(attention, cases.back()));
  }
}

} // namespace plimsoll::runtime::conformance
