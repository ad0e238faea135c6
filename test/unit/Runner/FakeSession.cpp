// The fake session's artifact and its rule of evolution.
#include "FakeSession.h"

#include "runtime/Artifact/Types.h"
#include "runtime/Data/Shuffle.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace plimsoll::runtime {

using artifact::DType;
using artifact::VariableKind;

FakeSession::FakeSession(FakeOptions fakeOptions) : options(std::move(fakeOptions)) {
  description.provenance = std::make_unique<artifact::ProvenanceT>();
  description.provenance->model_hash = options.modelHash;
  description.provenance->recipe_hash = "bbbb";
  description.provenance->recipe_json = "{\"accumulation\": " + std::to_string(options.accumulation) + "}";
  description.plans.push_back(std::make_unique<artifact::SealedPlanT>());
  auto memory = std::make_unique<artifact::MemoryT>();
  memory->training_bytes = options.promisedTraining;
  memory->process_constant_bytes = options.promisedConstant;
  description.plans[0]->memory = std::move(memory);
  addVariable("w", VariableKind::Parameter, DType::F32, options.weightShape);
  description.variables[0]->aliases = {"tied"};
  addVariable("w.m", VariableKind::OptimizerState, DType::F32, {4});
  addVariable("bn.mean", VariableKind::ModelState, DType::F32, {4});
  addVariable("seed", VariableKind::StepState, DType::I64, {2});
  addVariable("w.sum", VariableKind::GradientAccumulator, DType::F32, {4}, false);
  if (options.extraVariable)
    addVariable("extra", VariableKind::Parameter, DType::F32, {1});
  addTraining();
  artifact::EntryT &evaluation = addEntry("eval_step");
  addPort(evaluation, true, "ids", DType::I64, {2, 3});
  addPort(evaluation, false, "loss", DType::F32, {});
  addPort(evaluation, false, "tokens", DType::I64, {});
  artifact::EntryT &forward = addEntry("forward");
  addPort(forward, true, "ids", DType::I64, {2, 3});
  addPort(forward, false, "logits", DType::F32, {2, 3, 5});
}

void FakeSession::addTraining() {
  artifact::EntryT &batch = addEntry(options.accumulates ? "accumulate" : "train_step");
  addPort(batch, true, "ids", DType::I64, {2, 3});
  addPort(batch, false, "loss", DType::F32, {});
  addPort(batch, false, "tokens", DType::F32, {});
  if (!options.accumulates) {
    addPort(batch, true, "lr", DType::F32, {});
    addPort(batch, false, "grad_norm", DType::F32, {});
    return;
  }
  artifact::EntryT &apply = addEntry("apply");
  addPort(apply, true, "lr", DType::F32, {});
  addPort(apply, false, "skipped", DType::Bool, {});
  if (options.applyReportsLoss)
    addPort(apply, false, "loss", DType::F32, {});
}

void FakeSession::addVariable(const std::string &name, VariableKind kind, DType dtype, std::vector<int64_t> shape,
                              bool checkpoint) {
  auto variable = std::make_unique<artifact::VariableT>();
  variable->name = name;
  variable->kind = kind;
  variable->dtype = dtype;
  variable->shape = shape;
  variable->checkpoint = checkpoint;
  state.emplace_back(*artifact::byteCount(dtype, shape), std::byte{0x5a});
  description.variables.push_back(std::move(variable));
}

artifact::EntryT &FakeSession::addEntry(const std::string &name) {
  description.plans[0]->entries.push_back(std::make_unique<artifact::EntryT>());
  description.plans[0]->entries.back()->name = name;
  return *description.plans[0]->entries.back();
}

void FakeSession::addPort(artifact::EntryT &entry, bool isInput, const std::string &name, DType dtype,
                          std::vector<int64_t> shape) {
  auto port = std::make_unique<artifact::PortT>();
  port->name = name;
  port->view = std::make_unique<artifact::TensorViewT>();
  port->view->dtype = dtype;
  port->view->shape = shape;
  (isInput ? inputs : outputs)[entry.name][name].resize(*artifact::byteCount(dtype, shape));
  (isInput ? entry.inputs : entry.outputs).push_back(std::move(port));
}

Status FakeSession::initialize() {
  for (auto &bytes : state)
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  for (int j = 0; j < 4; ++j)
    values("w")[j] = static_cast<float>(j) * 0.5f;
  accumulated = 0;
  return Status::ok();
}

