// The checks, one method each. Sums are taken in the order of the recorded steps and compared with a relative slack
// that covers any other order of adding doubles.
#include "runtime/Proof/CheckProof.h"

#include "plimsoll/Planner/Certificate.h"
#include "plimsoll/Planner/Recompute.h"
#include "plimsoll/Planner/Remat.h"
#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Proof/PlanProof.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace plimsoll {

namespace {

constexpr double kSlack = 1e-9; // relative; a sum of 10^6 doubles is off by 10^-10 at most

bool equalSums(double a, double b) { return std::abs(a - b) <= kSlack * std::max(std::abs(a), std::abs(b)); }

std::string secondsText(double seconds) {
  char text[40];
  snprintf(text, sizeof text, "%.6g s", seconds);
  return text;
}

ProofItem ok(std::string what, std::string detail) { return {std::move(what), Verdict::Ok, std::move(detail)}; }
ProofItem failed(std::string what, std::string detail) { return {std::move(what), Verdict::Failed, std::move(detail)}; }

/// True when the step is a run of a compute step: its name ends with the kernel or operation it runs.
bool runs(const planner::Step &step, const std::string &code) {
  return step.name == code || step.name.ends_with("." + code);
}

class ProofChecker {
public:
  ProofChecker(const artifact::ArtifactT &whole, const artifact::EntryT &checked)
      : artifact(whole), entry(checked), proof(*checked.proof) {}

  ProofCheck run() {
    Result<planner::Problem> read = proofProblem(proof);
    if (!read) {
      result.items.push_back(failed("problem", read.status().message()));
      return std::move(result);
    }
    problem = std::move(*read);
    if (!checkProgram())
      return std::move(result);
    checkCommands();
    checkTimes();
    checkFloor();
    checkPlanBound();
    checkExplanations();
    for (size_t i = 0; i < proof.curve.size(); ++i)
      checkPoint(i);
    return std::move(result);
  }

private:
  void add(ProofItem item) { result.items.push_back(std::move(item)); }
  bool relocatable() const { return proof.host_budget_bytes != 0 || proof.disk_budget_bytes != 0; }

  /// Compute steps only, and every recorded step one of them.
  bool checkProgram() {
    for (const planner::Step &step : problem.steps)
      if (step.kind != planner::StepKind::Compute) {
        add(failed("problem", "step " + inQuotes(step.name) + " moves bytes; the original program moves nothing"));
        return false;
      }
    runCount.assign(problem.steps.size(), 0);
    for (uint32_t step : proof.steps)
      if (step == planner::noStep)
        ++moves;
      else if (step < problem.steps.size())
        ++runCount[step];
      else {
        add(failed("problem",
                   "the plan runs step " + std::to_string(step) + " of " + std::to_string(problem.steps.size())));
        return false;
      }
    add(ok("problem",
           std::to_string(problem.steps.size()) + " steps, " + std::to_string(problem.storages.size()) + " storages"));
    return true;
  }

  std::string codeOf(const artifact::CommandT &command) const {
    if (const artifact::LibraryCallT *call = command.body.AsLibraryCall())
      return call->op;
    return artifact.kernels[command.body.AsLaunch()->kernel]->symbol;
  }

  /// The recorded steps are what the entry really runs.
  void checkCommands() {
    std::vector<const artifact::CommandT *> computing;
    for (const auto &command : entry.commands)
      if (command->body.AsLaunch() || command->body.AsLibraryCall())
        computing.push_back(command.get());
    size_t count = proof.steps.size() - moves, at = 0;
    if (computing.size() != count)
      return add(failed("commands", "the entry has " + std::to_string(computing.size()) +
                                        " kernel launches and library calls, the proof is about " +
                                        std::to_string(count)));
    for (uint32_t step : proof.steps) {
      if (step == planner::noStep)
        continue;
      std::string code = codeOf(*computing[at++]);
      if (!runs(problem.steps[step], code))
        return add(failed("commands", "the entry runs " + inQuotes(code) + " where the proof has step " +
                                          inQuotes(problem.steps[step].name)));
    }
    auto missing = std::find(runCount.begin(), runCount.end(), 0u);
    if (missing != runCount.end())
      return add(failed("commands", "the plan never runs step " +
                                        inQuotes(problem.steps[static_cast<size_t>(missing - runCount.begin())].name)));
    add(ok("commands", std::to_string(count) + " runs of " + std::to_string(problem.steps.size()) + " steps, " +
                           std::to_string(moves) + " copies and waits"));
  }

