// The tiny artifact and small file helpers of the runtime tests.
#include "test/unit/Runtime/TinyArtifact.h"

#include "runtime/Artifact/RuntimeBytes.h"
#include "runtime/Artifact/Types.h"
#include "runtime/Proof/ProofText.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <sys/resource.h>

namespace plimsoll::test {

using namespace artifact;

std::vector<int64_t> denseStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i)
    strides[i - 2] = strides[i - 1] * shape[i - 1];
  return strides;
}

std::unique_ptr<TensorViewT> makeView(uint32_t buffer, DType dtype, std::vector<int64_t> shape) {
  auto view = std::make_unique<TensorViewT>();
  view->buffer = buffer;
  view->dtype = dtype;
  view->strides = denseStrides(shape);
  view->shape = std::move(shape);
  return view;
}

static std::unique_ptr<OperandT> operand(uint32_t buffer, Access access, std::vector<int64_t> shape = {4},
                                         DType dtype = DType::F32) {
  auto result = std::make_unique<OperandT>();
  result->view = makeView(buffer, dtype, std::move(shape));
  result->access = access;
  return result;
}

static std::unique_ptr<BufferT> buffer(const char *name, uint32_t arena, uint64_t offset, uint64_t bytes,
                                       BufferClass klass, uint32_t first = 0, uint32_t last = 0) {
  auto result = std::make_unique<BufferT>();
  result->name = name;
  result->arena = arena;
  result->offset = offset;
  result->bytes = bytes;
  result->klass = klass;
  result->first_command = first;
  result->last_command = last;
  return result;
}

static std::unique_ptr<VariableT> variable(const char *name, VariableKind kind, DType dtype, int64_t size,
                                           InitKind init, double fill) {
  auto result = std::make_unique<VariableT>();
  result->name = name;
  result->kind = kind;
  result->dtype = dtype;
  result->shape = {size};
  result->init = init;
  result->fill = fill;
  return result;
}

template <typename Body> static void add(EntryT &entry, const char *label, Body body, uint16_t stream = 0) {
  auto command = std::make_unique<CommandT>();
  command->label = label;
  command->stream = stream;
  command->body.Set(std::move(body));
  entry.commands.push_back(std::move(command));
}

template <typename... Operands> static LaunchT launch(uint32_t kernel, Operands... operands) {
  LaunchT result;
  result.kernel = kernel;
  result.extent = 4;
  result.grain = 1;
  (result.operands.push_back(std::move(operands)), ...);
  return result;
}

template <typename... Operands> static LibraryCallT call(const char *op, int workspace, Operands... operands) {
  LibraryCallT result;
  result.op = op;
  result.workspace = workspace;
  (result.operands.push_back(std::move(operands)), ...);
  return result;
}

static std::unique_ptr<PortT> port(const char *name, uint32_t bufferIndex, std::vector<int64_t> shape) {
  auto result = std::make_unique<PortT>();
  result->name = name;
  result->view = makeView(bufferIndex, DType::F32, std::move(shape));
  return result;
}

static RecordEventT record(uint32_t event) {
  RecordEventT result;
  result.event = event;
  return result;
}

static WaitEventT wait(uint32_t event) {
  WaitEventT result;
  result.event = event;
  return result;
}

const char *tinyProblem() {
  return R"(plimsoll-problem 1
alignment 64
storage "w" bytes 16 class parameter persistent source "layer.w"
storage "m" bytes 16 class optimizer_state persistent
storage "seed" bytes 16 class step_state persistent
storage "two" bytes 16 class constant persistent
storage "x" bytes 16 class input
storage "lr" bytes 4 class input
storage "h" bytes 16 class activation source "/mul"
storage "t" bytes 16 class activation
storage "t2" bytes 16 class activation source "/add"
storage "loss" bytes 4 class output
step "0.kernel_mul" read %4 read %0 write %6 cost 1e-06
step "1.copy" read %6 write %7 cost 1e-06
step "2.kernel_add" read %7 read %3 write %8 inplace %7 %8 cost 2e-06
step "3.sum" read %8 write %9 workspace 128 cost 1e-06
step "4.kernel_sgd" readwrite %0 readwrite %1 read %8 read %5 cost 3e-06
input %4
input %5
output %9
)";
}

static std::unique_ptr<ExtraTimeBoundT> counted() {
  auto bound = std::make_unique<ExtraTimeBoundT>();
  bound->proof = BoundProof::Counting;
  return bound;
}

