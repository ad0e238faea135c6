// Text generation with a language model's forward entry: ids [B, S] in, logits [B, S, V] out.
#pragma once

#include "plimsoll/Runtime/Session.h"
#include "runtime/Data/DataSpec.h"

#include <functional>
#include <string>
#include <vector>

namespace plimsoll::runtime {

struct GenerateOptions {
  std::string entry = "forward";
  std::string idsPort;         ///< empty = "ids", or the only integer input [B, S]
  std::string logitsPort;      ///< empty = "logits", or the only float output [B, S, V]
  std::vector<DataSpec> data;  ///< sources of the entry's other inputs
  std::vector<int64_t> prompt; ///< at least one token
  uint64_t tokens = 100;       ///< tokens to make
  double temperature = 1.0;    ///< 0 = always the most likely token
  uint64_t topK = 0;           ///< sample among the k most likely; 0 = among all
  uint64_t seed = 0;
};

/// Calls `emit` with every new token. The window is the last S tokens, at the left of the port; what follows them is
/// padding that a causal model cannot see. Deterministic: equal state, options and seed give equal tokens. Stops early
/// on a stop request. Fails with BadInput when the ports do not fit, NumericStop on a NaN logit.
Status generate(Session &session, const GenerateOptions &options, const std::function<void(int64_t)> &emit);

/// Index drawn from softmax(logits / temperature) restricted to the top `topK` (0 = all) by `uniform` in [0, 1). Ties
/// go to the lower index. logits must be finite or -inf, not all -inf.
size_t sampleToken(const std::vector<double> &logits, double temperature, uint64_t topK, double uniform);

} // namespace plimsoll::runtime
