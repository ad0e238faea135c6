// Running one optimizer step through the entries an artifact has.
#include "tools/plimsoll-run/StepDriver.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll::runtime {

Result<uint64_t> recipeAccumulation(const artifact::ArtifactT &artifact) {
  if (!artifact.provenance || artifact.provenance->recipe_json.empty())
    return uint64_t(1);
  auto recipe = nlohmann::json::parse(artifact.provenance->recipe_json, nullptr, false);
  if (!recipe.is_object())
    return badInput("the recipe recorded in the artifact is not a JSON object; compile the artifact again");
  if (!recipe.contains("accumulation"))
    return uint64_t(1);
  const auto &value = recipe["accumulation"];
  if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 || value.get<uint64_t>() > (uint64_t(1) << 20))
    return badInput(
        fmt::format("the recipe recorded in the artifact has accumulation {}, expected a whole number from 1 "
                    "to 1048576; compile the artifact again",
                    value.dump()));
  return value.get<uint64_t>();
}

Result<StepDriver> StepDriver::bind(Session &session) {
  StepDriver driver;
  bool whole = session.entry("train_step") != nullptr;
  if (!whole && !(session.entry("accumulate") && session.entry("apply")))
    return badInput(
        fmt::format("the artifact cannot train: it has neither train_step nor accumulate and apply, only {}; "
                    "compile it with an optimizer",
                    entryList(session)));
  auto batch = EntryPorts::bind(session, whole ? "train_step" : "accumulate");
  if (!batch)
    return batch.status();
  driver.batch = std::move(*batch);
  if (!whole) {
    auto apply = EntryPorts::bind(session, "apply");
    if (!apply)
      return apply.status();
    driver.apply = std::move(*apply);
    Result<uint64_t> count = recipeAccumulation(session.artifact());
    if (!count)
      return count.status();
    driver.microBatchCount = *count;
  }
  if (!driver.batch.scalar("loss") && !(driver.apply && driver.apply->scalar("loss")))
    return badInput(fmt::format("entry {} has no one-element output \"loss\"; compile the artifact with a loss",
                                driver.batch.name()));
  return driver;
}

uint64_t StepDriver::samplesPerStep() const {
  for (const PortInfo &port : dataPorts())
    if (!port.shape.empty())
      return static_cast<uint64_t>(port.shape[0]) * microBatchCount;
  return microBatchCount;
}

Status StepDriver::accumulate(Session &session, DataFeed &feed, double learningRate, StepResult &result) {
  double weightedLoss = 0, weight = 0, tokens = 0;
  for (uint64_t micro = 0; micro < microBatchCount; ++micro) {
    // A run may reuse the bytes of its inputs, so all of them are written again each time.
    batch.setScalar("lr", learningRate);
    if (Status status = feed.next(batch.dataTargets()); !status)
      return status;
    if (Status status = session.run(batch.name()); !status)
      return status;
    std::optional<double> counted = batch.scalar("tokens");
    double share = counted.value_or(1.0);
    if (share > 0) {
      weightedLoss += share * batch.scalar("loss").value_or(0.0);
      weight += share;
    }
    if (counted)
      result.countedTokens = tokens += *counted;
  }
  result.loss = weight > 0 ? weightedLoss / weight : 0.0;
  return Status::ok();
}

Status StepDriver::run(Session &session, DataFeed &feed, double learningRate, StepResult &result) {
  result = {};
  if (Status status = accumulate(session, feed, learningRate, result); !status)
    return status;
  const EntryPorts &last = apply ? *apply : batch;
  if (apply) {
    apply->setScalar("lr", learningRate);
    if (Status status = session.run(apply->name()); !status)
      return status;
  }
  if (auto loss = last.scalar("loss"); loss)
    result.loss = *loss;
  if (auto tokens = last.scalar("tokens"); tokens)
    result.countedTokens = *tokens;
  result.gradNorm = last.scalar("grad_norm");
  result.skipped = last.scalar("skipped").value_or(0.0) != 0.0;
  return Status::ok();
}

} // namespace plimsoll::runtime
