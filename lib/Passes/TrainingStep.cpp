// From one forward function to the entries of a training binary.
//   train_step  = forward + backward + update                                 (accumulation 1)
//   accumulate  = forward + backward of loss*weight, added to accumulators    (accumulation > 1)
//   apply       = accumulators / total weight -> clip -> update -> zero
//   gradients   = loss and gradients as outputs                               (on request)
//   eval_step   = loss in evaluation mode, forward = every other output in evaluation mode
// Weighted accumulation equals the unsplit batch: each micro-batch contributes the gradient of its *sum* (mean times
// the count its mean divides by), and apply divides once by the total count. A window whose total count is 0 changes
// nothing.
#include "lib/Passes/TrainingStep.h"
#include "lib/Passes/Autodiff.h"
#include "lib/Passes/Optimizer.h"
#include "lib/Passes/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/GlobPattern.h"

namespace plimsoll {
#define GEN_PASS_DEF_PLIMSOLLTRAININGSTEP
#include "lib/Passes/Passes.h.inc"
} // namespace plimsoll

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

bool plimsoll::matchesGlob(StringRef pattern, StringRef name) {
  auto glob = llvm::GlobPattern::create(pattern);
  if (!glob) {
    llvm::consumeError(glob.takeError());
    return pattern == name;
  }
  return glob->match(name);
}

namespace {
/// A gradient beside the parameter it belongs to and the parameter's current value.
struct ParameterGradient {
  VariableOp variable;
  Value value, gradient;
};

/// Names and values of an entry's results, replacing those of the forward function.
struct Outputs {
  SmallVector<Value> values;
  SmallVector<std::string> names;
  void add(StringRef name, Value value) {
    values.push_back(value);
    names.push_back(name.str());
  }
};
} // namespace

static std::optional<unsigned> resultWithRole(func::FuncOp function, StringRef role) {
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto attr = function.getResultAttrOfType<StringAttr>(i, "graph.role"); attr && attr.getValue() == role)
      return i;
  return std::nullopt;
}

static func::ReturnOp returnOf(func::FuncOp function) {
  return cast<func::ReturnOp>(function.getBody().front().getTerminator());
}

// Sets the results of `function`, then drops dead code and arguments nothing reads.
static void setOutputs(func::FuncOp function, const Outputs &outputs) {
  func::ReturnOp terminator = returnOf(function);
  terminator.getOperandsMutable().assign(outputs.values);
  IRRewriter rewriter(function.getContext());
  (void)runRegionDCE(rewriter, function->getRegions());

  Block &body = function.getBody().front();
  SmallVector<Attribute> argumentAttrs, resultAttrs;
  llvm::BitVector unused(body.getNumArguments());
  for (BlockArgument argument : body.getArguments()) {
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
    else
      argumentAttrs.push_back(function.getArgAttrDict(argument.getArgNumber()));
  }
  body.eraseArguments(unused);
  Builder builder(function.getContext());
  for (const std::string &name : outputs.names)
    resultAttrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr("graph.name", builder.getStringAttr(name))));
  function.removeArgAttrsAttr();
  function.removeResAttrsAttr();
  function.setFunctionType(builder.getFunctionType(body.getArgumentTypes(), terminator.getOperandTypes()));
  function.setAllArgAttrs(argumentAttrs);
  function.setAllResultAttrs(resultAttrs);
}

static func::FuncOp cloneAs(func::FuncOp function, StringRef name) {
  func::FuncOp clone = function.clone();
  clone.setName(name);
  function->getBlock()->getOperations().insert(Block::iterator(function), clone);
  return clone;
}

// Leaves one read per variable, before every write, and one write: a module used twice (a shared BatchNorm) reads what
// its first use wrote, so that value is handed on directly, and only the last write stays.
static void unifyState(func::FuncOp function) {
  llvm::StringMap<Value> current;
  llvm::StringMap<WriteOp> lastWrite;
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      auto [entry, isNew] = current.try_emplace(read.getVariable(), read.getResult());
      if (isNew)
        continue;
      read.replaceAllUsesWith(entry->second);
      read.erase();
    } else if (auto write = dyn_cast<WriteOp>(op)) {
      current[write.getVariable()] = write.getValue();
      auto [entry, isNew] = lastWrite.try_emplace(write.getVariable(), write);
      if (isNew)
        continue;
      entry->second.erase();
      entry->second = write;
    }
  }
}

