// The judge of plans. It shares no code with liveness or packing: it replays the program over a map of which content
// each byte of every tier's arena holds, so an error of reasoning in the solver cannot be repeated here.
#pragma once

#include "plimsoll/Planner/Packing.h"
#include "plimsoll/Planner/Solution.h"

#include <string>
#include <vector>

namespace plimsoll::planner {

/// One broken rule. `rule` is the label below without spaces, such as "V5".
struct Violation {
  std::string rule;
  std::string message;
};

/// Every violation found, in order of replay.
struct ValidationReport {
  std::vector<Violation> violations;
  bool isOk() const { return violations.empty(); }
  bool has(std::string_view rule) const;
  /// Ok, or all violations in one message, one a line: "V5: step ...".
  Status status(ExitCode code = ExitCode::Internal) const;
};

/// Judges `solution` as a plan of `problem`:
///   V0  the problem itself is well formed (Problem::check)
///   V1  the order runs every step exactly once
///   V2  every storage that is touched and every workspace has an offset, and nothing has one too many
///   V3  offsets and the arena's size are multiples of the alignment
///   V4  every storage and workspace lies inside the arena
///   V5  every read finds the reader's own content intact in every byte
///   V6  no write and no workspace covers a content that a later step still needs
///   V7  what one step touches does not overlap, except a result exactly on an operand it takes over
///   V8  pairs taken: offered by the step, taken once, operand not persistent, not an output, not needed later
///   V9  bytes of persistent storages are never touched by anything else, at any time
///   V10 outputs and persistent storages are intact at the end
///   V11 inputs and persistent storages do not overlap before the first step
///   V12 a piece added to a storage finds the earlier pieces intact
///   V13 from a copy to its wait the bytes of its source are not written, and those of its target neither written, read
///       nor covered: the copy may move them at any time in between; the wait runs after the copy
///   V14 an order other than the listed one gives every access the same content: each storage was written as often
///       before it as in the listed order
/// Offsets of a storage are within the arena of its tier; steps compute on the device.
/// After V0, V1, V2 or V4 the replay would be meaningless, so only what was found up to there is reported.
/// Complexity: O((accesses + storages) log storages) when few contents overlap. Deterministic.
ValidationReport validate(const Problem &problem, const Solution &solution);

/// Judges a bare placement: K0 the problem is well formed, K1 one offset per item, K2 alignment, K3 inside the arena
/// and the capacity, K4 items that are live at the same time do not overlap.
ValidationReport validatePacking(const PackingProblem &problem, const PackingSolution &solution);

} // namespace plimsoll::planner
