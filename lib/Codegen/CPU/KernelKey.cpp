// Structural text of a group; equality of text is equality of code.
#include "lib/Codegen/CPU/KernelKey.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::codegen {

static void print(llvm::raw_ostream &os, ArrayRef<int64_t> numbers) {
  for (int64_t number : numbers)
    os << number << ',';
  os << ';';
}

std::string kernelKey(GroupOp group, ArrayRef<OperandLayout> inputs, ArrayRef<OperandLayout> outputs) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, group.getIteration());
  print(os, group.getReduced());
  for (auto [type, layout] : llvm::zip(group.getInputs().getTypes(), inputs)) {
    os << type;
    print(os, layout.strides);
  }
  for (auto [type, layout] : llvm::zip(group.getOutputs().getTypes(), outputs)) {
    os << type;
    print(os, layout.strides);
  }
  llvm::DenseMap<Value, unsigned> numbers;
  for (Value argument : group.getBody().getArguments())
    numbers[argument] = numbers.size();
  for (Operation &op : group.getBody().front()) {
    os << op.getName().getStringRef() << op.getAttrDictionary() << '(';
    for (Value operand : op.getOperands())
      os << numbers.lookup(operand) << ',';
    os << ')';
    for (Value result : op.getResults()) {
      os << result.getType();
      numbers[result] = numbers.size();
    }
  }
  return text;
}

} // namespace plimsoll::codegen
