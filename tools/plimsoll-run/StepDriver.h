// One optimizer step of an artifact: train_step, or K times accumulate and then apply. K is the recipe's accumulation,
// recorded in provenance.recipe_json. Each micro-batch takes the next batch of the data; lr is set once per step.
#pragma once

#include "runtime/Data/DataFeed.h"
#include "tools/plimsoll-run/EntryPorts.h"

namespace plimsoll::runtime {

/// What a step reports.
struct StepResult {
  double loss = 0;
  std::optional<double> gradNorm;
  std::optional<double> countedTokens;
  bool skipped = false;
};

class StepDriver {
public:
  /// Resolves the entries. Fails with BadInput when the artifact cannot train: neither train_step nor accumulate and
  /// apply, no loss output, or an unreadable recipe.
  static Result<StepDriver> bind(Session &session);

  const std::vector<PortInfo> &dataPorts() const { return batch.dataPorts(); }
  uint64_t microBatches() const { return microBatchCount; }
  /// Samples of one optimizer step: batch times micro-batches (1 when no port has a batch).
  uint64_t samplesPerStep() const;

  /// Runs one optimizer step. The loss of a window is apply's own "loss" output when it has one, otherwise the mean of
  /// the micro-batch losses weighted by their "tokens" outputs (a window without tokens has loss 0). Allocates only
  /// when it fails.
  Status run(Session &session, DataFeed &feed, double learningRate, StepResult &result);

private:
  Status accumulate(Session &session, DataFeed &feed, double learningRate, StepResult &result);

  EntryPorts batch;                ///< train_step or accumulate
  std::optional<EntryPorts> apply; ///< set when the artifact accumulates
  uint64_t microBatchCount = 1;
};

/// "accumulation" of provenance.recipe_json; 1 when the recipe does not say. BadInput when it is not a number in
/// [1, 2^20].
Result<uint64_t> recipeAccumulation(const artifact::ArtifactT &artifact);

} // namespace plimsoll::runtime
