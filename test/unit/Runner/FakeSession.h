// A session whose state evolves by a small exact rule, so that the runner can be tested without an artifact file:
//   w[j] = w[j] * 0.75 + lr * mix(ids, step) in float, m[j] counts updates, seed = {seed, step}.
// After every run it overwrites its input bytes, as a planned arena may: the runner must write every input each time.
#pragma once

#include "plimsoll/Runtime/Session.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace plimsoll::runtime {

struct FakeOptions {
  bool accumulates = false;      ///< accumulate and apply instead of train_step
  uint64_t accumulation = 1;     ///< recorded in recipe_json
  bool applyReportsLoss = false; ///< apply has its own "loss" output
  std::string modelHash = "aaaa";
  uint64_t nanAtStep = 0;  ///< this step (from 1) reports NaN
  uint64_t failAtStep = 0; ///< this step's run fails like a kernel fault
  uint64_t promisedTraining = 1 << 20;
  uint64_t promisedConstant = uint64_t(1) << 40;
  std::vector<int64_t> weightShape = {4};
  bool extraVariable = false;                ///< one more saved variable, "extra"
  std::function<void(uint64_t)> onStep = {}; ///< called with the number of steps taken, after each
};

class FakeSession final : public Session {
public:
  explicit FakeSession(FakeOptions options = {});

  const artifact::ArtifactT &artifact() const override { return description; }
  Status initialize() override;
  const artifact::EntryT *entry(std::string_view name) const override;
  Result<std::span<std::byte>> input(std::string_view entryName, std::string_view port) override;
  Result<std::span<const std::byte>> output(std::string_view entryName, std::string_view port) override;
  std::span<std::byte> variable(size_t index) override { return state[index]; }
  Status run(std::string_view entryName) override;
  MemoryReport memory() const override { return {4096, 512, 1, 4000}; }

  /// Everything that must be equal after a resume: all variables' bytes.
  std::vector<std::vector<std::byte>> snapshot() const { return state; }
  /// Calls of run() by entry.
  std::map<std::string, int> runs;
  /// lr as seen by each train_step or apply.
  std::vector<float> rates;

private:
  using Buffers = std::map<std::string, std::vector<std::byte>, std::less<>>;
  void addVariable(const std::string &name, artifact::VariableKind kind, artifact::DType dtype,
                   std::vector<int64_t> shape, bool checkpoint = true);
  artifact::EntryT &addEntry(const std::string &name);
  void addPort(artifact::EntryT &entry, bool isInput, const std::string &name, artifact::DType dtype,
               std::vector<int64_t> shape);
  void addTraining();
  float *values(const std::string &variable);
  template <typename T> T *port(const std::string &entryName, const std::string &name);
  void learn(const std::string &entryName, double gradient);
  Status trainStep();
  Status forwardPass();

  FakeOptions options;
  artifact::ArtifactT description;
  std::vector<std::vector<std::byte>> state;
  std::map<std::string, Buffers, std::less<>> inputs, outputs;
  double accumulated = 0;
};

} // namespace plimsoll::runtime