static Value addScalarInput(func::FuncOp function, StringRef name) {
  Builder builder(function.getContext());
  auto attrs = builder.getDictionaryAttr(builder.getNamedAttr("graph.name", builder.getStringAttr(name)));
  unsigned index = function.getNumArguments();
  (void)function.insertArgument(index, RankedTensorType::get({}, builder.getF32Type()), attrs, function.getLoc());
  return function.getArgument(index);
}

// Advances the random counter so that the next execution draws other numbers.
static void advanceSeed(ModuleOp module, ImplicitLocOpBuilder &builder) {
  auto seed = module.lookupSymbol<VariableOp>("seed");
  if (!seed)
    return;
  RankedTensorType type = seed.getTensorType();
  Value now = ReadOp::create(builder, type, "seed");
  Value increment = ConstantOp::create(builder, DenseElementsAttr::get(type, ArrayRef<int64_t>{0, 1}));
  WriteOp::create(builder, "seed", AddOp::create(builder, now, increment));
}

// Differentiates the loss with respect to every trainable parameter the function reads, in order of first read.
static FailureOr<SmallVector<ParameterGradient>> gradients(func::FuncOp function, Value loss, Value seed,
                                                           ImplicitLocOpBuilder &builder) {
  auto module = function->getParentOfType<ModuleOp>();
  SmallVector<ParameterGradient> found;
  SmallVector<Value> wrt;
  for (ReadOp read : function.getBody().front().getOps<ReadOp>()) {
    auto variable = module.lookupSymbol<VariableOp>(read.getVariable());
    if (variable.getKind() != VariableKind::Parameter || !variable.getTrainable())
      continue;
    found.push_back({variable, read.getResult(), Value()});
    wrt.push_back(read.getResult());
  }
  FailureOr<SmallVector<Value>> results = differentiate(function, loss, seed, wrt, builder);
  if (failed(results))
    return failure();
  for (auto [parameter, gradient] : llvm::zip_equal(found, *results))
    parameter.gradient = gradient;
  llvm::erase_if(found, [](const ParameterGradient &parameter) { return !parameter.gradient; });
  if (found.empty())
    return function.emitError("no trainable parameter has a path to the loss; check the loss output and --freeze");
  return found;
}

static Value scalarConstant(ImplicitLocOpBuilder &builder, Type like, double value) {
  return splat(builder, like, value);
}

// sqrt of the sum of squares over all gradients. Squares are summed in f64: a hundred gradients of 1e20 must not
// overflow.
static Value globalNorm(ImplicitLocOpBuilder &builder, MutableArrayRef<ParameterGradient> parameters) {
  Value total;
  for (ParameterGradient &parameter : parameters) {
    Value wide = convert(builder, parameter.gradient, builder.getF64Type());
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(wide).getRank()));
    Value sum = reduceSum(builder, MulOp::create(builder, wide, wide), dims);
    total = total ? AddOp::create(builder, total, sum).getResult() : sum;
  }
  return SqrtOp::create(builder, total);
}

// Scales every gradient by min(1, clipNorm/(norm + 1e-6)), as torch.nn.utils.clip_grad_norm_. Returns the norm (f64).
// The product is formed in f64: the factor for gradients near the largest f32 is below the smallest normal one.
static Value clip(ImplicitLocOpBuilder &builder, SmallVector<ParameterGradient> &parameters, double clipNorm) {
  Value norm = globalNorm(builder, parameters);
  if (std::isinf(clipNorm))
    return norm;
  Type type = norm.getType();
  Value ratio = DivOp::create(builder, scalarConstant(builder, type, clipNorm),
                              AddOp::create(builder, norm, scalarConstant(builder, type, 1e-6)));
  Value factor = MinimumOp::create(builder, ratio, scalarConstant(builder, type, 1.0));
  for (ParameterGradient &parameter : parameters) {
    RankedTensorType shape = tensorType(parameter.gradient);
    Value wide = convert(builder, parameter.gradient, builder.getF64Type());
    Value scaled = MulOp::create(builder, wide, broadcast(builder, factor, {}, shape.getShape()));
    parameter.gradient = convert(builder, scaled, shape.getElementType());
  }
  return norm;
}

static bool isNonZeroConstant(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat())
    return false;
  return isFloatTensor(elements.getType()) ? elements.getSplatValue<APFloat>().isNonZero()
                                           : !elements.getSplatValue<APInt>().isZero();
}

