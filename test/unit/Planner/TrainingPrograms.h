// A seeded generator of small programs with the shapes of training steps: forward, loss, backward, updates; layers with
// several results, in-place offers, concatenations in pieces, residual sums accumulated in place, random counters,
// running statistics, gradient accumulators, workspaces.
#pragma once

#include "Programs.h"

namespace plimsoll::planner::test {

class TrainingGenerator {
public:
  explicit TrainingGenerator(uint32_t seed) : random(seed) {}

  Program make() {
    program.alignment = uint64_t{1} << below(6);
    counter = program.addStorage("counter", 8, StorageClass::StepState);
    program.storages[counter].persistent = true;
    running = program.addStorage("running", bytes(), StorageClass::ModelState);
    StorageId x = program.input("x", bytes()), labels = program.input("labels", bytes());
    StorageId h = x;
    for (unsigned layers = 2 + below(5), i = 0; i < layers; ++i)
      h = forward(h);
    StorageId loss = program.addStorage("loss", 4, StorageClass::Output);
    StorageId d = program.value("dloss", size(h));
    stepOf({h, labels}, {loss, d}).workspaceBytes = below(3) ? 0 : bytes();
    for (size_t i = layersMade.size(); i-- > 0;)
      d = backward(layersMade[i], d);
    for (const Layer &layer : layersMade)
      if (layer.weight != noStorage && !layer.updated)
        update(layer);
    finish(loss, h);
    return std::move(program);
  }

private:
  enum Kind { Linear, Pointwise, Dropout, SeededDropout, Norm, Concat, Residual, KindCount };

