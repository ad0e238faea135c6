// Values of the importer: host constants and variables turned into graph values, and what a lowering may ask of its
// node.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

Type elementType(MLIRContext &context, DType dtype) {
  Builder builder(&context);
  switch (dtype) {
  case DType::F32:
    return builder.getF32Type();
  case DType::F64:
    return builder.getF64Type();
  case DType::F16:
    return builder.getF16Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::Bool:
    return builder.getI1Type();
  case DType::I8:
    return builder.getIntegerType(8);
  case DType::U8:
    return builder.getIntegerType(8, false);
  case DType::I16:
    return builder.getIntegerType(16);
  case DType::I32:
    return builder.getIntegerType(32);
  case DType::I64:
    return builder.getIntegerType(64);
  default:
    return {};
  }
}

static DType dtypeOfElement(Type element) {
  if (element.isF32())
    return DType::F32;
  if (element.isF64())
    return DType::F64;
  if (element.isF16())
    return DType::F16;
  if (element.isBF16())
    return DType::BF16;
  switch (element.getIntOrFloatBitWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return element.isUnsignedInteger() ? DType::U8 : DType::I8;
  case 16:
    return DType::I16;
  case 32:
    return DType::I32;
  default:
    return DType::I64;
  }
}

const Imported *Importer::find(const std::string &name) const {
  auto found = values.find(name);
  return found == values.end() ? nullptr : &found->second;
}

std::vector<int64_t> Importer::dimsOf(const Imported &value) const {
  if (value.host)
    return value.host->dims;
  if (!value.variable.empty())
    return initializers.at(value.variable)->dims;
  return value.tensor ? shapeOf(value.tensor).vec() : std::vector<int64_t>();
}

DType Importer::dtypeOf(const Imported &value) const {
  if (value.host)
    return value.host->dtype;
  if (!value.variable.empty())
    return initializers.at(value.variable)->dtype;
  return value.tensor ? dtypeOfElement(graph::tensorType(value.tensor).getElementType()) : DType::Undefined;
}

/// Non-splat float constants above this many elements become constant variables beside the weights instead of
/// attributes.
static constexpr uint64_t attributeElementLimit = uint64_t(1) << 20;

Value Importer::constant(const HostTensor &tensor) {
  auto type = RankedTensorType::get(tensor.dims, elementType(*b.getContext(), tensor.dtype));
  uint64_t count = tensor.count();
  if (tensor.splat || count == 1)
    return tensor.holdsReals() ? graph::splat(b, type, tensor.real(0))
                               : graph::splat(b, type, static_cast<double>(tensor.integer(0)));
  if (tensor.dtype == DType::Bool) {
    SmallVector<bool> bits;
    bits.reserve(count);
    for (uint64_t i = 0; i < count; ++i)
      bits.push_back(tensor.integer(i) != 0);
    return graph::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<bool>(bits)));
  }
  std::vector<std::byte> bytes = hostBytes(tensor);
  if (tensor.holdsReals() && count > attributeElementLimit) {
    std::string name = "plimsoll.constant." + std::to_string(namedConstants++);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    graph::VariableOp::create(b, name, type, graph::VariableKind::Constant, false, nullptr, nullptr, nullptr, nullptr);
    result.weights.addOwned(name, tensor.dtype, tensor.dims, std::move(bytes));
    b.setInsertionPointToEnd(body);
    return graph::ReadOp::create(b, type, name);
  }
  ArrayRef<char> raw(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return graph::ConstantOp::create(b, DenseElementsAttr::getFromRawBuffer(type, raw));
}

Value Importer::constantBroadcast(const HostTensor &tensor, ArrayRef<int64_t> shape) {
  HostTensor small = tensor;
  findSplat(small);
  if (small.splat || small.count() == 1) {
    small.dims.assign(shape.begin(), shape.end());
    small.splat = true;
    return constant(small);
  }
  return numpyBroadcast(b, constant(shrinkRepeats(small)), shape);
}

Value Importer::materialize(const Imported &value) {
  if (value.tensor)
    return value.tensor;
  if (value.host)
    return constantBroadcast(*value.host, value.host->dims);
  if (value.variable.empty())
    return {};
  Value &read = reads[value.variable];
  if (!read) {
    const TensorData &data = *initializers.at(value.variable);
    read = graph::ReadOp::create(b, RankedTensorType::get(data.dims, elementType(*b.getContext(), data.dtype)),
                                 value.variable);
  }
  return read;
}

Value Importer::seed() {
  auto type = RankedTensorType::get({2}, b.getI64Type());
  if (!variables.count("seed")) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    variables["seed"] = graph::VariableOp::create(b, "seed", type, graph::VariableKind::StepState, false,
                                                  b.getF64FloatAttr(0), nullptr, nullptr, nullptr);
  }
  Value &read = reads["seed"];
  if (!read)
    read = graph::ReadOp::create(b, type, "seed");
  return read;
}

bool Importer::dependsOnParameter(Value value) const {
  SmallVector<Value> work{value};
  llvm::SmallPtrSet<Operation *, 32> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !graph::isFloatTensor(next.getType()) || !seen.insert(op).second)
      continue;
    if (auto read = dyn_cast<graph::ReadOp>(op)) {
      auto variable = variables.find(read.getVariable().str());
      graph::VariableOp variableOp = variable == variables.end() ? graph::VariableOp() : variable->second;
      if (variableOp && variableOp.getTrainable() && variableOp.getKind() == graph::VariableKind::Parameter)
        return true;
    }
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

