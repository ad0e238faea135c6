// What the planner says about one entry, on its way from the passes into the artifact. It travels beside the plan ops
// (it is not IR) and becomes a PlanProof table (PlanProof.h).
#pragma once

#include "plimsoll/Planner/PlanProgram.h"

#include <string>
#include <vector>

namespace plimsoll {

struct EntryProof {
  std::string entry;                      ///< "train_step"
  planner::Problem original;              ///< the program as it stands: every step once, nothing moved
  planner::ProgramPlan plan;              ///< of `original`
  planner::Budgets budgets;               ///< the plan was made under
  std::vector<planner::CurvePoint> curve; ///< by falling budget; may be empty
};

} // namespace plimsoll
