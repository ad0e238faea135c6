// Builds the linear model's artifact: buffers, views and library calls.
#include "StepArtifact.h"

#include "runtime/Artifact/RuntimeBytes.h"
#include "runtime/Artifact/Types.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace plimsoll::test {

using namespace artifact;

namespace {

using Shape = std::vector<int64_t>;

// Variables and small buffers lie in the first KiB, the workspace behind them.
constexpr uint64_t workspaceOffset = 1024, workspaceBytes = 4 << 20, arenaBytes = workspaceOffset + workspaceBytes;

/// Builds one entry; buffers get consecutive cache lines after the persistent ones.
class EntryBuilder {
public:
  EntryBuilder(const char *name, uint32_t persistentBuffers) : persistent(persistentBuffers) { entry->name = name; }

  uint32_t buffer(const char *name, BufferClass klass, const Shape &shape, uint32_t first, uint32_t last) {
    auto made = std::make_unique<BufferT>();
    made->name = name;
    made->offset = offset;
    made->bytes = *byteCount(DType::F32, shape);
    made->klass = klass;
    made->first_command = first;
    made->last_command = last;
    made->source = std::string("/model/") + name;
    offset += 64;
    entry->buffers.push_back(std::move(made));
    return persistent + static_cast<uint32_t>(entry->buffers.size() - 1);
  }

  static std::unique_ptr<TensorViewT> view(uint32_t buffer, Shape shape, Shape strides = {}) {
    auto made = std::make_unique<TensorViewT>();
    made->buffer = buffer;
    made->strides = std::move(strides);
    if (made->strides.empty()) {
      made->strides.assign(shape.size(), 1);
      for (size_t i = shape.size(); i > 1; --i)
        made->strides[i - 2] = made->strides[i - 1] * shape[i - 1];
    }
    made->shape = std::move(shape);
    return made;
  }

  void port(bool isInput, const char *name, uint32_t buffer, Shape shape) {
    auto made = std::make_unique<PortT>();
    made->name = name;
    made->view = view(buffer, std::move(shape));
    (isInput ? entry->inputs : entry->outputs).push_back(std::move(made));
  }

  void dot(const char *label, std::unique_ptr<TensorViewT> a, std::unique_ptr<TensorViewT> b,
           std::unique_ptr<TensorViewT> c, bool accumulate = false) {
    LibraryCallT call;
    call.op = "dot";
    for (auto *operand : {&a, &b, &c}) {
      call.operands.push_back(std::make_unique<OperandT>());
      call.operands.back()->view = std::move(*operand);
    }
    call.operands[2]->access = accumulate ? Access::ReadWrite : Access::Write;
    call.attributes.push_back(std::make_unique<AttributeT>());
    call.attributes[0]->key = "accumulate";
    call.attributes[0]->ints = {accumulate};
    add(label, std::move(call));
  }

  void fill(const char *label, std::unique_ptr<TensorViewT> target, double value) {
    LibraryCallT call;
    call.op = "fill";
    call.operands.push_back(std::make_unique<OperandT>());
    call.operands[0]->view = std::move(target);
    call.operands[0]->access = Access::Write;
    call.attributes.push_back(std::make_unique<AttributeT>());
    call.attributes[0]->key = "value";
    call.attributes[0]->floats = {value};
    add(label, std::move(call));
  }

  /// One workspace for every call of the entry, live throughout; oneDNN asks for some even for small products.
  void workspace(uint32_t lastCommand) {
    auto made = std::make_unique<BufferT>();
    made->name = "workspace";
    made->offset = workspaceOffset;
    made->bytes = workspaceBytes;
    made->klass = BufferClass::Workspace;
    made->last_command = lastCommand;
    entry->buffers.push_back(std::move(made));
    auto index = persistent + static_cast<uint32_t>(entry->buffers.size() - 1);
    for (auto &command : entry->commands) {
      LibraryCallT &call = *command->body.AsLibraryCall();
      if (call.op != "dot")
        continue;
      call.workspace = static_cast<int32_t>(call.operands.size());
      call.operands.push_back(std::make_unique<OperandT>());
      call.operands.back()->view = view(index, {static_cast<int64_t>(workspaceBytes)});
      call.operands.back()->view->dtype = DType::U8;
      call.operands.back()->access = Access::Write;
    }
  }

  /// `live` bytes at command `peakCommand` without the workspace.
  std::unique_ptr<EntryT> finish(uint32_t peakCommand, uint64_t live) {
    workspace(static_cast<uint32_t>(entry->commands.size() - 1));
    entry->peak_bytes = arenaBytes;
    entry->peak_command = peakCommand;
    entry->live_bytes_at_peak = live + workspaceBytes;
    return std::move(entry);
  }

private:
  void add(const char *label, LibraryCallT call) {
    auto command = std::make_unique<CommandT>();
    command->label = label;
    command->body.Set(std::move(call));
    entry->commands.push_back(std::move(command));
  }