// Clips, guards and updates; adds grad_norm and skipped to the outputs. The update is skipped when no token counted or,
// with clipping, when the norm is not finite.
static void emitUpdates(ModuleOp module, ImplicitLocOpBuilder &builder, const OptimizerRecipe &recipe,
                        SmallVector<ParameterGradient> parameters, Value learningRate, Value weight, Outputs &outputs) {
  Value proceed;
  if (!isNonZeroConstant(weight))
    proceed = compare(builder, CompareDirection::GT, weight, splat(builder, weight.getType(), 0));
  if (recipe.clipNorm > 0) {
    Value norm = clip(builder, parameters, recipe.clipNorm);
    Value infinity = splat(builder, norm.getType(), std::numeric_limits<double>::infinity());
    Value finite = compare(builder, CompareDirection::LT, norm, infinity);
    proceed = proceed ? AndOp::create(builder, proceed, finite).getResult() : finite;
    outputs.add("grad_norm", convert(builder, norm, builder.getF32Type()));
  }
  if (proceed)
    outputs.add("skipped", convert(builder, NotOp::create(builder, proceed), builder.getF32Type()));
  OptimizerBuilder optimizer(module, builder, recipe, learningRate, proceed);
  for (ParameterGradient &parameter : parameters)
    optimizer.update(parameter.variable, parameter.value, parameter.gradient);
}

namespace {
/// The forward function's two distinguished results.
struct LossAndWeight {
  Value loss, weight;
};
} // namespace

static LossAndWeight lossAndWeight(func::FuncOp function, unsigned loss, unsigned weight) {
  func::ReturnOp terminator = returnOf(function);
  return {terminator.getOperand(loss), terminator.getOperand(weight)};
}

static LogicalResult buildTrainStep(func::FuncOp function, LossAndWeight target, const OptimizerRecipe &recipe) {
  auto module = function->getParentOfType<ModuleOp>();
  ImplicitLocOpBuilder builder(function.getLoc(), returnOf(function));
  FailureOr<SmallVector<ParameterGradient>> parameters = gradients(function, target.loss, Value(), builder);
  if (failed(parameters))
    return failure();
  Outputs outputs;
  outputs.add("loss", target.loss);
  outputs.add("tokens", target.weight);
  emitUpdates(module, builder, recipe, *parameters, addScalarInput(function, "lr"), target.weight, outputs);
  advanceSeed(module, builder);
  setOutputs(function, outputs);
  return success();
}

// The gradients themselves as outputs "grad.<parameter>": for checking and for looking inside. Writes no state.
static LogicalResult buildGradients(func::FuncOp function, LossAndWeight target) {
  ImplicitLocOpBuilder builder(function.getLoc(), returnOf(function));
  FailureOr<SmallVector<ParameterGradient>> parameters = gradients(function, target.loss, Value(), builder);
  if (failed(parameters))
    return failure();
  for (WriteOp write : llvm::make_early_inc_range(function.getBody().front().getOps<WriteOp>()))
    write.erase();
  Outputs outputs;
  outputs.add("loss", target.loss);
  outputs.add("tokens", target.weight);
  for (ParameterGradient &parameter : *parameters)
    outputs.add(("grad." + parameter.variable.getSymName()).str(), parameter.gradient);
  setOutputs(function, outputs);
  return success();
}

static constexpr StringLiteral lossSum = "accumulate.loss", weightSum = "accumulate.weight";

static void addTo(ModuleOp module, ImplicitLocOpBuilder &builder, StringRef accumulator, Value value,
                  StringRef owner = "") {
  ensureVariable(module, accumulator, tensorType(value), VariableKind::GradientAccumulator, 0, owner);
  Value sum = ReadOp::create(builder, value.getType(), accumulator);
  WriteOp::create(builder, accumulator, AddOp::create(builder, sum, value));
}

// The product at the root of a gradient that is a sum of products and of nothing else, each of them read only by the
// next; null otherwise.
static DotOp firstProduct(Value gradient) {
  while (auto next = gradient.getDefiningOp<DotAddOp>()) {
    if (!llvm::hasNItemsOrLess(gradient.getUses(), 1))
      return nullptr;
    gradient = next.getAccumulator();
  }
  return llvm::hasNItemsOrLess(gradient.getUses(), 1) ? gradient.getDefiningOp<DotOp>() : nullptr;
}

