// Re-checking what an artifact says about one of its plans, from the artifact alone and without any solver: the
// recorded problem is read again, sums are added up again, certificates are evaluated again.
#pragma once

#include "plimsoll/Planner/Problem.h"
#include "runtime/Artifact/Artifact_generated.h"

#include <string>
#include <vector>

namespace plimsoll {

enum class Verdict : uint8_t {
  Ok,      ///< re-computed just now, and it holds
  Claimed, ///< nothing to re-compute: the solver's word only
  Failed,  ///< it does not hold, or its record is damaged
};

/// One statement of a proof and what became of it.
struct ProofItem {
  std::string what; ///< "problem", "predicted time", "peak floor", "time bound", "curve point 3", ...
  Verdict verdict = Verdict::Ok;
  std::string detail; ///< the numbers, or what is wrong
};

struct ProofCheck {
  std::vector<ProofItem> items;
  bool isOk() const; ///< nothing failed; solver-claimed bounds count as such
};

/// Checks every statement of `entry.proof` (which must be there):
///   problem         it is a sound program of compute steps
///   commands        the entry's kernel launches and library calls are the recorded steps, one for one
///   predicted time  the recorded steps' costs add up to the prediction, and the original's to keep-all's
///   peak floor      counted again; no higher than the entry's peak
///   time bound      see checkBound(); no higher than the plan's extra time unless the plan moves bytes
///   explanations    every one is about a storage of the problem, with its bytes and its number of recomputes
///   curve point n   as time bound, at the point's budget
/// A damaged problem ends the check, since nothing else can be judged. O(problem + certificates).
ProofCheck checkProof(const artifact::ArtifactT &artifact, const artifact::EntryT &entry);

/// Judges `bound` as a lower bound on the extra seconds of any plan of `problem` within `budgetBytes` (0 = no limit)
/// that moves no bytes to other tiers; `relocatable` as in planner::peakFloor().
ProofItem checkBound(const planner::Problem &problem, const artifact::ExtraTimeBoundT &bound, uint64_t budgetBytes,
                     bool relocatable);

/// "counting", "certificate (checked)", "solver-claimed", ...: who vouches for a bound that got `verdict`.
std::string vouchedBy(const artifact::ExtraTimeBoundT &bound, Verdict verdict);

} // namespace plimsoll
