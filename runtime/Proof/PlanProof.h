// Planner structs to the artifact's PlanProof table, and the parts of one back.
#pragma once

#include "runtime/Artifact/Artifact_generated.h"
#include "runtime/Proof/EntryProof.h"

#include <memory>

namespace plimsoll {

/// The table that goes into Entry.proof. Fails with BadInput when a text is too long for an artifact. Deterministic;
/// O(storages + steps + curve points) and the packing of the texts.
Result<std::unique_ptr<artifact::PlanProofT>> planProofTable(const EntryProof &proof);

/// The original program of a proof. Fails with BadInput when the text is damaged, does not parse or fails
/// Problem::check().
Result<planner::Problem> proofProblem(const artifact::PlanProofT &proof);

/// The certificate of a bound. Fails with BadInput when it has none or the text is damaged.
Result<planner::Certificate> boundCertificate(const artifact::ExtraTimeBoundT &bound);

} // namespace plimsoll