bool Lowering::wants(size_t i) const { return i < node.outputs.size() && !node.outputs[i].empty(); }
const Imported &Lowering::value(size_t i) const { return *importer.find(node.inputs[i]); }
const HostTensor *Lowering::host(size_t i) const { return has(i) ? value(i).host.get() : nullptr; }
std::vector<const HostTensor *> Lowering::hosts() const {
  std::vector<const HostTensor *> list;
  for (size_t i = 0; i < inputs(); ++i)
    list.push_back(host(i));
  return list;
}
Value Lowering::tensor(size_t i) { return has(i) ? importer.materialize(value(i)) : Value(); }
Dims Lowering::dims(size_t i) const {
  std::vector<int64_t> list = has(i) ? importer.dimsOf(value(i)) : std::vector<int64_t>();
  return Dims(list.begin(), list.end());
}
DType Lowering::dtype(size_t i) const { return has(i) ? importer.dtypeOf(value(i)) : DType::Undefined; }

Value Lowering::broadcast(size_t i, ArrayRef<int64_t> shape) {
  if (const HostTensor *known = host(i))
    return importer.constantBroadcast(*known, shape);
  return numpyBroadcast(b, tensor(i), shape);
}

LogicalResult Lowering::done(size_t output, Value result) {
  if (!result)
    return failure();
  if (wants(output)) {
    Imported &slot = importer.values[node.outputs[output]];
    slot = Imported();
    if (productOf(shapeOf(result)) == 0)
      slot.host = std::make_shared<HostTensor>(
          hostSplat(dtypeOfElement(graph::tensorType(result).getElementType()), shapeOf(result).vec(), 0));
    else
      slot.tensor = result;
  }
  return success();
}

LogicalResult Lowering::doneHost(size_t output, HostTensor known) {
  if (wants(output))
    importer.values[node.outputs[output]] =
        Imported{{}, std::make_shared<HostTensor>(std::move(known)), "", nullptr, false};
  return success();
}

LogicalResult Lowering::bad(const std::string &message) {
  std::string shapes;
  for (size_t i = 0; i < inputs(); ++i) {
    shapes += i ? ", " : "";
    shapes += has(i) ? dtypeName(dtype(i)) + "[" : "none";
    for (auto [d, size] : llvm::enumerate(dims(i)))
      shapes += (d ? "," : "") + std::to_string(size);
    shapes += has(i) ? "]" : "";
  }
  importer.report(Severity::Error, "bad-node", node.name, node.opType, message + " (inputs: " + shapes + ")",
                  "check the model", ExitCode::BadInput);
  return failure();
}

LogicalResult Lowering::unsupported(const std::string &message, const std::string &advice) {
  importer.report(Severity::Error, "unsupported-node", node.name, node.opType, message, advice, ExitCode::Unsupported);
  return failure();
}

Value constantLike(ImplicitLocOpBuilder &b, Value like, double value) { return graph::splat(b, like.getType(), value); }
ArrayRef<int64_t> shapeOf(Value value) { return graph::tensorType(value).getShape(); }
int64_t productOf(ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims)
    product *= dim;
  return product;
}

Value numpyBroadcast(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> shape) {
  if (!value || shapeOf(value) == shape)
    return value;
  int64_t rank = static_cast<int64_t>(shape.size()), own = static_cast<int64_t>(shapeOf(value).size());
  Dims dims;
  for (int64_t d = rank - own; d < rank; ++d)
    dims.push_back(d);
  return graph::broadcast(b, value, dims, shape);
}

Value sliceOf(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes,
              ArrayRef<int64_t> strides) {
  if (shapeOf(value) == sizes)
    return value;
  return graph::SliceOp::create(b, graph::tensorLike(value.getType(), sizes), value, starts, strides);
}

Value selectOf(ImplicitLocOpBuilder &b, Value predicate, Value onTrue, Value onFalse) {
  return graph::SelectOp::create(b, onTrue.getType(), predicate, onTrue, onFalse);
}

Value dotOf(ImplicitLocOpBuilder &b, Value lhs, Value rhs, bool transLhs, bool transRhs) {
  ArrayRef<int64_t> l = shapeOf(lhs), r = shapeOf(rhs);
  Dims dims(l.drop_back(2));
  dims.push_back(transLhs ? l.back() : l[l.size() - 2]);
  dims.push_back(transRhs ? r[r.size() - 2] : r.back());
  return graph::DotOp::create(b, graph::tensorLike(lhs.getType(), dims), lhs, rhs, transLhs, transRhs);
}

Value meanOf(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    count *= shapeOf(value)[static_cast<size_t>(d)];
  Value sum = graph::reduceSum(b, value, dims);
  return count == 1 ? sum : graph::DivOp::create(b, sum, constantLike(b, sum, static_cast<double>(count))).getResult();
}

Value alongAxis(ImplicitLocOpBuilder &b, Value vector, int64_t axis, ArrayRef<int64_t> shape) {
  return graph::broadcast(b, vector, {axis}, shape);
}

} // namespace plimsoll::onnx
