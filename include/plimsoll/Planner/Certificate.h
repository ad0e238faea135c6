// Proofs that a plan cannot be much better, checkable without the solver that found them (PLANNING §1.5).
#pragma once

#include "plimsoll/Planner/Recompute.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::planner {

/// Who vouches for a bound.
enum class BoundProof : uint8_t {
  None,         ///< nothing is known beyond zero
  Counting,     ///< a sum over the problem itself (largest working set, max-live); recomputed by the checker
  Certificate,  ///< dual multipliers that checkCertificate() re-checks with directed rounding
  SolverClaimed ///< the optimiser's word only
};
std::string_view boundProofName(BoundProof proof);

/// A lower bound on the extra seconds any schedule in the class needs to stay within `budgetBytes`:
/// the class is: device order of the original steps, steps from `split` on run once, steps before it run once before
/// `split` and any number of times after it, nothing moved to other tiers.
struct Certificate {
  uint64_t budgetBytes = 0;           ///< device bytes, persistent ones included
  StepIndex split = 0;                ///< see forwardEnd()
  std::vector<StepIndex> stageStarts; ///< first steps of the stages; the first is `split`
  /// A branch-and-bound tree whose leaves carry dual multipliers of the stage model (or of its infeasibility); one leaf
  /// and no branching is a plain linear bound. Node 0 is the root.
  struct Node {
    int32_t variable = -1;           ///< branched on (column of the stage model); -1 for a leaf
    int32_t zero = -1, one = -1;     ///< children
    std::vector<uint32_t> rows;      ///< leaf: rows with a multiplier that is not zero, ascending
    std::vector<double> multipliers; ///< leaf: same length
    bool infeasible = false;         ///< leaf: the multipliers show that nothing fits, not a bound
  };
  std::vector<Node> nodes;
  double boundSeconds = 0; ///< what the tree proves
  bool infeasible = false; ///< the tree proves that no schedule of the class fits the budget
};

/// Re-checks a certificate against the problem: rebuilds the stage model's rows from the program and evaluates the
/// multipliers with directed rounding; needs no solver. Returns the proved bound in seconds (+infinity when the tree
/// proves infeasibility), which may be a rounding error below certificate.boundSeconds.
/// BadInput names what is wrong with a malformed certificate.
Result<double> checkCertificate(const Problem &problem, const Certificate &certificate);

/// Canonical text of a certificate, and back. parse fails with BadInput and the line.
std::string writeCertificate(const Certificate &certificate);
Result<Certificate> parseCertificate(std::string_view text);

} // namespace plimsoll::planner