const artifact::EntryT *FakeSession::entry(std::string_view name) const {
  for (const auto &entry : description.plans[0]->entries)
    if (entry->name == name)
      return entry.get();
  return nullptr;
}

Result<std::span<std::byte>> FakeSession::input(std::string_view entryName, std::string_view port) {
  return std::span<std::byte>(inputs.find(entryName)->second.find(port)->second);
}

Result<std::span<const std::byte>> FakeSession::output(std::string_view entryName, std::string_view port) {
  return std::span<const std::byte>(outputs.find(entryName)->second.find(port)->second);
}

float *FakeSession::values(const std::string &name) {
  for (size_t i = 0; i < state.size(); ++i)
    if (description.variables[i]->name == name)
      return reinterpret_cast<float *>(state[i].data());
  return nullptr;
}

template <typename T> T *FakeSession::port(const std::string &entryName, const std::string &name) {
  auto &bytes = inputs[entryName].count(name) ? inputs[entryName][name] : outputs[entryName][name];
  return reinterpret_cast<T *>(bytes.data());
}

/// The update; moves the step counter and mixes it in, so a lost or repeated step shows.
void FakeSession::learn(const std::string &entryName, double gradient) {
  float rate = *port<float>(entryName, "lr");
  rates.push_back(rate);
  auto *seed = reinterpret_cast<int64_t *>(values("seed"));
  for (int j = 0; j < 4; ++j) {
    auto noise = static_cast<float>(mixBits(static_cast<uint64_t>(seed[0] * 1000 + seed[1] * 10 + j)) % 1000) * 0.001f;
    values("w")[j] = values("w")[j] * 0.75f + rate * (static_cast<float>(gradient) + noise);
    values("w.m")[j] += 1.0f;
    values("bn.mean")[j] += noise;
  }
  ++seed[1];
  if (options.onStep)
    options.onStep(static_cast<uint64_t>(seed[1]));
}

Status FakeSession::trainStep() {
  std::string name = options.accumulates ? "accumulate" : "train_step";
  double gradient = 0;
  for (int i = 0; i < 6; ++i)
    gradient += static_cast<double>(port<int64_t>(name, "ids")[i]) * (i + 1);
  uint64_t step = static_cast<uint64_t>(reinterpret_cast<int64_t *>(values("seed"))[1]) + 1;
  if (step == options.failAtStep)
    return badInput("index 300 out of range [-256, 256) in gather");
  *port<float>(name, "loss") = static_cast<float>(std::abs(values("w")[0]) + gradient);
  if (step == options.nanAtStep)
    *port<float>(name, "loss") = std::numeric_limits<float>::quiet_NaN();
  *port<float>(name, "tokens") =
      static_cast<float>(port<int64_t>(name, "ids")[0]); // the first id, to make weights uneven
  if (!options.accumulates) {
    *port<float>(name, "grad_norm") = static_cast<float>(gradient);
    learn(name, gradient);
  } else {
    accumulated += gradient;
  }
  return Status::ok();
}

Status FakeSession::forwardPass() {
  auto *logits = port<float>("forward", "logits");
  auto *ids = port<int64_t>("forward", "ids");
  for (int i = 0; i < 6; ++i) // the likeliest next token is (token + 1) mod 5
    for (int v = 0; v < 5; ++v)
      logits[i * 5 + v] = v == (ids[i] + 1) % 5 ? 4.0f + values("w")[0] : 0.0f;
  return Status::ok();
}

Status FakeSession::run(std::string_view entryName) {
  ++runs[std::string(entryName)];
  Status status;
  if (entryName == "train_step" || entryName == "accumulate")
    status = trainStep();
  if (entryName == "apply") {
    *port<uint8_t>("apply", "skipped") = accumulated == 0;
    if (options.applyReportsLoss)
      *port<float>("apply", "loss") = 123.0f;
    learn("apply", accumulated);
    accumulated = 0;
  }
  if (entryName == "eval_step") {
    *port<float>("eval_step", "loss") = static_cast<float>(port<int64_t>("eval_step", "ids")[0]);
    *port<int64_t>("eval_step", "tokens") = 1 + port<int64_t>("eval_step", "ids")[0] % 2;
  }
  if (entryName == "forward")
    status = forwardPass();
  for (auto &[name, bytes] : inputs.find(entryName)->second)
    std::fill(bytes.begin(), bytes.end(), std::byte{0x77});
  return status;
}

} // namespace plimsoll::runtime
