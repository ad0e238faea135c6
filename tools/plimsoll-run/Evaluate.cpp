// The evaluation loop.
#include "tools/plimsoll-run/Evaluate.h"

#include "tools/plimsoll-run/StopSignal.h"

#include <algorithm>
#include <fmt/format.h>

namespace plimsoll::runtime {

Result<Evaluation> evaluate(Session &session, const EntryPorts &entry, DataFeed &feed, uint64_t batches) {
  if (!entry.scalar("loss"))
    return badInput(
        fmt::format("entry {} has no one-element output \"loss\"; compile the artifact with a loss", entry.name()));
  if (Status status = feed.seek({}); !status)
    return status;
  uint64_t count = batches ? std::min(batches, feed.batchesPerEpoch()) : feed.batchesPerEpoch();
  Evaluation result;
  double weightedLoss = 0, weight = 0;
  for (; result.batches < count && !stopRequested(); ++result.batches) {
    if (Status status = feed.next(entry.dataTargets()); !status)
      return status;
    if (Status status = session.run(entry.name()); !status)
      return status;
    std::optional<double> tokens = entry.scalar("tokens");
    double share = tokens.value_or(1.0);
    result.tokens += tokens.value_or(0.0);
    if (share > 0) {
      weightedLoss += share * *entry.scalar("loss");
      weight += share;
    }
  }
  result.samples = result.batches * feed.samplesPerBatch();
  result.loss = weight > 0 ? weightedLoss / weight : 0.0;
  return result;
}

} // namespace plimsoll::runtime