// Adds a gradient to its accumulator. A sum of products is formed in the accumulator itself and needs no storage.
static void addGradient(ModuleOp module, ImplicitLocOpBuilder &builder, ParameterGradient parameter, bool isShared) {
  StringRef owner = parameter.variable.getSymName();
  std::string accumulator = (owner + ".grad").str();
  DotOp first = isShared ? DotOp() : firstProduct(parameter.gradient);
  if (!first) {
    addTo(module, builder, accumulator, parameter.gradient, owner);
    return;
  }
  ensureVariable(module, accumulator, tensorType(parameter.gradient), VariableKind::GradientAccumulator, 0, owner);
  ImplicitLocOpBuilder before(first.getLoc(), first);
  Value sum = ReadOp::create(before, parameter.gradient.getType(), accumulator);
  Value joined = DotAddOp::create(before, first.getType(), first.getLhs(), first.getRhs(), sum, first.getTransA(),
                                  first.getTransB());
  Value total = parameter.gradient == first.getResult() ? joined : parameter.gradient;
  first.replaceAllUsesWith(joined);
  first.erase();
  WriteOp::create(builder, accumulator, total);
}

// Returns the parameters that have an accumulator, in order.
static FailureOr<SmallVector<VariableOp>> buildAccumulate(func::FuncOp function, LossAndWeight target) {
  auto module = function->getParentOfType<ModuleOp>();
  ImplicitLocOpBuilder builder(function.getLoc(), returnOf(function));
  Value seed = convert(builder, target.weight, tensorType(target.loss).getElementType());
  FailureOr<SmallVector<ParameterGradient>> parameters = gradients(function, target.loss, seed, builder);
  if (failed(parameters))
    return failure();
  SmallVector<VariableOp> accumulated;
  for (ParameterGradient &parameter : *parameters) {
    bool isShared = llvm::count_if(*parameters, [&](const ParameterGradient &other) {
                      return other.gradient == parameter.gradient;
                    }) > 1;
    addGradient(module, builder, parameter, isShared);
    accumulated.push_back(parameter.variable);
  }
  addTo(module, builder, lossSum, MulOp::create(builder, target.loss, seed));
  addTo(module, builder, weightSum, target.weight);
  advanceSeed(module, builder);
  Outputs outputs;
  outputs.add("loss", target.loss);
  outputs.add("tokens", target.weight);
  setOutputs(function, outputs);
  return accumulated;
}

// Reads an accumulator and zeroes it.
static Value take(ModuleOp module, ImplicitLocOpBuilder &builder, StringRef name) {
  RankedTensorType type = module.lookupSymbol<VariableOp>(name).getTensorType();
  return ReadOp::create(builder, type, name);
}
static void clear(ModuleOp module, ImplicitLocOpBuilder &builder, StringRef name) {
  WriteOp::create(builder, name, splat(builder, module.lookupSymbol<VariableOp>(name).getTensorType(), 0));
}

static void buildApply(ModuleOp module, Location loc, ArrayRef<VariableOp> accumulated, const OptimizerRecipe &recipe) {
  OpBuilder anchor(module.getBodyRegion());
  anchor.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(anchor, loc, "apply", anchor.getFunctionType({}, {}));
  Block *body = function.addEntryBlock();
  ImplicitLocOpBuilder builder(loc, anchor);
  builder.setInsertionPointToStart(body);
  Value learningRate = addScalarInput(function, "lr");
  Value weight = take(module, builder, weightSum), loss = take(module, builder, lossSum);
  Value one = splat(builder, weight.getType(), 1);
  Value positive = compare(builder, CompareDirection::GT, weight, splat(builder, weight.getType(), 0));
  Value divisor = SelectOp::create(builder, positive, weight, one);
  SmallVector<ParameterGradient> parameters;
  for (VariableOp variable : accumulated) {
    Value sum = take(module, builder, (variable.getSymName() + ".grad").str());
    RankedTensorType type = tensorType(sum);
    Value spread = broadcast(builder, convert(builder, divisor, type.getElementType()), {}, type.getShape());
    Value value = ReadOp::create(builder, type, variable.getSymName());
    parameters.push_back({variable, value, DivOp::create(builder, sum, spread)});
  }
  Outputs outputs;
  outputs.add("loss", DivOp::create(builder, loss, convert(builder, divisor, tensorType(loss).getElementType())));
  outputs.add("tokens", weight);
  emitUpdates(module, builder, recipe, parameters, learningRate, weight, outputs);
  for (VariableOp variable : accumulated)
    clear(module, builder, (variable.getSymName() + ".grad").str());
  clear(module, builder, lossSum);
  clear(module, builder, weightSum);
  func::ReturnOp::create(builder);
  setOutputs(function, outputs);
}

