// HiGHS behind LinearProgram. Only the C API: the wheel's C++ classes have another string ABI than Debian's compiler.
// One thread, a fixed seed and no clocks, so that a program has one answer.
#include "lib/Planner/Solve/LinearProgram.h"

#include <interfaces/highs_c_api.h>

#include <algorithm>

namespace plimsoll::planner {

/// The solver's word for "no limit".
static constexpr HighsInt unlimited = std::numeric_limits<HighsInt>::max();

int32_t LinearModel::addColumn(double columnCost, double columnLower, double columnUpper, bool isInteger) {
  cost.push_back(columnCost);
  lower.push_back(columnLower);
  upper.push_back(columnUpper);
  integer.push_back(isInteger);
  return columns() - 1;
}

int32_t LinearModel::addRow(const std::vector<LinearTerm> &terms, double atLeast, double atMost) {
  for (const LinearTerm &term : terms) {
    index.push_back(term.column);
    value.push_back(term.value);
  }
  rowStart.push_back(static_cast<int32_t>(index.size()));
  rowLower.push_back(atLeast);
  rowUpper.push_back(atMost);
  return rows() - 1;
}

struct LinearProgram::State {
  void *highs = Highs_create();
  std::vector<HighsInt> integrality;
  bool hasInteger = false; ///< the solver currently sees the integer columns

  State() = default;
  State(const State &) = delete;
  State &operator=(const State &) = delete;
  ~State() { Highs_destroy(highs); }

