// Mean loss over evaluation data, through the entry eval_step (no backward pass, no update).
#pragma once

#include "runtime/Data/DataFeed.h"
#include "tools/plimsoll-run/EntryPorts.h"

namespace plimsoll::runtime {

struct Evaluation {
  double loss = 0; ///< weighted by the entry's "tokens" output when it has one
  uint64_t batches = 0;
  uint64_t samples = 0; ///< samples seen: batches times the batch size
  double tokens = 0;    ///< counted tokens; 0 when the entry does not say
};

/// Runs `batches` batches from the start of the data (0 = every whole batch of one epoch), in file order. The feed is
/// rewound first, so every evaluation of a run sees the same batches. Stops early, without failing, on a stop request.
Result<Evaluation> evaluate(Session &session, const EntryPorts &entry, DataFeed &feed, uint64_t batches);

} // namespace plimsoll::runtime