  std::unique_ptr<EntryT> entry = std::make_unique<EntryT>();
  uint32_t persistent;
  uint64_t offset = 128; // after w and seed
};

constexpr uint32_t W = 0, persistentCount = 2;

/// y = x w and, when asked for, loss = y^T y; commands 0 and 1.
std::unique_ptr<EntryT> plainEntry(const char *name, bool withLoss) {
  EntryBuilder build(name, persistentCount);
  uint32_t x = build.buffer("x", BufferClass::Input, {2, 3}, 0, 0);
  uint32_t y = build.buffer("y", withLoss ? BufferClass::Activation : BufferClass::Output, {2, 1}, 0, withLoss ? 1 : 0);
  build.port(true, "x", x, {2, 3});
  build.dot("y = x w", build.view(x, {2, 3}), build.view(W, {3, 1}), build.view(y, {2, 1}));
  if (!withLoss) {
    build.port(false, "y", y, {2, 1});
    return build.finish(0, 12 + 16 + 24 + 8);
  }
  uint32_t loss = build.buffer("loss", BufferClass::Output, {}, 1, 1);
  build.dot("loss = y y", build.view(y, {1, 2}), build.view(y, {2, 1}), build.view(loss, {1, 1}));
  build.port(false, "loss", loss, {});
  return build.finish(0, 12 + 16 + 24 + 8);
}

std::unique_ptr<EntryT> trainEntry() {
  EntryBuilder build("train_step", persistentCount);
  uint32_t x = build.buffer("x", BufferClass::Input, {2, 3}, 0, 5);
  uint32_t lr = build.buffer("lr", BufferClass::Input, {}, 0, 4);
  uint32_t y = build.buffer("y", BufferClass::Activation, {2, 1}, 0, 3);
  uint32_t loss = build.buffer("loss", BufferClass::Output, {}, 1, 5);
  uint32_t c = build.buffer("c", BufferClass::Gradient, {}, 2, 3);
  uint32_t negative = build.buffer("yc", BufferClass::Gradient, {2, 1}, 3, 4);
  uint32_t z = build.buffer("z", BufferClass::Gradient, {2, 1}, 4, 5);
  build.port(true, "x", x, {2, 3});
  build.port(true, "lr", lr, {});
  build.port(false, "loss", loss, {});
  build.dot("y = x w", build.view(x, {2, 3}), build.view(W, {3, 1}), build.view(y, {2, 1}));
  build.dot("loss = y y", build.view(y, {1, 2}), build.view(y, {2, 1}), build.view(loss, {1, 1}));
  build.fill("c = -1", build.view(c, {1, 1}), -1.0);
  build.dot("yc = y c", build.view(y, {2, 1}), build.view(c, {1, 1}), build.view(negative, {2, 1}));
  build.dot("z = yc lr", build.view(negative, {2, 1}), build.view(lr, {1, 1}), build.view(z, {2, 1}));
  build.dot("w += x z", build.view(x, {3, 2}, {1, 3}), build.view(z, {2, 1}), build.view(W, {3, 1}), true);
  // Live at command 3: w 12, seed 16, x 24, lr 4, y 8, loss 4, c 4, yc 8.
  return build.finish(3, 80);
}

void addVariable(ArtifactT &artifact, const char *name, VariableKind kind, DType dtype, Shape shape, double fill) {
  auto variable = std::make_unique<VariableT>();
  variable->name = name;
  variable->kind = kind;
  variable->dtype = dtype;
  variable->shape = shape;
  variable->trainable = kind == VariableKind::Parameter;
  variable->init = fill != 0 ? InitKind::Fill : InitKind::Zeros;
  variable->fill = fill;
  SealedPlanT &plan = *artifact.plans[0];
  auto buffer = std::make_unique<BufferT>();
  buffer->name = name;
  buffer->offset = 64 * plan.buffers.size();
  buffer->bytes = *byteCount(dtype, shape);
  buffer->klass = kind == VariableKind::Parameter ? BufferClass::Parameter : BufferClass::StepState;
  plan.buffers.push_back(std::move(buffer));
  artifact.variables.push_back(std::move(variable));
}

} // namespace

ArtifactT stepArtifact(const StepArtifactOptions &options) {
  ArtifactT artifact;
  artifact.format_version = kFormatVersion;
  artifact.target = std::make_unique<TargetT>();
  artifact.target->kind = "cpu";
  artifact.target->cpu = "x86-64";
  artifact.target->threads = 1;
  artifact.provenance = std::make_unique<ProvenanceT>();
  artifact.provenance->compiler = "test";
  artifact.provenance->model_name = "linear";
  artifact.provenance->model_hash = "0123456789abcdef";
  artifact.plans.push_back(std::make_unique<SealedPlanT>());
  addVariable(artifact, "w", VariableKind::Parameter, DType::F32, {3, 1}, 1.0);
  addVariable(artifact, "seed", VariableKind::StepState, DType::I64, {2}, 0.0);
  SealedPlanT &plan = *artifact.plans[0];
  plan.name = "only";
  plan.arenas.push_back(std::make_unique<ArenaT>());
  plan.arenas[0]->bytes = arenaBytes;
  plan.arenas[0]->alignment = 64;
  plan.entries.push_back(trainEntry());
  plan.entries.push_back(plainEntry("eval_step", true));
  plan.entries.push_back(plainEntry("forward", false));
  plan.memory = std::make_unique<MemoryT>();
  plan.memory->arena_bytes = arenaBytes;
  plan.memory->staging_bytes = options.stagingBytes;
  plan.memory->runtime_bytes = runtimeBytes(plan);
  plan.memory->training_bytes = arenaBytes + options.stagingBytes + plan.memory->runtime_bytes;
  plan.memory->process_constant_bytes = options.processConstantBytes;
  return artifact;
}

} // namespace plimsoll::test
