// Reference kernels: every library operation as slow, obvious loops. They are the oracle of the conformance suite and
// of the compiler's finite-difference tests, and what a backend runs where it has nothing faster. f32 operands are
// computed and accumulated in double, f64 in double.
#pragma once

#include "runtime/Core/Backend.h"
#include "runtime/Kernels/Faults.h"

namespace plimsoll::runtime {

/// Checks `spec` (checkCall) and prepares its reference kernel. Needs no workspace and allocates only here; execute()
/// is single-threaded. Faults in index data go to `faults`, which must outlive the call; null drops them.
Result<std::unique_ptr<PreparedCall>> prepareReference(const CallSpec &spec, FaultCell *faults = nullptr);

} // namespace plimsoll::runtime
