// The roofline and its table. Arithmetic counts come from CostOpInterface; what a flop costs depends on who runs it:
// the matrix library near the machine's peak, generated kernels by the kind of element operation.
#include "lib/Passes/CostModel.h"

#include "dialects/Graph/Graph.h"

#include <algorithm>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

TargetProfile plimsoll::cpuProfile() {
  TargetProfile cpu;
  cpu.dotFlops = 100e9;
  cpu.convFlops = 80e9;
  cpu.convInputGradFlops = 70e9;
  cpu.convWeightGradFlops = 60e9;
  cpu.groupedConvFlops = 8e9;
  cpu.attentionFlops = 50e9;
  cpu.attentionGradFlops = 50e9;
  cpu.scalarOps = 10e9;
  cpu.indexedElements = 0.5e9;
  cpu.threadBandwidth = 20e9;
  cpu.memoryBandwidth = 40e9;
  cpu.cacheBandwidth = 50e9;
  cpu.cacheBytes = uint64_t{16} << 20;
  cpu.launchSeconds = 2e-6;
  cpu.disk = {1e9, 1e9, 100e-6};
  return cpu;
}

CostModel::CostModel(const TargetProfile &profile, unsigned threadCount)
    : machine(profile), threads(std::max(1u, threadCount)) {}

// Speed of an element type relative to f32.
static double typeFactor(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  if (element.isF64())
    return 0.5;
  return element.isF16() || element.isBF16() ? 2 : 1;
}

// What an element operation costs, in simple ones.
static double scalarWeight(Operation *op) {
  if (op->hasTrait<GraphView>() || isa<ConstantOp, IotaOp, YieldOp>(op))
    return 0;
  if (isa<DivOp, ReciprocalOp, SqrtOp, RsqrtOp>(op))
    return 3;
  if (isa<ExpOp, LogOp, Log1pOp, SigmoidOp>(op))
    return 8;
  if (isa<TanhOp, ErfOp>(op))
    return 14;
  if (isa<PowOp, SinOp, CosOp>(op))
    return 25;
  return 1;
}

static double groupOps(GroupOp group) {
  double ops = 0;
  for (Operation &inner : group.getBody().front())
    if (auto costly = dyn_cast<CostOpInterface>(inner))
      ops += scalarWeight(&inner) * static_cast<double>(costly.cost().flops);
  return ops;
}

// The flops a second and thread at which a library operation of matrix kind runs, for f32; 0 for any other.
static double matrixFlops(const TargetProfile &machine, Operation *op) {
  auto groups = op->getAttrOfType<IntegerAttr>("groups");
  if (groups && groups.getInt() > 1)
    return machine.groupedConvFlops;
  if (isa<DotOp, DotAddOp>(op))
    return machine.dotFlops;
  if (isa<ConvOp>(op))
    return machine.convFlops;
  if (isa<ConvInputGradOp>(op))
    return machine.convInputGradFlops;
  if (isa<ConvWeightGradOp>(op))
    return machine.convWeightGradFlops;
  if (isa<AttentionOp>(op))
    return machine.attentionFlops;
  return isa<AttentionGradOp>(op) ? machine.attentionGradFlops : 0;
}

double CostModel::arithmeticSeconds(Operation *op) const {
  if (auto group = dyn_cast<GroupOp>(op))
    return groupOps(group) / machine.scalarOps;
  auto costly = dyn_cast<CostOpInterface>(op);
  if (!costly || isa<CopyOp>(op))
    return 0;
  auto flops = static_cast<double>(costly.cost().flops);
  if (double speed = matrixFlops(machine, op))
    return flops / (speed * typeFactor(op->getResult(0).getType()));
  return flops / machine.indexedElements;
}

double CostModel::seconds(const CommandWork &work) const {
  double fromMemory = std::min(machine.threadBandwidth * threads, machine.memoryBandwidth);
  double bandwidth = work.bytes <= machine.cacheBytes ? machine.cacheBandwidth * threads : fromMemory;
  return std::max(work.arithmeticSeconds / threads, static_cast<double>(work.bytes) / bandwidth) +
         machine.launchSeconds;
}

uint64_t plimsoll::windowBytes(RankedTensorType type, ArrayRef<int64_t> strides) {
  uint64_t bytes = std::max<uint64_t>(type.getElementTypeBitWidth() / 8, 1);
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
    if (stride != 0)
      bytes *= static_cast<uint64_t>(size);
  return bytes;
}
