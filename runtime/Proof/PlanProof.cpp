// One small function per table. The enums of the schema list the planner's in the same order; the assertions hold that.
#include "runtime/Proof/PlanProof.h"

#include "plimsoll/Planner/ProblemText.h"
#include "runtime/Proof/ProofText.h"

namespace plimsoll {

static_assert(static_cast<int>(artifact::BoundProof::None) == static_cast<int>(planner::BoundProof::None) &&
              static_cast<int>(artifact::BoundProof::Counting) == static_cast<int>(planner::BoundProof::Counting) &&
              static_cast<int>(artifact::BoundProof::Certificate) ==
                  static_cast<int>(planner::BoundProof::Certificate) &&
              static_cast<int>(artifact::BoundProof::SolverClaimed) ==
                  static_cast<int>(planner::BoundProof::SolverClaimed));
static_assert(static_cast<int>(artifact::Fate::Kept) == static_cast<int>(planner::Fate::Kept) &&
              static_cast<int>(artifact::Fate::Recomputed) == static_cast<int>(planner::Fate::Recomputed) &&
              static_cast<int>(artifact::Fate::Offloaded) == static_cast<int>(planner::Fate::Offloaded) &&
              static_cast<int>(artifact::Fate::TakenOver) == static_cast<int>(planner::Fate::TakenOver) &&
              static_cast<int>(artifact::Fate::Resident) == static_cast<int>(planner::Fate::Resident));

static Result<std::unique_ptr<artifact::ExtraTimeBoundT>> boundTable(const planner::TimeBound &bound) {
  auto table = std::make_unique<artifact::ExtraTimeBoundT>();
  table->seconds = bound.extraSeconds;
  table->proof = static_cast<artifact::BoundProof>(bound.proof);
  table->infeasible = bound.infeasible;
  if (bound.proof != planner::BoundProof::Certificate)
    return table;
  auto text = packText(planner::writeCertificate(bound.certificate));
  if (!text)
    return text.status();
  table->certificate = std::move(*text);
  return table;
}

static std::unique_ptr<artifact::ExplanationT> explanationTable(const planner::Problem &original,
                                                                const planner::Explanation &explanation) {
  auto table = std::make_unique<artifact::ExplanationT>();
  const planner::Storage &storage = original.storages[explanation.storage];
  table->storage = storage.name;
  table->source = storage.source;
  table->fate = static_cast<artifact::Fate>(explanation.fate);
  table->bytes = explanation.bytes;
  table->last_reader = explanation.lastReader;
  if (explanation.lastReader != planner::noStep)
    table->last_reader_label = original.steps[explanation.lastReader].name;
  table->recomputes = explanation.recomputes;
  table->transfers = explanation.transfers;
  table->recompute_seconds = explanation.recomputeSeconds;
  table->transfer_seconds = explanation.transferSeconds;
  table->reason = explanation.reason;
  return table;
}

static Status addCurve(const std::vector<planner::CurvePoint> &curve, artifact::PlanProofT &table) {
  for (const planner::CurvePoint &point : curve) {
    auto row = std::make_unique<artifact::CurvePointT>();
    row->budget_bytes = point.budgetBytes;
    row->arena_bytes = point.arenaBytes;
    row->extra_seconds = point.extraSeconds;
    auto bound = boundTable(point.bound);
    if (!bound)
      return bound.status();
    row->bound = std::move(*bound);
    table.curve.push_back(std::move(row));
  }
  return Status::ok();
}

/// The original step of each scheduled step, in the order they run.
static std::vector<uint32_t> runOrder(const planner::ProgramPlan &plan) {
  std::vector<uint32_t> steps;
  for (planner::StepIndex step : plan.solution.order)
    steps.push_back(plan.scheduled.stepOrigin[step]);
  return steps;
}

Result<std::unique_ptr<artifact::PlanProofT>> planProofTable(const EntryProof &proof) {
  auto table = std::make_unique<artifact::PlanProofT>();
  auto problem = packText(planner::writeProblem(proof.original));
  if (!problem)
    return problem.status();
  table->problem = std::move(*problem);
  table->steps = runOrder(proof.plan);
  table->budget_bytes = proof.budgets.deviceBytes.value_or(0);
  table->host_budget_bytes = proof.budgets.hostBytes;
  table->disk_budget_bytes = proof.budgets.diskBytes;
  table->keep_all_bytes = proof.plan.keepAllBytes;
  table->keep_all_seconds = proof.plan.keepAllSeconds;
  table->seconds = proof.plan.timing.totalSeconds();
  table->stall_seconds = proof.plan.timing.stallSeconds;
  table->peak_floor_bytes = proof.plan.peakBoundBytes;
  auto bound = boundTable(proof.plan.bound);
  if (!bound)
    return bound.status();
  table->bound = std::move(*bound);
  for (const planner::Explanation &explanation : proof.plan.explanations)
    table->explanations.push_back(explanationTable(proof.original, explanation));
  if (Status status = addCurve(proof.curve, *table); !status)
    return status;
  return table;
}

Result<planner::Problem> proofProblem(const artifact::PlanProofT &proof) {
  Result<std::string> text = unpackText(*proof.problem);
  if (!text)
    return text.status();
  Result<planner::Problem> problem = planner::parseProblem(*text);
  if (!problem)
    return badInput("the recorded problem: " + problem.status().message());
  if (Status status = problem->check(); !status)
    return badInput("the recorded problem: " + status.message());
  return problem;
}

Result<planner::Certificate> boundCertificate(const artifact::ExtraTimeBoundT &bound) {
  if (!bound.certificate)
    return badInput("the bound has no certificate");
  Result<std::string> text = unpackText(*bound.certificate);
  if (!text)
    return text.status();
  return planner::parseCertificate(*text);
}

} // namespace plimsoll
