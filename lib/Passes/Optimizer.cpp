// Optimizer updates as graph ops, in PyTorch's order of operations (torch/optim/{sgd,adam,adamw}.py, read for the
// formulas):
//   sgd    g += wd*p; buf = momentum*buf + g; p -= lr*(nesterov ? g + momentum*buf : buf)
//   adam   g += wd*p; m += (1-b1)*(g-m); v = b2*v + (1-b2)*g*g; p -= lr/(1-b1^t) * m / (sqrt(v)/sqrt(1-b2^t) + eps)
//   adamw  p *= 1 - lr*wd first, then adam without wd
// The powers b^t are state in f64: 1-b2^t from an f32 power would lose 5 digits at t = 1.
#include "lib/Passes/Optimizer.h"

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

VariableOp plimsoll::ensureVariable(ModuleOp module, StringRef name, RankedTensorType type, VariableKind kind,
                                    double fill, StringRef owner) {
  if (auto existing = module.lookupSymbol<VariableOp>(name))
    return existing;
  OpBuilder builder(module.getContext());
  Operation *last = nullptr;
  for (auto variable : module.getOps<VariableOp>())
    last = variable;
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(module.getBody());
  auto variable = VariableOp::create(builder, module.getLoc(), name, type, kind);
  variable.setTrainable(false);
  variable.setFillAttr(builder.getF64FloatAttr(fill));
  if (!owner.empty())
    variable.setOwner(owner);
  return variable;
}

OptimizerBuilder::OptimizerBuilder(ModuleOp owner, ImplicitLocOpBuilder &inserter, const OptimizerRecipe &chosen,
                                   Value rate, Value guard)
    : module(owner), builder(inserter), recipe(chosen), learningRate(rate), proceed(guard) {
  auto counterType = RankedTensorType::get({}, builder.getI64Type());
  ensureVariable(module, "optimizer.step", counterType, VariableKind::StepState, 0);
  Value count = ReadOp::create(builder, counterType, "optimizer.step");
  write("optimizer.step", AddOp::create(builder, count, splat(builder, counterType, 1)), count);
  if (recipe.kind == "sgd")
    return;
  Value first = biasCorrection("optimizer.beta1_power", recipe.beta1);
  Value second = biasCorrection("optimizer.beta2_power", recipe.beta2);
  Value rate64 = convert(builder, learningRate, builder.getF64Type());
  stepSize = convert(builder, DivOp::create(builder, rate64, first), builder.getF32Type());
  secondCorrectionRoot = convert(builder, SqrtOp::create(builder, second), builder.getF32Type());
}

Value OptimizerBuilder::biasCorrection(StringRef name, double beta) {
  auto type = RankedTensorType::get({}, builder.getF64Type());
  ensureVariable(module, name, type, VariableKind::StepState, 1.0);
  Value power = ReadOp::create(builder, type, name);
  Value next = MulOp::create(builder, power, splat(builder, type, beta));
  write(name, next, power);
  return SubOp::create(builder, splat(builder, type, 1.0), next);
}

Value OptimizerBuilder::scaled(Value tensor, double factor) {
  return MulOp::create(builder, tensor, splat(builder, tensor.getType(), factor));
}

Value OptimizerBuilder::spread(Value scalar, Type like) {
  auto type = cast<RankedTensorType>(like);
  return broadcast(builder, convert(builder, scalar, type.getElementType()), {}, type.getShape());
}

Value OptimizerBuilder::slot(VariableOp parameter, StringRef name) {
  std::string symbol = (parameter.getSymName() + "." + name).str();
  ensureVariable(module, symbol, parameter.getTensorType(), VariableKind::OptimizerState, 0, parameter.getSymName());
  return ReadOp::create(builder, parameter.getTensorType(), symbol);
}

void OptimizerBuilder::write(StringRef variable, Value fresh, Value old) {
  if (proceed) {
    auto mask = RankedTensorType::get(tensorType(fresh).getShape(), builder.getI1Type());
    fresh = SelectOp::create(builder, spread(proceed, mask), fresh, old);
  }
  WriteOp::create(builder, variable, fresh);
}

bool OptimizerBuilder::decays(VariableOp parameter) const {
  return recipe.weightDecay != 0 && llvm::none_of(recipe.noDecay, [&](const std::string &pattern) {
           return matchesGlob(pattern, parameter.getSymName());
         });
}

Value OptimizerBuilder::sgd(VariableOp parameter, Value value, Value gradient) {
  if (decays(parameter))
    gradient = AddOp::create(builder, gradient, scaled(value, recipe.weightDecay));
  Value direction = gradient;
  if (recipe.momentum != 0) {
    Value old = slot(parameter, "momentum");
    Value buffer = AddOp::create(builder, scaled(old, recipe.momentum), gradient);
    write((parameter.getSymName() + ".momentum").str(), buffer, old);
    direction =
        recipe.nesterov ? AddOp::create(builder, gradient, scaled(buffer, recipe.momentum)).getResult() : buffer;
  }
  return SubOp::create(builder, value, MulOp::create(builder, spread(learningRate, value.getType()), direction));
}

Value OptimizerBuilder::adam(VariableOp parameter, Value value, Value gradient) {
  if (decays(parameter) && recipe.kind == "adam")
    gradient = AddOp::create(builder, gradient, scaled(value, recipe.weightDecay));
  if (decays(parameter) && recipe.kind == "adamw") {
    Value shrink = scaled(convert(builder, learningRate, builder.getF32Type()), recipe.weightDecay);
    Value keep = SubOp::create(builder, splat(builder, shrink.getType(), 1.0), shrink);
    value = MulOp::create(builder, value, spread(keep, value.getType()));
  }
  Value firstOld = slot(parameter, "exp_avg"), secondOld = slot(parameter, "exp_avg_sq");
  Value first = AddOp::create(builder, firstOld, scaled(SubOp::create(builder, gradient, firstOld), 1 - recipe.beta1));
  Value second = AddOp::create(builder, scaled(secondOld, recipe.beta2),
                               scaled(MulOp::create(builder, gradient, gradient), 1 - recipe.beta2));
  write((parameter.getSymName() + ".exp_avg").str(), first, firstOld);
  write((parameter.getSymName() + ".exp_avg_sq").str(), second, secondOld);
  Value root = DivOp::create(builder, SqrtOp::create(builder, second), spread(secondCorrectionRoot, value.getType()));
  Value denominator = AddOp::create(builder, root, splat(builder, value.getType(), recipe.epsilon));
  return SubOp::create(
      builder, value,
      MulOp::create(builder, spread(stepSize, value.getType()), DivOp::create(builder, first, denominator)));
}

void OptimizerBuilder::update(VariableOp parameter, Value value, Value gradient) {
  Value fresh = recipe.kind == "sgd" ? sgd(parameter, value, gradient) : adam(parameter, value, gradient);
  write(parameter.getSymName(), fresh, value);
}