  struct Layer {
    Kind kind = Linear;
    StorageId in = noStorage, out = noStorage, extra = noStorage, skip = noStorage;
    StorageId weight = noStorage, momentum = noStorage, gradient = noStorage;
    bool updated = false;
  };

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random() % n); }
  uint64_t bytes() { return below(25) ? 1 + below(40) : 0; }
  uint64_t size(StorageId id) const { return program.storages[id].bytes; }
  std::string name(const char *stem) { return stem + std::to_string(++names); }
  StorageId value(const char *stem, uint64_t valueBytes) { return program.value(name(stem), valueBytes); }

  Step &stepOf(std::vector<StorageId> reads, std::vector<StorageId> writes) {
    std::vector<StorageId> once;
    for (StorageId id : reads)
      if (std::find(once.begin(), once.end(), id) == once.end())
        once.push_back(id);
    Step &step = program.step(once, std::move(writes));
    step.costSeconds = 1 + below(8);
    return step;
  }

  void offer(Step &step) {
    for (const Access &operand : step.accesses)
      for (const Access &result : step.accesses)
        if (operand.mode == AccessMode::Read && result.mode == AccessMode::Write &&
            size(operand.storage) == size(result.storage))
          step.inPlace.push_back({operand.storage, result.storage});
  }

  StorageId forward(StorageId h) {
    Layer layer;
    layer.kind = static_cast<Kind>(below(KindCount));
    layer.in = h;
    if (layer.kind == Residual && layersMade.size() < 2)
      layer.kind = Linear;
    switch (layer.kind) {
    case Linear:
      layer.weight = program.parameter(name("w"), bytes());
      layer.momentum = program.addStorage(name("m"), size(layer.weight), StorageClass::OptimizerState);
      layer.out = value("h", below(2) ? size(h) : bytes());
      stepOf({h, layer.weight}, {layer.out}).workspaceBytes = below(2) ? 0 : bytes();
      break;
    case Pointwise:
      layer.out = value("h", size(h));
      offer(stepOf({h}, {layer.out}));
      break;
    case Dropout:
    case SeededDropout:
      dropout(layer);
      break;
    case Norm:
      layer.out = value("h", size(h)), layer.extra = value("stat", bytes());
      offer(stepOf({h}, {layer.out, layer.extra}));
      if (below(2))
        program.steps.back().accesses.push_back({running, AccessMode::ReadWrite});
      break;
    case Concat:
      concat(layer);
      break;
    default:
      layer.skip = layersMade[below(static_cast<uint32_t>(layersMade.size()))].out;
      layer.out = value("h", size(h));
      offer(stepOf({h, layer.skip}, {layer.out}));
    }
    layersMade.push_back(layer);
    return layer.out;
  }

  void dropout(Layer &layer) {
    layer.out = value("h", size(layer.in)), layer.extra = value("mask", bytes());
    if (layer.kind == Dropout) {
      offer(stepOf({layer.in}, {layer.out, layer.extra}));
      program.steps.back().accesses.push_back({counter, AccessMode::ReadWrite});
      return;
    }
    StorageId seed = value("seed", 8);
    stepOf({}, {seed}).accesses.push_back({counter, AccessMode::ReadWrite});
    offer(stepOf({layer.in, seed}, {layer.out, layer.extra}));
  }

  void concat(Layer &layer) {
    StorageId a = value("a", bytes()), b = value("b", bytes());
    layer.out = value("cat", size(a) + size(b) + 2);
    stepOf({layer.in}, {a});
    stepOf({layer.in}, {b});
    if (below(2))
      offer(stepOf({a}, {value("unread", size(a))}));
    stepOf({a}, {layer.out});
    stepOf({b}, {layer.out});
    if (below(2))
      stepOf({layer.in}, {layer.out});
    layer.extra = below(2) ? a : noStorage;
  }

  /// The gradient of `id`: `d`, plus what a residual connection already put aside for it, added in place.
  StorageId complete(StorageId id, StorageId d) {
    for (auto &[activation, aside] : setAside)
      if (activation == id) {
        stepOf({d}, {}).accesses.push_back({aside, AccessMode::ReadWrite});
        activation = noStorage;
        return aside;
      }
    return d;
  }

  StorageId backward(Layer &layer, StorageId d) {
    d = complete(layer.out, d);
    if (layer.weight != noStorage)
      weightGradient(layer, d);
    std::vector<StorageId> reads = {d, below(2) ? layer.in : layer.out};
    for (StorageId id : {layer.extra, layer.weight})
      if (id != noStorage)
        reads.push_back(id);
    StorageId din = value("d", size(layer.in));
    if (layer.skip != noStorage &&
        std::none_of(setAside.begin(), setAside.end(), [&](auto &entry) { return entry.first == layer.skip; })) {
      StorageId aside = value("aside", size(layer.skip));
      setAside.emplace_back(layer.skip, aside);
      stepOf(reads, {din, aside});
    } else {
      stepOf(reads, {din});
    }
    offer(program.steps.back());
    if (layer.weight != noStorage && below(2))
      update(layer);
    return din;
  }

  void weightGradient(Layer &layer, StorageId d) {
    if (below(3)) {
      layer.gradient = program.addStorage(name("g"), size(layer.weight), StorageClass::Gradient);
      offer(stepOf({d, layer.in}, {layer.gradient}));
      return;
    }
    layer.gradient = program.addStorage(name("sum"), size(layer.weight), StorageClass::Gradient);
    program.storages[layer.gradient].persistent = true;
    stepOf({d, layer.in}, {}).accesses.push_back({layer.gradient, AccessMode::ReadWrite});
  }

  void update(const Layer &layer) {
    Step &step = stepOf({layer.gradient}, {});
    step.accesses.push_back({layer.weight, AccessMode::ReadWrite});
    step.accesses.push_back({layer.momentum, AccessMode::ReadWrite});
    if (program.storages[layer.gradient].persistent && below(2))
      stepOf({}, {layer.gradient}); // cleared, in part
    for (Layer &made : layersMade)
      made.updated |= made.weight == layer.weight;
  }

  void finish(StorageId loss, StorageId lastActivation) {
    program.outputs = {loss};
    if (below(2))
      program.outputs.push_back(lastActivation);
    for (const Layer &layer : layersMade)
      if (layer.weight != noStorage && below(4) == 0) {
        StorageId norm = value("norm", 4);
        stepOf({layer.weight}, {norm}); // reads the weight as it is after its update
        program.outputs.push_back(norm);
      }
    if (below(4) == 0)
      program.outputs.push_back(running);
  }

  std::mt19937 random;
  Program program;
  unsigned names = 0;
  StorageId counter = noStorage, running = noStorage;
  std::vector<Layer> layersMade;
  std::vector<std::pair<StorageId, StorageId>> setAside; ///< activation, its gradient so far
};

inline Program trainingProgram(uint32_t seed) { return TrainingGenerator(seed).make(); }

} // namespace plimsoll::planner::test
