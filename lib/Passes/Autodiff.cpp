// Reverse-mode differentiation. Problem: given a loss, the cotangent of every parameter at the price of few forward
// passes. Method: one walk back over the block. A value is *active* when a differentiable path leads from a requested
// value through it to the loss; only active values get cotangents, so frozen parameters, data and integers cost
// nothing. Each op with a cotangent asks its own rule (DifferentiableOpInterface), and contributions to one value are
// added in the order they are met, which depends on the order of ops alone. It ends because the walk visits each op
// once; time and size are linear in the ops on active paths. Source: Griewank & Walther, "Evaluating Derivatives"
// (2008), section 3.2 and 6.2 (activity).
#include "lib/Passes/Autodiff.h"
#include "lib/Passes/Passes.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLAUTODIFF
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

// The name a person knows an op by: its source node where the location has one.
static std::string nodeName(Operation &op) {
  std::string name = op.getName().getStringRef().str();
  Location location = op.getLoc();
  if (auto named = location->findInstanceOf<NameLoc>())
    return name + " (" + named.getName().str() + ")";
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    return name + " (" + file.getFilename().str() + ":" + std::to_string(file.getLine()) + ")";
  return name;
}

namespace {
class ReverseWalk {
public:
  ReverseWalk(func::FuncOp target, Value lossValue, OpBuilder &at)
      : function(target), loss(lossValue), builder(UnknownLoc::get(target.getContext()), at) {}

  LogicalResult check(Value seed) const;
  void findActive(ArrayRef<Value> wrt);
  LogicalResult reportMissing() const;
  LogicalResult run(Value seed);
  Value cotangentOf(Value value) const { return cotangents.lookup(value); }

private:
  Block &body() const { return function->getRegion(0).front(); }
  bool isActive(Value value) const { return reached.contains(value) && needed.contains(value); }
  bool anyActive(ValueRange values) const {
    return llvm::any_of(values, [&](Value value) { return isActive(value); });
  }
  LogicalResult visit(Operation &op);
  void accumulate(Value value, Value contribution);
  void accumulateOwn(Value value, DotOp product);
  Location tagged(Location location) const {
    return FusedLoc::get({location}, StringAttr::get(location.getContext(), "gradient"), location.getContext());
  }

  func::FuncOp function;
  Value loss;
  ImplicitLocOpBuilder builder;
  DenseSet<Value> reached, needed;
  DenseMap<Value, Value> cotangents;
};
} // namespace

LogicalResult ReverseWalk::check(Value seed) const {
  func::FuncOp target = function;
  if (!llvm::hasSingleElement(target.getBody()))
    return target.emitError("cannot differentiate a function of ")
           << target.getBody().getBlocks().size() << " blocks, expected one";
  if (!isFloatTensor(loss.getType()))
    return target.emitError("cannot differentiate a loss of type ") << loss.getType() << ", expected a float tensor";
  if (seed && seed.getType() != loss.getType())
    return target.emitError("the cotangent of the loss has type ") << seed.getType() << ", expected " << loss.getType();
  return success();
}

// Floats that depend on a requested value, and floats that the loss depends on; active values are both.
void ReverseWalk::findActive(ArrayRef<Value> wrt) {
  for (Value value : wrt)
    if (isFloatTensor(value.getType()))
      reached.insert(value);
  auto addFloats = [](ValueRange values, DenseSet<Value> &set) {
    for (Value value : values)
      if (isFloatTensor(value.getType()))
        set.insert(value);
  };
  for (Operation &op : body())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return reached.contains(operand); }))
      addFloats(op.getResults(), reached);
  needed.insert(loss);
  for (Operation &op : llvm::reverse(body()))
    if (llvm::any_of(op.getResults(), [&](Value result) { return needed.contains(result); }))
      addFloats(op.getOperands(), needed);
}

LogicalResult ReverseWalk::reportMissing() const {
  SmallVector<Operation *> missing;
  for (Operation &op : body())
    if (anyActive(op.getOperands()) && anyActive(op.getResults()) && !isa<DifferentiableOpInterface>(op))
      missing.push_back(&op);
  if (missing.empty())
    return success();
  func::FuncOp target = function;
  InFlightDiagnostic error = target.emitError("no gradient rule for ")
                             << missing.size() << (missing.size() == 1 ? " op" : " ops") << " on a path to the loss: ";
  llvm::interleave(
      missing, [&](Operation *op) { error << nodeName(*op); }, [&] { error << ", "; });
  error << "; replace them, or freeze the parameters they depend on";
  return error;
}

// A matrix product made for one operand alone is added where the sum already is.
void ReverseWalk::accumulateOwn(Value value, DotOp product) {
  Value &slot = cotangents[value];
  slot = plimsoll::accumulateProduct(builder, slot, product);
}

void ReverseWalk::accumulate(Value value, Value contribution) {
  Value &slot = cotangents[value];
  slot = slot ? AddOp::create(builder, slot, contribution).getResult() : contribution;
}

