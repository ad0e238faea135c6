// The roofline and its table. Arithmetic counts come from CostOpInterface; what a flop costs depends on who runs it:
// the matrix library near the machine's peak, generated kernels by the kind of element operation.
#include "lib/Passes/CostModel.h"

#include "dialects/Graph/Graph.h"
#include "plimsoll/Support/Units.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

// Measured in December 2026 with bench/cost_accuracy.py on two cores of an AMD EPYC with AVX-512 (oneDNN 2.6, 2
// threads, nothing else running) over the training steps of GPT-2 124M, BERT-base, ResNet-50, DenseNet-121, MobileNetV2
// and a U-Net. Library speeds are totals over all calls of a kind; the others fit the generated kernels best. Machines
// differ by a factor of two and more; the plan only sees how the numbers compare with one another.
TargetProfile plimsoll::cpuProfile() {
  TargetProfile cpu;
  cpu.dotFlops = 235e9;            // 235 (BERT) to 238 (GPT-2)
  cpu.convFlops = 215e9;           // 188 (ResNet-50) to 241 (U-Net)
  cpu.convInputGradFlops = 215e9;  // 192 to 236
  cpu.convWeightGradFlops = 195e9; // 178 to 212
  cpu.groupedConvFlops = 18e9;     // MobileNetV2's depthwise convolutions: 6 to 58
  cpu.attentionFlops = 170e9;      // BERT 168
  cpu.attentionGradFlops = 135e9;  // BERT 139
  cpu.scalarOps = 45e9;            // kernels of much arithmetic: 36 to 51
  cpu.indexedElements = 1e9;       // pools 0.8 to 1.3
  cpu.threadBandwidth = 30e9;      // kernels of little arithmetic above the cache size: 25 to 35 of one thread,
  cpu.memoryBandwidth = 52e9;      // 39 to 65 of two
  cpu.cacheBandwidth = 50e9;       // below it: 40 to 80
  cpu.cacheBytes = 16 << 20;
  cpu.launchSeconds = 0.7e-6;    // the smallest kernels: 0.5 to 1.4
  cpu.disk = {1e9, 1e9, 100e-6}; // direct writes 2.8, direct reads 1.8, writes with fdatasync 0.4 GB/s: the middle
  return cpu;
}

namespace {
/// A number of the profile by the name users write.
struct ProfileNumber {
  const char *key;
  double *(*place)(TargetProfile &);
};
} // namespace

static constexpr ProfileNumber profileNumbers[] = {
    {"dot_flops", [](TargetProfile &p) { return &p.dotFlops; }},
    {"conv_flops", [](TargetProfile &p) { return &p.convFlops; }},
    {"conv_input_grad_flops", [](TargetProfile &p) { return &p.convInputGradFlops; }},
    {"conv_weight_grad_flops", [](TargetProfile &p) { return &p.convWeightGradFlops; }},
    {"grouped_conv_flops", [](TargetProfile &p) { return &p.groupedConvFlops; }},
    {"attention_flops", [](TargetProfile &p) { return &p.attentionFlops; }},
    {"attention_grad_flops", [](TargetProfile &p) { return &p.attentionGradFlops; }},
    {"scalar_ops", [](TargetProfile &p) { return &p.scalarOps; }},
    {"indexed_elements", [](TargetProfile &p) { return &p.indexedElements; }},
    {"thread_bandwidth", [](TargetProfile &p) { return &p.threadBandwidth; }},
    {"memory_bandwidth", [](TargetProfile &p) { return &p.memoryBandwidth; }},
    {"cache_bandwidth", [](TargetProfile &p) { return &p.cacheBandwidth; }},
    {"cache_bytes", [](TargetProfile &p) { return &p.cacheBytes; }},
    {"launch_seconds", [](TargetProfile &p) { return &p.launchSeconds; }},
    {"disk_write_bandwidth", [](TargetProfile &p) { return &p.disk.outBytesPerSecond; }},
    {"disk_read_bandwidth", [](TargetProfile &p) { return &p.disk.inBytesPerSecond; }},
    {"disk_latency_seconds", [](TargetProfile &p) { return &p.disk.latencySeconds; }},
};

Status plimsoll::setProfileNumber(TargetProfile &profile, llvm::StringRef key, double value) {
  std::string known;
  for (const ProfileNumber &number : profileNumbers) {
    if (key != number.key) {
      known += (known.empty() ? "" : ", ") + std::string(number.key);
      continue;
    }
    if (!(value > 0) || !std::isfinite(value))
      return {ExitCode::Usage, "machine number '" + key.str() + "' must be positive and finite"};
    *number.place(profile) = value;
    return Status::ok();
  }
  return {ExitCode::Usage, "unknown machine number '" + key.str() + "'; known: " + known};
}

std::optional<double> plimsoll::parseProfileNumber(llvm::StringRef text) {
  double value = 0;
  if (!text.getAsDouble(value))
    return value;
  text.consume_back("/s");
  std::optional<uint64_t> bytes = parseBytes(std::string_view(text.data(), text.size()));
  return bytes ? std::optional<double>(static_cast<double>(*bytes)) : std::nullopt;
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
  double bandwidth =
      static_cast<double>(work.bytes) <= machine.cacheBytes ? machine.cacheBandwidth * threads : fromMemory;
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
