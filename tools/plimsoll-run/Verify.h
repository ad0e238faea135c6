// --verify: the first steps with the fast kernels against the same steps with the naive reference kernels.
#pragma once

#include "tools/plimsoll-run/Trainer.h"

#include <functional>
#include <memory>
#include <string>

namespace plimsoll::runtime {

/// Opens the artifact with or without reference kernels.
using SessionOpener = std::function<Result<std::unique_ptr<Session>>(bool referenceKernels)>;

/// Runs `steps` training steps on both and compares the losses: |fast - reference| <= 2e-5 * max(|reference|, 1) (the
/// bound the recorded oracles use). Nothing is written to disk. `text` receives one line per step. Fails with Internal
/// naming the first step that differs.
Status verifyAgainstReference(const SessionOpener &open, const TrainOptions &options, uint64_t steps,
                              std::string &text);

} // namespace plimsoll::runtime
