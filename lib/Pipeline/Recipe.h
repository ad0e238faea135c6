// The recipe: everything about a training run that is not in the model. A TOML file, overridden by command-line flags.
#pragma once

#include "lib/Passes/CostModel.h"
#include "lib/Passes/TrainingStep.h"
#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct Recipe {
  std::string model;                        ///< path of the ONNX file, relative to the recipe
  std::map<std::string, int64_t> bindings;  ///< [bind]
  std::string loss, lossOutput, lossName;   ///< [loss] kind, output, name
  int64_t ignoreIndex = -100;               ///< [loss] ignore_index
  std::vector<std::string> freeze, buffers; ///< [train] glob patterns
  bool trainBatchNorm = true;               ///< [train] batch_norm
  OptimizerRecipe optimizer;                ///< [optimizer], [train] clip_norm and accumulation
  std::string precision = "fp32";           ///< [precision] policy
  std::optional<uint64_t> budgetBytes;      ///< [memory] budget
  int64_t chunks = 1;                       ///< [memory] chunks: pieces of the tokens a vocabulary loss works in
  std::map<std::string, double> machine;    ///< [machine] numbers of the cost model that replace the target's

  /// The speeds the planner reckons with: the CPU target's, with `machine` on top. Requires: check() is ok.
  TargetProfile profile() const;
  /// Ok, or Usage/Unsupported naming the value that is out of range.
  Status check() const;
  /// Deterministic JSON for the artifact's provenance and the runner (keys: optimizer, accumulation, precision, ...).
  std::string toJson() const;
};

/// Reads a recipe. Unknown keys and wrong types are BadInput naming the key, its line and the known keys.
Result<Recipe> readRecipe(const std::string &path);

} // namespace plimsoll
