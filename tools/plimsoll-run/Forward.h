// Runs an entry over data and writes its outputs.
#pragma once

#include "plimsoll/Runtime/Session.h"
#include "runtime/Data/DataSpec.h"

#include <string>
#include <vector>

namespace plimsoll::runtime {

struct ForwardOptions {
  std::vector<DataSpec> data;
  std::string entry = "forward";
  std::string port;     ///< write only this output; empty = all
  std::string output;   ///< .npy (one output) or safetensors
  uint64_t batches = 1; ///< outputs of several batches get the suffix ".batch0", ".batch1"…
};

/// Runs the entry on the first batches of the data, in file order, and writes the outputs to options.output. `written`
/// receives the names. The state must have been initialised.
Status forward(Session &session, const ForwardOptions &options, std::vector<std::string> &written);

} // namespace plimsoll::runtime