  HighsInt columns() const { return Highs_getNumCol(highs); }
  HighsInt rows() const { return Highs_getNumRow(highs); }
  /// Shows or hides that columns are integer; hiding keeps the basis of a run of linear programs.
  void showInteger(bool show) {
    if (show == hasInteger || integrality.empty())
      return;
    if (show)
      Highs_changeColsIntegralityByRange(highs, 0, columns() - 1, integrality.data());
    else
      Highs_clearIntegrality(highs);
    hasInteger = show;
  }
};

LinearProgram::LinearProgram(const LinearModel &model) : state(std::make_unique<State>()) {
  void *highs = state->highs;
  Highs_setBoolOptionValue(highs, "output_flag", 0);
  Highs_setIntOptionValue(highs, "threads", 1);
  Highs_setStringOptionValue(highs, "parallel", "off");
  Highs_setIntOptionValue(highs, "random_seed", 0);
  Highs_passLp(highs, model.columns(), model.rows(), static_cast<HighsInt>(model.index.size()),
               kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0.0, model.cost.data(), model.lower.data(),
               model.upper.data(), model.rowLower.data(), model.rowUpper.data(), model.rowStart.data(),
               model.index.data(), model.value.data());
  if (std::find(model.integer.begin(), model.integer.end(), 1) != model.integer.end())
    state->integrality.assign(model.integer.begin(), model.integer.end());
}

LinearProgram::~LinearProgram() = default;
LinearProgram::LinearProgram(LinearProgram &&) noexcept = default;
LinearProgram &LinearProgram::operator=(LinearProgram &&) noexcept = default;

void LinearProgram::setBounds(int32_t column, double atLeast, double atMost) {
  Highs_changeColBounds(state->highs, column, atLeast, atMost);
}

void LinearProgram::setCost(int32_t column, double cost) { Highs_changeColCost(state->highs, column, cost); }

void LinearProgram::addRow(const std::vector<LinearTerm> &terms, double atLeast, double atMost) {
  std::vector<HighsInt> index;
  std::vector<double> value;
  for (const LinearTerm &term : terms) {
    index.push_back(term.column);
    value.push_back(term.value);
  }
  Highs_addRow(state->highs, atLeast, atMost, static_cast<HighsInt>(index.size()), index.data(), value.data());
}

void LinearProgram::removeRows(int32_t first) {
  if (first < state->rows())
    Highs_deleteRowsByRange(state->highs, first, state->rows() - 1);
}

namespace {

/// A ray that proves infeasibility, in the sign convention of row duals; empty when the solver keeps none.
std::vector<double> dualRay(void *highs) {
  HighsInt has = 0;
  std::vector<double> ray(static_cast<size_t>(Highs_getNumRow(highs)));
  if (Highs_getDualRay(highs, &has, ray.data()) == kHighsStatusError || !has)
    ray.clear();
  return ray;
}

SolveStatus statusOf(HighsInt modelStatus) {
  switch (modelStatus) {
  case kHighsModelStatusOptimal:
  case kHighsModelStatusModelEmpty:
    return SolveStatus::Optimal;
  case kHighsModelStatusInfeasible:
  case kHighsModelStatusUnboundedOrInfeasible: // every column of ours that has a cost is bounded
    return SolveStatus::Infeasible;
  case kHighsModelStatusIterationLimit:
  case kHighsModelStatusSolutionLimit:
  case kHighsModelStatusObjectiveBound:
    return SolveStatus::Limit;
  default:
    return SolveStatus::Failed;
  }
}

} // namespace

LpSolution LinearProgram::solveLp(const LpOptions &options) {
  void *highs = state->highs;
  state->showInteger(false);
  Highs_setStringOptionValue(highs, "solver", options.interiorPoint ? "ipx" : "simplex");
  HighsInt limit = static_cast<HighsInt>(std::min<int64_t>(options.iterationLimit, unlimited));
  Highs_setIntOptionValue(highs, "simplex_iteration_limit", limit);
  LpSolution solution;
  if (Highs_run(highs) == kHighsStatusError)
    return solution;
  solution.status = statusOf(Highs_getModelStatus(highs));
  HighsInt iterations = 0;
  Highs_getIntInfoValue(highs, "simplex_iteration_count", &iterations);
  solution.iterations = iterations;
  if (solution.status == SolveStatus::Infeasible) {
    solution.dual = dualRay(highs);
    return solution;
  }
  HighsInt primalStatus = 0, dualStatus = 0;
  Highs_getIntInfoValue(highs, "primal_solution_status", &primalStatus);
  Highs_getIntInfoValue(highs, "dual_solution_status", &dualStatus);
  solution.primal.resize(static_cast<size_t>(state->columns()));
  solution.reducedCost.resize(solution.primal.size());
  solution.dual.resize(static_cast<size_t>(state->rows()));
  std::vector<double> rowValue(solution.dual.size());
  Highs_getSolution(highs, solution.primal.data(), solution.reducedCost.data(), rowValue.data(), solution.dual.data());
  solution.objective = Highs_getObjectiveValue(highs);
  if (primalStatus != kHighsSolutionStatusFeasible)
    solution.primal.clear();
  if (dualStatus == kHighsSolutionStatusNone)
    solution.dual.clear();
  return solution;
}

MipSolution LinearProgram::solveMip(const MipOptions &options) {
  void *highs = state->highs;
  state->showInteger(true);
  Highs_setStringOptionValue(highs, "solver", "choose");
  Highs_setIntOptionValue(highs, "simplex_iteration_limit", unlimited);
  Highs_setIntOptionValue(highs, "mip_max_nodes",
                          static_cast<HighsInt>(std::min<int64_t>(options.nodeLimit, unlimited)));
  Highs_setDoubleOptionValue(highs, "mip_rel_gap", options.relativeGap);
  if (!options.start.empty())
    Highs_setSolution(highs, options.start.data(), nullptr, nullptr, nullptr);
  MipSolution solution;
  if (Highs_run(highs) == kHighsStatusError)
    return solution;
  solution.status = statusOf(Highs_getModelStatus(highs));
  HighsInt primalStatus = 0;
  Highs_getIntInfoValue(highs, "primal_solution_status", &primalStatus);
  Highs_getDoubleInfoValue(highs, "mip_dual_bound", &solution.bound);
  if (primalStatus != kHighsSolutionStatusFeasible)
    return solution;
  solution.primal.resize(static_cast<size_t>(state->columns()));
  std::vector<double> reducedCost(solution.primal.size());
  std::vector<double> rowValue(static_cast<size_t>(state->rows())), rowDual(rowValue.size());
  Highs_getSolution(highs, solution.primal.data(), reducedCost.data(), rowValue.data(), rowDual.data());
  solution.objective = Highs_getObjectiveValue(highs);
  return solution;
}

LpBasis LinearProgram::basis() const {
  LpBasis basis;
  basis.columns.resize(static_cast<size_t>(state->columns()));
  basis.rows.resize(static_cast<size_t>(state->rows()));
  HighsInt valid = 0;
  Highs_getIntInfoValue(state->highs, "basis_validity", &valid);
  if (!valid || Highs_getBasis(state->highs, basis.columns.data(), basis.rows.data()) == kHighsStatusError)
    return {};
  return basis;
}

void LinearProgram::setBasis(const LpBasis &basis) {
  if (!basis.columns.empty())
    Highs_setBasis(state->highs, basis.columns.data(), basis.rows.data());
}

} // namespace plimsoll::planner