static std::unique_ptr<ExplanationT> explanation(const char *storage, Fate fate, uint32_t lastReader,
                                                 const char *label) {
  auto result = std::make_unique<ExplanationT>();
  result->storage = storage;
  result->fate = fate;
  result->bytes = 64;
  result->last_reader = lastReader;
  result->last_reader_label = label;
  result->recompute_seconds = std::numeric_limits<double>::infinity();
  result->transfer_seconds = 1e-6;
  result->reason = std::string("why ") + storage + " is there";
  return result;
}

static std::unique_ptr<CurvePointT> curvePoint(uint64_t budget, uint64_t bytes, double extraSeconds) {
  auto point = std::make_unique<CurvePointT>();
  point->budget_bytes = budget;
  point->arena_bytes = bytes;
  point->extra_seconds = extraSeconds;
  point->bound = counted();
  return point;
}

static std::unique_ptr<PlanProofT> trainProof() {
  constexpr uint32_t moved = UINT32_MAX;
  auto proof = std::make_unique<PlanProofT>();
  proof->problem = std::move(*packText(tinyProblem()));
  proof->steps = {0, 1, 2, moved, moved, 3, 4};
  proof->budget_bytes = 4096;
  proof->host_budget_bytes = 64;
  proof->keep_all_bytes = 768;
  proof->keep_all_seconds = 8e-6;
  proof->seconds = 9e-6;
  proof->stall_seconds = 1e-6;
  proof->peak_floor_bytes = 256; // the step of sum: t2, loss and 128 bytes of workspace
  proof->bound = counted();
  proof->explanations.push_back(explanation("w", Fate::Resident, 4, "4.kernel_sgd"));
  proof->explanations.push_back(explanation("h", Fate::Kept, 1, "1.copy"));
  proof->explanations.back()->source = "/mul";
  proof->explanations.back()->recompute_seconds = 1e-6;
  proof->explanations.push_back(explanation("t2", Fate::Offloaded, 4, "4.kernel_sgd"));
  proof->explanations.back()->transfers = 1;
  proof->curve.push_back(curvePoint(1024, 768, 0));
  proof->curve.push_back(curvePoint(704, 704, 1e-6));
  return proof;
}

static std::unique_ptr<EntryT> trainStep() {
  constexpr Access R = Access::Read, Wr = Access::Write, RW = Access::ReadWrite;
  auto entry = std::make_unique<EntryT>();
  entry->name = "train_step";
  entry->streams = 2;
  entry->events = 2;
  entry->buffers.push_back(buffer("x", 0, 256, 16, BufferClass::Input, 0, 0));
  entry->buffers.push_back(buffer("lr", 0, 320, 4, BufferClass::Input, 0, 9));
  entry->buffers.push_back(buffer("h", 0, 384, 16, BufferClass::Activation, 0, 1));
  entry->buffers.push_back(buffer("t", 0, 448, 16, BufferClass::Activation, 1, 2));
  entry->buffers.push_back(buffer("t2", 0, 448, 16, BufferClass::Activation, 2, 9));
  entry->buffers.push_back(buffer("loss", 0, 512, 4, BufferClass::Output, 8, 9));
  entry->buffers.push_back(buffer("scratch", 0, 576, 128, BufferClass::Workspace, 8, 8));
  entry->buffers.push_back(buffer("kept", 1, 0, 16, BufferClass::Activation, 5, 8));
  entry->inputs.push_back(port("x", X, {4}));
  entry->inputs.push_back(port("lr", Lr, {}));
  entry->outputs.push_back(port("loss", Loss, {}));
  add(*entry, "mul", launch(0, operand(X, R), operand(W, R), operand(H, Wr)));
  add(*entry, "copy h", call("copy", -1, operand(H, R), operand(T, Wr)));
  add(*entry, "add two", launch(1, operand(T, R), operand(Two, R), operand(T2, Wr)));
  add(*entry, "ready", record(0));
  add(*entry, "await", wait(0), 1);
  CopyT copy;
  copy.source = makeView(T2, DType::F32, {4});
  copy.target = makeView(Kept, DType::F32, {4});
  add(*entry, "offload t2", std::move(copy), 1);
  add(*entry, "offloaded", record(1), 1);
  add(*entry, "await copy", wait(1));
  add(*entry, "loss", call("sum", 2, operand(Kept, R), operand(Loss, Wr, {}), operand(Scratch, Wr, {128}, DType::U8)));
  add(*entry, "sgd", launch(2, operand(W, RW), operand(M, RW), operand(T2, R), operand(Lr, R, {})));
  entry->peak_bytes = 704;
  entry->peak_command = 8;
  entry->live_bytes_at_peak = 64 + 4 + 16 + 4 + 128;
  entry->proof = trainProof();
  return entry;
}