static LogicalResult buildEvaluation(func::FuncOp forward, unsigned loss, unsigned weight) {
  if (failed(toEvalMode(forward)))
    return failure();
  unifyState(forward); // after the writes went: evaluation reads the state as it is
  func::FuncOp evaluation = cloneAs(forward, "eval_step");
  LossAndWeight target = lossAndWeight(evaluation, loss, weight);
  Outputs losses, others;
  losses.add("loss", target.loss);
  losses.add("tokens", target.weight);
  for (auto [index, value] : llvm::enumerate(returnOf(forward).getOperands())) {
    if (index == loss || index == weight)
      continue;
    auto name = forward.getResultAttrOfType<StringAttr>(index, "graph.name");
    others.add(name ? name.getValue().str() : "output" + std::to_string(index), value);
  }
  setOutputs(evaluation, losses);
  if (others.values.empty())
    forward.erase();
  else
    setOutputs(forward, others);
  return success();
}

static func::FuncOp cloneForTraining(func::FuncOp forward, StringRef name) {
  func::FuncOp step = cloneAs(forward, name);
  unifyState(step);
  return step;
}

// Names this compiler is going to use must be free: a parameter called like another's optimizer slot would silently
// become it.
static LogicalResult checkNames(ModuleOp module, func::FuncOp forward, const OptimizerRecipe &recipe) {
  SmallVector<std::string> wanted{"optimizer.step"};
  SmallVector<StringRef> slots;
  if (recipe.kind == "sgd") {
    slots.push_back(".momentum");
  } else {
    slots.append({".exp_avg", ".exp_avg_sq"});
    wanted.append({"optimizer.beta1_power", "optimizer.beta2_power"});
  }
  if (recipe.accumulation > 1) {
    slots.push_back(".grad");
    wanted.append({"accumulate.loss", "accumulate.weight"});
  }
  for (auto variable : module.getOps<VariableOp>())
    if (variable.getKind() == VariableKind::Parameter && variable.getTrainable())
      for (StringRef slot : slots)
        wanted.push_back((variable.getSymName() + slot).str());
  bool fine = true;
  for (const std::string &name : wanted)
    if (auto taken = module.lookupSymbol<VariableOp>(name)) {
      taken.emitOpError("has a name the optimizer needs for its own state; rename it in the model");
      fine = false;
    }
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    if (auto name = forward.getArgAttrOfType<StringAttr>(i, "graph.name"); name && name.getValue() == "lr") {
      forward.emitError("input 'lr' has the name of the learning rate's input; rename it in the model");
      fine = false;
    }
  return success(fine);
}

static LogicalResult buildUpdates(func::FuncOp forward, unsigned loss, unsigned weight, const OptimizerRecipe &recipe) {
  if (recipe.accumulation <= 1) {
    func::FuncOp step = cloneForTraining(forward, "train_step");
    return buildTrainStep(step, lossAndWeight(step, loss, weight), recipe);
  }
  func::FuncOp step = cloneForTraining(forward, "accumulate");
  FailureOr<SmallVector<VariableOp>> accumulated = buildAccumulate(step, lossAndWeight(step, loss, weight));
  if (failed(accumulated))
    return failure();
  buildApply(forward->getParentOfType<ModuleOp>(), forward.getLoc(), *accumulated, recipe);
  return success();
}

LogicalResult plimsoll::buildTrainingStep(ModuleOp module, const OptimizerRecipe &recipe) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!forward || !forward.getBody().hasOneBlock())
    return module.emitError("expected one function @forward with one block");
  std::optional<unsigned> loss = resultWithRole(forward, "loss"), weight = resultWithRole(forward, "weight");
  if (!loss || !weight)
    return forward.emitError("expected results with graph.role \"loss\" and \"weight\"");
  if (failed(checkNames(module, forward, recipe)))
    return failure();
  if (recipe.gradientsEntry) {
    func::FuncOp step = cloneForTraining(forward, "gradients");
    if (failed(buildGradients(step, lossAndWeight(step, *loss, *weight))))
      return failure();
  }
  if (failed(buildUpdates(forward, *loss, *weight, recipe)))
    return failure();
  return buildEvaluation(forward, *loss, *weight);
}

namespace {
struct TrainingStep : public plimsoll::impl::PlimsollTrainingStepBase<TrainingStep> {
  using PlimsollTrainingStepBase::PlimsollTrainingStepBase;
  void runOnOperation() override {
    OptimizerRecipe recipe;
    recipe.kind = optimizer;
    recipe.momentum = momentum;
    recipe.nesterov = nesterov;
    recipe.weightDecay = weightDecay;
    recipe.clipNorm = clipNorm;
    recipe.accumulation = accumulation;
    recipe.noDecay.assign(noDecay.begin(), noDecay.end());
    if (failed(buildTrainingStep(getOperation(), recipe)))
      signalPassFailure();
  }
};
} // namespace