  void checkTimes() {
    double once = 0, all = 0;
    for (const planner::Step &step : problem.steps)
      once += step.costSeconds;
    for (uint32_t step : proof.steps)
      all += step == planner::noStep ? 0 : problem.steps[step].costSeconds;
    if (!equalSums(once, proof.keep_all_seconds))
      return add(failed("predicted time", "keep-all is said to take " + secondsText(proof.keep_all_seconds) +
                                              ", its steps add up to " + secondsText(once)));
    if (!equalSums(all + proof.stall_seconds, proof.seconds))
      return add(failed("predicted time", "the plan is said to take " + secondsText(proof.seconds) +
                                              ", its steps and waits add up to " +
                                              secondsText(all + proof.stall_seconds)));
    if (moves == 0 && proof.stall_seconds > 0)
      return add(failed("predicted time", "the plan waits for copies but makes none"));
    add(ok("predicted time", secondsText(proof.seconds) + ", of which " + secondsText(all - once) + " recomputing"));
  }

  void checkFloor() {
    planner::PeakFloor floor = planner::peakFloor(problem, relocatable());
    if (proof.peak_floor_bytes > floor.bytes)
      return add(failed("peak floor", groupedDigits(proof.peak_floor_bytes) + " bytes are stated, counting proves " +
                                          groupedDigits(floor.bytes)));
    if (proof.keep_all_bytes < proof.peak_floor_bytes)
      return add(failed("peak floor", "keep-all is said to need " + groupedDigits(proof.keep_all_bytes) +
                                          " bytes, less than the floor of " + groupedDigits(proof.peak_floor_bytes)));
    add(ok("peak floor", groupedDigits(proof.peak_floor_bytes) + " bytes, counted again"));
  }

  void checkPlanBound() {
    ProofItem item = checkBound(problem, *proof.bound, proof.budget_bytes, relocatable());
    double extra = proof.seconds - proof.keep_all_seconds;
    bool beaten = proof.bound->seconds > extra + kSlack * std::max(proof.seconds, 1e-300) || proof.bound->infeasible;
    if (item.verdict != Verdict::Failed && beaten && moves == 0)
      item = failed(item.what, "the plan takes " + secondsText(extra) + " more than keep-all, less than the bound of " +
                                   secondsText(proof.bound->seconds) + " allows");
    add(std::move(item));
  }

  void checkExplanations() {
    planner::RecomputeRules rules = planner::recomputeRules(problem);
    std::map<std::string_view, planner::StorageId> byName;
    for (const planner::Storage &storage : problem.storages)
      byName.emplace(storage.name, storage.id);
    for (const auto &explanation : proof.explanations) {
      auto found = byName.find(explanation->storage);
      if (found == byName.end())
        return add(failed("explanations", inQuotes(explanation->storage) + " is no storage of the problem"));
      if (uint64_t bytes = alignUp(problem.storages[found->second].bytes, problem.alignment);
          bytes != explanation->bytes)
        return add(failed("explanations", inQuotes(explanation->storage) + " is said to take " +
                                              groupedDigits(explanation->bytes) + " bytes, it takes " +
                                              groupedDigits(bytes)));
      planner::UnitId unit = rules.producer[found->second];
      uint32_t runsOfUnit = unit == planner::noUnit ? 1 : runCount[rules.units[unit].steps.front()];
      if (runsOfUnit > 0 && explanation->recomputes != runsOfUnit - 1)
        return add(failed("explanations", inQuotes(explanation->storage) + " is said to be recomputed " +
                                              std::to_string(explanation->recomputes) + " times, the plan does it " +
                                              std::to_string(runsOfUnit - 1) + " times"));
    }
    if (!proof.explanations.empty())
      add(ok("explanations", std::to_string(proof.explanations.size()) + " storages"));
  }

  void checkPoint(size_t index) {
    const artifact::CurvePointT &point = *proof.curve[index];
    ProofItem item = checkBound(problem, *point.bound, point.budget_bytes, relocatable());
    item.what = "curve point " + std::to_string(index);
    if (item.verdict != Verdict::Failed && !relocatable() &&
        point.bound->seconds > point.extra_seconds + kSlack * std::max(proof.keep_all_seconds, 1e-300))
      item = failed(item.what, "it takes " + secondsText(point.extra_seconds) +
                                   " more than keep-all, less than its bound of " + secondsText(point.bound->seconds) +
                                   " allows");
    add(std::move(item));
  }

