// The table of library operations and the rules K1..K9 that hold for all of them. What is particular to one operation
// is in CheckShapes.cpp and CheckWindows.cpp.
#include "runtime/Kernels/Check.h"

#include "runtime/Kernels/CallChecker.h"

#include <algorithm>
#include <limits>

namespace plimsoll::runtime {

using artifact::Access;
using artifact::DType;

namespace {

enum class Types { Any, Float, FloatOnly32, FloatOrInt, Index, Int32, Int64, BoolOrFloat };
enum class Layout { Strided, InnerContiguous, Contiguous };

struct OperandRule {
  const char *name;
  Access access;
  Types types;
  Layout layout;
};

enum class Kind { Int, Ints, Float };

struct AttributeRule {
  const char *key;
  Kind kind;
  bool required;
  int64_t minimum = std::numeric_limits<int64_t>::min();
  int64_t maximum = std::numeric_limits<int64_t>::max();
};

struct OperationRule {
  const char *op;
  std::vector<OperandRule> operands;
  std::vector<AttributeRule> attributes;
  bool (*shapes)(CallChecker &);
};

} // namespace

static constexpr Access R = Access::Read, W = Access::Write;
static constexpr Layout Strided = Layout::Strided, Inner = Layout::InnerContiguous, Packed = Layout::Contiguous;
static constexpr int64_t MaxExtent = int64_t{1} << 40;

static const std::vector<AttributeRule> convAttributes = {{"strides", Kind::Ints, false, 1, 1 << 20},
                                                          {"pads", Kind::Ints, false, 0, 1 << 20},
                                                          {"dilations", Kind::Ints, false, 1, 1 << 20},
                                                          {"groups", Kind::Int, false, 1, 1 << 30}};
static const std::vector<AttributeRule> poolAttributes = {{"kernel", Kind::Ints, true, 1, 1 << 20},
                                                          {"strides", Kind::Ints, false, 1, 1 << 20},
                                                          {"pads", Kind::Ints, false, 0, 1 << 20},
                                                          {"dilations", Kind::Ints, false, 1, 1 << 20}};
static const std::vector<AttributeRule> axisAttributes = {{"axis", Kind::Int, true}};
static const std::vector<AttributeRule> attentionAttributes = {
    {"scale", Kind::Float, true}, {"causal", Kind::Int, false, 0, 1}, {"has_mask", Kind::Int, false, 0, 1}};

static std::vector<AttributeRule> with(std::vector<AttributeRule> rules, std::vector<AttributeRule> more) {
  rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

static std::vector<OperationRule> movementRules() {
  return {
      {"copy", {{"src", R, Types::Any, Strided}, {"dst", W, Types::Any, Strided}}, {}, checkCopy},
      {"fill", {{"dst", W, Types::Any, Strided}}, {{"value", Kind::Float, true}}, nullptr},
      {"gather",
       {{"data", R, Types::Any, Packed}, {"indices", R, Types::Index, Packed}, {"out", W, Types::Any, Packed}},
       axisAttributes,
       checkGather},
      {"scatter_add",
       {{"indices", R, Types::Index, Packed}, {"updates", R, Types::Float, Packed}, {"out", W, Types::Float, Packed}},
       axisAttributes,
       checkScatterAdd},
      {"gather_elements",
       {{"data", R, Types::Any, Packed}, {"indices", R, Types::Index, Packed}, {"out", W, Types::Any, Packed}},
       axisAttributes,
       checkGatherElements},
      {"scatter_add_elements",
       {{"indices", R, Types::Index, Packed}, {"updates", R, Types::Float, Packed}, {"out", W, Types::Float, Packed}},
       axisAttributes,
       checkScatterAddElements},
      {"cumsum",
       {{"x", R, Types::FloatOrInt, Packed}, {"y", W, Types::FloatOrInt, Packed}},
       with(axisAttributes, {{"exclusive", Kind::Int, false, 0, 1}, {"reverse", Kind::Int, false, 0, 1}}),
       checkCumsum},
      {"random_uniform",
       {{"seed", R, Types::Int64, Packed}, {"out", W, Types::FloatOnly32, Packed}},
       {{"op_id", Kind::Int, true, 0, 0xffffffff}},
       checkRandomUniform},
  };
}

static std::vector<OperationRule> contractionRules() {
  const auto conv = [](const char *op, const char *a, const char *b, const char *written) {
    return OperationRule{
        op,
        {{a, R, Types::Float, Packed}, {b, R, Types::Float, Packed}, {written, W, Types::Float, Packed}},
        convAttributes,
        checkConv};
  };
  return {
      {"dot",
       {{"a", R, Types::Float, Strided}, {"b", R, Types::Float, Strided}, {"c", W, Types::Float, Strided}},
       {{"accumulate", Kind::Int, false, 0, 1}},
       checkDot},
      conv("conv", "x", "w", "y"),
      conv("conv_input_grad", "dy", "w", "dx"),
      conv("conv_weight_grad", "x", "dy", "dw"),
  };
}

static std::vector<OperationRule> poolRules() {
  const AttributeRule countPad = {"count_include_pad", Kind::Int, false, 0, 1};
  std::vector<AttributeRule> optionalPool = poolAttributes;
  optionalPool[0].required = false;
  return {
      {"max_pool",
       {{"x", R, Types::Float, Packed}, {"y", W, Types::Float, Packed}, {"indices", W, Types::Int32, Packed}},
       poolAttributes,
       checkPool},
      {"max_pool_grad",
       {{"dy", R, Types::Float, Packed}, {"indices", R, Types::Int32, Packed}, {"dx", W, Types::Float, Packed}},
       optionalPool,
       checkPoolGrad},
      {"avg_pool",
       {{"x", R, Types::Float, Packed}, {"y", W, Types::Float, Packed}},
       with(poolAttributes, {countPad}),
       checkPool},
      {"avg_pool_grad",
       {{"dy", R, Types::Float, Packed}, {"dx", W, Types::Float, Packed}},
       with(poolAttributes, {countPad}),
       checkPool},
  };
}

static std::vector<OperationRule> attentionRules() {
  return {
      {"attention",
       {{"q", R, Types::Float, Inner},
        {"k", R, Types::Float, Inner},
        {"v", R, Types::Float, Inner},
        {"mask", R, Types::BoolOrFloat, Strided},
        {"out", W, Types::Float, Inner},
        {"lse", W, Types::Float, Packed}},
       attentionAttributes,
       checkAttention},
      {"attention_grad",
       {{"dout", R, Types::Float, Inner},
        {"q", R, Types::Float, Inner},
        {"k", R, Types::Float, Inner},
        {"v", R, Types::Float, Inner},
        {"mask", R, Types::BoolOrFloat, Strided},
        {"out", R, Types::Float, Inner},
        {"lse", R, Types::Float, Packed},
        {"dq", W, Types::Float, Inner},
        {"dk", W, Types::Float, Inner},
        {"dv", W, Types::Float, Inner}},
       attentionAttributes,
       checkAttentionGrad},
  };
}

static const std::vector<OperationRule> &operationRules() {
  static const std::vector<OperationRule> rules = [] {
    std::vector<OperationRule> all = movementRules();
    for (auto &part : {contractionRules(), poolRules(), attentionRules()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rules;
}

/// The operands that `spec` must have: the table's, with what attributes change (dot's accumulate, attention's mask).
static std::vector<OperandRule> expectedOperands(const OperationRule &rule, const CallSpec &spec) {
  std::vector<OperandRule> operands = rule.operands;
  if (spec.op == "dot" && intAttribute(spec, "accumulate", 0))
    operands[2].access = Access::ReadWrite;
  if (spec.op.rfind("attention", 0) == 0 && !intAttribute(spec, "has_mask", 0))
    operands.erase(std::find_if(operands.begin(), operands.end(),
                                [](const OperandRule &o) { return std::string_view(o.name) == "mask"; }));
  return operands;
}

static std::string rangeText(const AttributeRule &rule) {
  std::string text = "[";
  return text.append(std::to_string(rule.minimum)).append(", ").append(std::to_string(rule.maximum)).append("]");
}

static bool checkAttribute(CallChecker &check, const AttributeRule &rule) {
  const artifact::AttributeT *found = findAttribute(check.spec, rule.key);
  const std::string name = std::string("attribute '") + rule.key + "'";
  if (!found)
    return check.require(!rule.required, "K2", "found no " + name + ", expected it");
  if (rule.kind == Kind::Float)
    return check.require(found->floats.size() == 1, "K2",
                         "found " + std::to_string(found->floats.size()) + " floats in " + name + ", expected 1");
  if (rule.kind == Kind::Int &&
      !check.require(found->ints.size() == 1, "K2",
                     "found " + std::to_string(found->ints.size()) + " integers in " + name + ", expected 1"))
    return false;
  for (int64_t value : found->ints)
    if (!check.require(value >= rule.minimum && value <= rule.maximum, "K3",
                       "found " + std::to_string(value) + " in " + name + ", expected a value in " + rangeText(rule)))
      return false;
  return true;
}

/// K2 presence and count, K3 range, K4 no attribute that the operation does not know.
static bool checkAttributes(CallChecker &check, const OperationRule &rule) {
  for (const AttributeRule &attribute : rule.attributes)
    if (!checkAttribute(check, attribute))
      return false;
  for (const artifact::AttributeT &attribute : check.spec.attributes) {
    const bool known = std::any_of(rule.attributes.begin(), rule.attributes.end(),
                                   [&](const AttributeRule &r) { return attribute.key == r.key; });
    std::string expected;
    for (const AttributeRule &r : rule.attributes)
      expected += (expected.empty() ? "" : ", ") + std::string(r.key);
    if (!check.require(known, "K4",
                       "found attribute '" + attribute.key + "', expected only " +
                           (expected.empty() ? "none" : expected)))
      return false;
  }
  return true;
}

static bool typeAllowed(Types types, DType dtype) {
  const bool isFloat = dtype == DType::F32 || dtype == DType::F64;
  const bool isIndex = dtype == DType::I32 || dtype == DType::I64;
  switch (types) {
  case Types::Any:
    return dtype <= DType::Bool;
  case Types::Float:
    return isFloat;
  case Types::FloatOnly32:
    return dtype == DType::F32;
  case Types::FloatOrInt:
    return isFloat || isIndex;
  case Types::Index:
    return isIndex;
  case Types::Int32:
    return dtype == DType::I32;
  case Types::Int64:
    return dtype == DType::I64;
  case Types::BoolOrFloat:
    return isFloat || dtype == DType::Bool;
  }
  return false;
}

static const char *typesText(Types types) {
  static const char *const names[] = {"any type",   "f32 or f64", "f32", "f32, f64, i32 or i64",
                                      "i32 or i64", "i32",        "i64", "bool, f32 or f64"};
  return names[static_cast<size_t>(types)];
}

/// K5: shape and strides describe a tensor whose offsets cannot overflow.
static bool checkForm(CallChecker &check, const OperandRule &rule, const TensorSpec &tensor) {
  const std::string name = rule.name;
  if (!check.require(tensor.shape.size() == tensor.strides.size() && tensor.shape.size() <= MaxRank, "K5",
                     "found " + name + " with " + std::to_string(tensor.shape.size()) + " dimensions and " +
                         std::to_string(tensor.strides.size()) + " strides, expected as many of both, at most 8"))
    return false;
  double count = 1, reach = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    const int64_t extent = tensor.shape[d], stride = tensor.strides[d];
    if (!check.require(extent >= 1 && stride >= 0, "K5",
                       "found " + name + " of shape " + shapeText(tensor.shape) + " and strides " +
                           shapeText(tensor.strides) + ", expected extents of at least 1 and strides of at least 0"))
      return false;
    count *= static_cast<double>(extent);
    reach += static_cast<double>(extent - 1) * static_cast<double>(stride);
  }
  return check.require(std::max(count, reach) < static_cast<double>(MaxExtent), "K5",
                       "found " + name + " of shape " + shapeText(tensor.shape) + " and strides " +
                           shapeText(tensor.strides) + ", expected fewer than 2^40 elements");
}

/// K7: two different positions of a written tensor never share an element: taken from the smallest stride up, each
/// stride steps over everything the smaller ones reach.
static bool checkDisjoint(CallChecker &check, const OperandRule &rule, const TensorSpec &tensor) {
  std::vector<std::pair<int64_t, int64_t>> steps; // (stride, extent)
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.shape[d] > 1)
      steps.emplace_back(tensor.strides[d], tensor.shape[d]);
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto &[stride, extent] : steps) {
    if (!check.require(stride > reach, "K7",
                       "found " + std::string(rule.name) + " of shape " + shapeText(tensor.shape) + " and strides " +
                           shapeText(tensor.strides) + " written twice at one place, expected disjoint elements"))
      return false;
    reach += stride * (extent - 1);
  }
  return true;
}

/// K8: contiguity where the kernel relies on it.
static bool checkLayout(CallChecker &check, const OperandRule &rule, const TensorSpec &tensor) {
  const std::string found = "found " + std::string(rule.name) + " of shape " + shapeText(tensor.shape) +
                            " with strides " + shapeText(tensor.strides);
  if (rule.layout == Layout::Contiguous)
    return check.require(isContiguous(tensor), "K8",
                         found + ", expected row-major contiguous elements; copy it into a contiguous buffer first");
  if (rule.layout == Layout::InnerContiguous && !tensor.shape.empty())
    return check.require(tensor.shape.back() == 1 || tensor.strides.back() == 1, "K8",
                         found + ", expected stride 1 in the last dimension; copy it into a contiguous buffer first");
  return true;
}

static const char *accessName(Access access) {
  return access == Access::Read ? "read" : access == Access::Write ? "written" : "read and written";
}

static bool checkOperand(CallChecker &check, const OperandRule &rule, const TensorSpec &tensor) {
  const std::string name = rule.name;
  return check.require(tensor.access == rule.access, "K6",
                       "found " + name + " marked as " + accessName(tensor.access) + ", expected " +
                           accessName(rule.access)) &&
         check.require(typeAllowed(rule.types, tensor.dtype), "K6",
                       "found " + name + " of type " + dtypeName(tensor.dtype) + ", expected " +
                           typesText(rule.types)) &&
         checkForm(check, rule, tensor) && (rule.access == R || checkDisjoint(check, rule, tensor)) &&
         checkLayout(check, rule, tensor);
}

/// K9: operands of the operation's element type agree on it.
static bool checkSameType(CallChecker &check, const std::vector<OperandRule> &rules) {
  const OperandRule *first = nullptr;
  size_t firstIndex = 0;
  for (size_t i = 0; i < rules.size(); ++i) {
    const bool element = rules[i].types == Types::Any || rules[i].types == Types::Float ||
                         rules[i].types == Types::FloatOrInt ||
                         (rules[i].types == Types::BoolOrFloat && check.operand(i).dtype != DType::Bool);
    if (!element)
      continue;
    if (first && !check.require(check.operand(i).dtype == check.operand(firstIndex).dtype, "K9",
                                "found " + std::string(rules[i].name) + " of type " +
                                    dtypeName(check.operand(i).dtype) + " and " + first->name + " of type " +
                                    dtypeName(check.operand(firstIndex).dtype) + ", expected the same type"))
      return false;
    if (!first) {
      first = &rules[i];
      firstIndex = i;
    }
  }
  return true;
}

static bool checkOperands(CallChecker &check, const OperationRule &rule) {
  const std::vector<OperandRule> expected = expectedOperands(rule, check.spec);
  std::string names;
  for (const OperandRule &operand : expected)
    names += (names.empty() ? "" : ", ") + std::string(operand.name);
  if (!check.require(check.spec.operands.size() == expected.size(), "K1",
                     "found " + std::to_string(check.spec.operands.size()) + " operands, expected " +
                         std::to_string(expected.size()) + " (" + names + ")"))
    return false;
  for (size_t i = 0; i < expected.size(); ++i)
    if (!checkOperand(check, expected[i], check.operand(i)))
      return false;
  return checkSameType(check, expected);
}

std::vector<std::string> libraryOperations() {
  std::vector<std::string> names;
  for (const OperationRule &rule : operationRules())
    names.emplace_back(rule.op);
  return names;
}

Status checkCall(const CallSpec &spec) {
  for (const OperationRule &rule : operationRules()) {
    if (spec.op != rule.op)
      continue;
    CallChecker check(spec);
    if (checkAttributes(check, rule) && checkOperands(check, rule) && rule.shapes)
      rule.shapes(check);
    return std::move(check.status);
  }
  std::string known;
  for (const std::string &name : libraryOperations())
    known += (known.empty() ? "" : ", ") + name;
  return badInput("found library operation '" + spec.op + "', expected one of " + known +
                  "; the artifact may come from a newer compiler");
}

} // namespace plimsoll::runtime