static std::unique_ptr<EntryT> evalStep() {
  auto entry = std::make_unique<EntryT>();
  entry->name = "eval_step";
  entry->buffers.push_back(buffer("x", 0, 256, 16, BufferClass::Input, 0, 0));
  entry->buffers.push_back(buffer("y", 0, 320, 16, BufferClass::Output, 0, 0));
  entry->inputs.push_back(port("x", 4, {4}));
  entry->outputs.push_back(port("y", 5, {4}));
  add(*entry, "mul", launch(0, operand(4, Access::Read), operand(W, Access::Read), operand(5, Access::Write)));
  entry->peak_bytes = 336;
  entry->live_bytes_at_peak = 96;
  return entry;
}

static std::unique_ptr<ArenaT> arena(Tier tier, uint64_t bytes) {
  auto result = std::make_unique<ArenaT>();
  result->tier = tier;
  result->bytes = bytes;
  result->alignment = 64;
  return result;
}

static std::unique_ptr<SealedPlanT> tinyPlan() {
  auto plan = std::make_unique<SealedPlanT>();
  plan->name = "only";
  plan->dim_names = {"batch"};
  plan->dim_values = {4};
  plan->budget_bytes = 4096;
  plan->arenas.push_back(arena(Tier::Device, 1024));
  plan->arenas.push_back(arena(Tier::Host, 64));
  plan->buffers.push_back(buffer("w", 0, 0, 16, BufferClass::Parameter));
  plan->buffers.push_back(buffer("m", 0, 64, 16, BufferClass::OptimizerState));
  plan->buffers.push_back(buffer("seed", 0, 128, 16, BufferClass::StepState));
  plan->buffers.push_back(buffer("two", 0, 192, 16, BufferClass::Constant));
  plan->entries.push_back(trainStep());
  plan->entries.push_back(evalStep());
  plan->memory = std::make_unique<MemoryT>();
  plan->memory->arena_bytes = 1024 + 64;
  plan->memory->runtime_bytes = runtimeBytes(*plan);
  plan->memory->training_bytes = plan->memory->arena_bytes + plan->memory->runtime_bytes;
  plan->memory->process_constant_bytes = uint64_t{64} << 20;
  return plan;
}

static void addKernels(ArtifactT &artifact) {
  artifact.modules.push_back(std::make_unique<KernelModuleT>());
  artifact.modules[0]->format = "cpu-elf";
  artifact.modules[0]->target = "x86-64";
  artifact.modules[0]->data = {1, 2, 3, 4};
  for (const char *name : {"mul", "add", "sgd"}) {
    artifact.kernels.push_back(std::make_unique<KernelT>());
    artifact.kernels.back()->symbol = std::string("kernel_") + name;
    artifact.kernels.back()->name = name;
  }
}

ArtifactT tinyArtifact() {
  ArtifactT artifact;
  artifact.format_version = kFormatVersion;
  artifact.target = std::make_unique<TargetT>();
  artifact.target->kind = "cpu";
  artifact.target->cpu = "x86-64";
  artifact.target->threads = 2;
  artifact.provenance = std::make_unique<ProvenanceT>();
  artifact.provenance->compiler = "test";
  artifact.provenance->model_name = "tiny";
  artifact.weights_file = "tiny.safetensors";
  artifact.variables.push_back(variable("w", VariableKind::Parameter, DType::F32, 4, InitKind::File, 0));
  artifact.variables[0]->init_key = "layer.w";
  artifact.variables[0]->aliases = {"tied.w"};
  artifact.variables[0]->trainable = true;
  artifact.variables.push_back(variable("m", VariableKind::OptimizerState, DType::F32, 4, InitKind::Zeros, 0));
  artifact.variables[1]->owner = "w";
  artifact.variables.push_back(variable("seed", VariableKind::StepState, DType::I64, 2, InitKind::Fill, 7));
  artifact.variables.push_back(variable("two", VariableKind::Constant, DType::F32, 4, InitKind::Fill, 2));
  addKernels(artifact);
  artifact.plans.push_back(tinyPlan());
  return artifact;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "plimsoll-test-XXXXXX").string();
  if (!mkdtemp(pattern.data()))
    abort();
  folder = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

std::string slurp(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return "<missing>";
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void spill(const std::string &path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

FileSizeLimit::FileSizeLimit(uint64_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  previous = limit.rlim_cur;
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

FileSizeLimit::~FileSizeLimit() {
  rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = previous;
  setrlimit(RLIMIT_FSIZE, &limit);
}

} // namespace plimsoll::test