  const artifact::ArtifactT &artifact;
  const artifact::EntryT &entry;
  const artifact::PlanProofT &proof;
  planner::Problem problem;
  std::vector<uint32_t> runCount;
  size_t moves = 0;
  ProofCheck result;
};

/// A bound by counting is zero seconds, or that the budget is below the peak floor.
ProofItem checkCounting(const planner::Problem &problem, const artifact::ExtraTimeBoundT &bound, uint64_t budget,
                        bool relocatable) {
  if (bound.seconds > 0)
    return failed("time bound", "counting is said to prove " + secondsText(bound.seconds) +
                                    "; it proves nothing "
                                    "above zero");
  if (!bound.infeasible)
    return ok("time bound", "0 s, by counting");
  uint64_t floor = planner::peakFloor(problem, relocatable).bytes;
  if (budget == 0 || floor <= budget)
    return failed("time bound", "nothing is said to fit " + groupedDigits(budget) + " bytes, counting proves only " +
                                    groupedDigits(floor));
  return ok("time bound", "nothing fits, by counting");
}

ProofItem checkCertified(const planner::Problem &problem, const artifact::ExtraTimeBoundT &bound, uint64_t budget) {
  Result<planner::Certificate> certificate = boundCertificate(bound);
  if (!certificate)
    return failed("time bound", certificate.status().message());
  if (budget == 0 || certificate->budgetBytes < budget)
    return failed("time bound", "the certificate is about a budget of " + groupedDigits(certificate->budgetBytes) +
                                    " bytes, smaller than the plan's " + groupedDigits(budget));
  Result<double> proved = planner::checkCertificate(problem, *certificate);
  if (!proved)
    return failed("time bound", proved.status().message());
  if (bound.infeasible && !std::isinf(*proved))
    return failed("time bound", "nothing is said to fit, the certificate proves only " + secondsText(*proved));
  // The statement may be the certificate's own number, which directed rounding undercuts by a little.
  if (*proved < bound.seconds * (1 - kSlack))
    return failed("time bound",
                  secondsText(bound.seconds) + " are stated, the certificate proves " + secondsText(*proved));
  return ok("time bound", bound.infeasible ? "nothing fits without moving bytes, certificate checked"
                                           : secondsText(bound.seconds) + ", certificate checked");
}

} // namespace

bool ProofCheck::isOk() const {
  return std::none_of(items.begin(), items.end(),
                      [](const ProofItem &item) { return item.verdict == Verdict::Failed; });
}

ProofItem checkBound(const planner::Problem &problem, const artifact::ExtraTimeBoundT &bound, uint64_t budgetBytes,
                     bool relocatable) {
  switch (bound.proof) {
  case artifact::BoundProof::None:
    if (bound.seconds > 0 || bound.infeasible)
      return failed("time bound", "a bound is stated that nobody vouches for");
    return ok("time bound", "0 s, nothing is known beyond");
  case artifact::BoundProof::Counting:
    return checkCounting(problem, bound, budgetBytes, relocatable);
  case artifact::BoundProof::Certificate:
    return checkCertified(problem, bound, budgetBytes);
  case artifact::BoundProof::SolverClaimed:
    break;
  }
  return {"time bound", Verdict::Claimed,
          bound.infeasible ? "nothing fits, claimed by the solver"
                           : secondsText(bound.seconds) + ", claimed by the "
                                                          "solver"};
}

std::string vouchedBy(const artifact::ExtraTimeBoundT &bound, Verdict verdict) {
  if (verdict == Verdict::Failed)
    return "CHECK FAILED";
  switch (bound.proof) {
  case artifact::BoundProof::None:
    return "nothing known";
  case artifact::BoundProof::Counting:
    return "counting, re-checked now: ok";
  case artifact::BoundProof::Certificate:
    return "certificate, re-checked now: ok";
  case artifact::BoundProof::SolverClaimed:
    break;
  }
  return "solver-claimed, not checkable";
}

ProofCheck checkProof(const artifact::ArtifactT &artifact, const artifact::EntryT &entry) {
  return ProofChecker(artifact, entry).run();
}

} // namespace plimsoll