LogicalResult ReverseWalk::visit(Operation &op) {
  SmallVector<Value> incoming;
  for (Value result : op.getResults())
    incoming.push_back(cotangents.lookup(result));
  SmallVector<bool> wanted;
  for (Value operand : op.getOperands())
    wanted.push_back(isActive(operand));
  bool anyIncoming = llvm::any_of(incoming, [](Value value) { return static_cast<bool>(value); });
  if (!anyIncoming || !llvm::is_contained(wanted, true))
    return success();

  builder.setLoc(tagged(op.getLoc()));
  Operation *before =
      builder.getInsertionPoint() == builder.getBlock()->begin() ? nullptr : &*std::prev(builder.getInsertionPoint());
  Adjoint adjoint{builder, incoming, wanted};
  SmallVector<Value> contributions = cast<DifferentiableOpInterface>(op).buildAdjoint(adjoint);
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    if (!wanted[index] || !contributions[index])
      continue;
    if (contributions[index].getType() != operand.getType())
      return op.emitOpError("adjoint of operand ")
             << index << " has type " << contributions[index].getType() << ", expected " << operand.getType();
    auto product = contributions[index].getDefiningOp<DotOp>();
    bool isOwn = product && product->use_empty() && (!before || before->isBeforeInBlock(product)) &&
                 llvm::count(contributions, contributions[index]) == 1;
    if (isOwn && cotangents.lookup(operand))
      accumulateOwn(operand, product);
    else
      accumulate(operand, contributions[index]);
  }
  return success();
}

LogicalResult ReverseWalk::run(Value seed) {
  if (!isActive(loss))
    return success();
  builder.setLoc(tagged(loss.getLoc()));
  cotangents[loss] = seed ? seed : splat(builder, loss.getType(), 1.0);
  Operation *last = loss.getDefiningOp();
  for (Operation *op = last, *previous = nullptr; op; op = previous) {
    previous = op->getPrevNode();
    if (failed(visit(*op)))
      return failure();
  }
  return success();
}

Value plimsoll::accumulateProduct(ImplicitLocOpBuilder &builder, Value sum, DotOp product) {
  Value joined = DotAddOp::create(builder, sum.getType(), product.getLhs(), product.getRhs(), sum, product.getTransA(),
                                  product.getTransB());
  product.erase();
  return joined;
}

FailureOr<SmallVector<Value>> plimsoll::differentiate(func::FuncOp function, Value loss, Value seed,
                                                      ArrayRef<Value> wrt, OpBuilder &builder) {
  ReverseWalk walk(function, loss, builder);
  if (failed(walk.check(seed)))
    return failure();
  walk.findActive(wrt);
  if (failed(walk.reportMissing()) || failed(walk.run(seed)))
    return failure();
  SmallVector<Value> gradients;
  for (Value value : wrt)
    gradients.push_back(walk.cotangentOf(value));
  return gradients;
}

//===----------------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------------===//

static std::optional<unsigned> lossResult(func::FuncOp function) {
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (auto role = function.getResultAttrOfType<StringAttr>(index, "graph.role"); role && role.getValue() == "loss")
      return index;
  return std::nullopt;
}

using ReadsByVariable = llvm::MapVector<VariableOp, SmallVector<Value>>;

// Trainable parameters in order of first read, each with the values of all its reads.
static ReadsByVariable trainableReads(func::FuncOp function, SymbolTable &symbols) {
  ReadsByVariable reads;
  for (ReadOp read : function.getBody().front().getOps<ReadOp>()) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    if (variable && variable.getKind() == VariableKind::Parameter && variable.getTrainable())
      reads[variable].push_back(read.getResult());
  }
  return reads;
}

static void appendResult(func::FuncOp function, Value value, const Twine &name) {
  Builder builder(function.getContext());
  NamedAttribute attribute = builder.getNamedAttr("graph.name", builder.getStringAttr(name));
  (void)function.insertResult(function.getNumResults(), value.getType(), builder.getDictionaryAttr(attribute));
  function.getBody().front().getTerminator()->insertOperands(function.getNumResults() - 1, value);
}

// The gradient of a variable is the sum over its reads; null when none has one.
static Value sumOfReads(ArrayRef<Value> gradients, OpBuilder &builder) {
  Value sum;
  for (Value gradient : gradients)
    if (gradient)
      sum = sum ? AddOp::create(builder, gradient.getLoc(), sum, gradient).getResult() : gradient;
  return sum;
}

static LogicalResult appendGradients(func::FuncOp function, unsigned loss, SymbolTable &symbols) {
  Operation *terminator = function.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  ReadsByVariable reads = trainableReads(function, symbols);
  SmallVector<Value> wrt;
  for (auto &[variable, values] : reads)
    llvm::append_range(wrt, values);
  FailureOr<SmallVector<Value>> gradients =
      plimsoll::differentiate(function, terminator->getOperand(loss), Value(), wrt, builder);
  if (failed(gradients))
    return failure();
  ArrayRef<Value> rest = *gradients;
  for (auto &[variable, values] : reads) {
    Value gradient = sumOfReads(rest.take_front(values.size()), builder);
    rest = rest.drop_front(values.size());
    if (gradient)
      appendResult(function, gradient, "grad." + variable.getSymName());
    else
      remark::analysis(variable.getLoc(),
                       remark::RemarkOpts::name("dead-parameter").category("autodiff").function(function.getName()))
          << ("parameter @" + variable.getSymName() + " has no gradient path to the loss").str();
  }
  return success();
}

namespace {
struct Autodiff : plimsoll::impl::PlimsollAutodiffBase<Autodiff> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      std::optional<unsigned> loss = function.isExternal() ? std::nullopt : lossResult(function);
      if (loss && failed(appendGradients(function, *loss, symbols)))
        return signalPassFailure();
    }
  }
};
} // namespace
