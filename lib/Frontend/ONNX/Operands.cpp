// What every operator needs of its inputs before its lowering may look at them: presence, tensors where tensors are
// meant, and elements. Lowerings then check shapes and types only.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

/// Inputs that must be present, by operator; operators not listed need one.
static size_t requiredInputs(const std::string &op) {
  static const std::map<std::string, size_t> table = {{"Constant", 0},
                                                      {"Add", 2},
                                                      {"Sub", 2},
                                                      {"Mul", 2},
                                                      {"Div", 2},
                                                      {"Pow", 2},
                                                      {"Mod", 2},
                                                      {"And", 2},
                                                      {"Or", 2},
                                                      {"Xor", 2},
                                                      {"Equal", 2},
                                                      {"Less", 2},
                                                      {"LessOrEqual", 2},
                                                      {"Greater", 2},
                                                      {"GreaterOrEqual", 2},
                                                      {"MatMul", 2},
                                                      {"Gemm", 2},
                                                      {"Conv", 2},
                                                      {"ConvTranspose", 2},
                                                      {"Gather", 2},
                                                      {"GatherElements", 2},
                                                      {"GatherND", 2},
                                                      {"CumSum", 2},
                                                      {"Reshape", 2},
                                                      {"Expand", 2},
                                                      {"Tile", 2},
                                                      {"PRelu", 2},
                                                      {"CastLike", 2},
                                                      {"SequenceAt", 2},
                                                      {"SoftmaxCrossEntropyLoss", 2},
                                                      {"NegativeLogLikelihoodLoss", 2},
                                                      {"LayerNormalization", 2},
                                                      {"RMSNormalization", 2},
                                                      {"SimplifiedLayerNormalization", 2},
                                                      {"OneHot", 3},
                                                      {"Where", 3},
                                                      {"ScatterND", 3},
                                                      {"Attention", 3},
                                                      {"RotaryEmbedding", 3},
                                                      {"Slice", 3},
                                                      {"Range", 3},
                                                      {"InstanceNormalization", 3},
                                                      {"GroupNormalization", 3},
                                                      {"BatchNormalization", 5}};
  auto found = table.find(op);
  return found == table.end() ? 1 : found->second;
}

static bool isAnyOf(const std::string &op, std::initializer_list<const char *> names) {
  return llvm::any_of(names, [&](const char *name) { return op == name; });
}

LogicalResult Lowering::checkOperands() {
  const std::string &op = node.opType;
  bool variadic = isAnyOf(op, {"Concat", "Max", "Min", "Sum", "Mean", "Einsum", "SequenceConstruct"});
  size_t needed = variadic ? std::max<size_t>(1, inputs()) : requiredInputs(op);
  for (size_t i = 0; i < needed; ++i)
    if (!has(i))
      return bad("input " + std::to_string(i) + " is missing, expected " + std::to_string(needed));
  if (isAnyOf(op,
              {"SequenceAt", "SequenceLength", "ConcatFromSequence", "Identity", "SequenceConstruct", "Shape", "Size"}))
    return success();
  bool reads = !isAnyOf(op, {"Concat", "CastLike"});
  for (size_t i = 0; i < inputs(); ++i) {
    if (has(i) && value(i).sequence)
      return bad("input " + std::to_string(i) + " is a sequence, expected a tensor");
    bool settings = i > 0 && (i >= needed || isAnyOf(op, {"Reshape", "Expand", "Tile", "Slice"}));
    if (has(i) && reads && !settings && productOf(dims(i)) == 0)
      return bad("input " + std::to_string(i) + " has no elements");
  }
  return success();
}

} // namespace plimsoll::onnx
