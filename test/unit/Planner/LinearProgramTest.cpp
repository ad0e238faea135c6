// The hold on HiGHS: values and duals of programs worked out by hand, integers, infeasibility, warm starts, rows that
// come and go.
#include "lib/Planner/Solve/LinearProgram.h"

#include <gtest/gtest.h>

namespace plimsoll::planner::test {
namespace {

/// minimize 3 a + 2 b with a + b >= 1.5 and b <= 1: a = 0.5, b = 1, cost 3.5; the row's dual is 3 (one more of it is
/// a).
LinearModel coverModel() {
  LinearModel model;
  int32_t a = model.addColumn(3, 0, 1, true), b = model.addColumn(2, 0, 1, true);
  model.addRow({{a, 1}, {b, 1}}, 1.5, lpInfinity);
  return model;
}

TEST(LinearProgram, SolvesAndGivesDuals) {
  for (bool interiorPoint : {false, true}) {
    LinearProgram program(coverModel());
    LpSolution solution = program.solveLp({.interiorPoint = interiorPoint});
    ASSERT_EQ(solution.status, SolveStatus::Optimal);
    EXPECT_NEAR(solution.objective, 3.5, 1e-6);
    EXPECT_NEAR(solution.primal[0], 0.5, 1e-6);
    EXPECT_NEAR(solution.primal[1], 1, 1e-6);
    EXPECT_NEAR(solution.dual[0], 3, 1e-6);
    EXPECT_NEAR(solution.reducedCost[1], -1, 1e-6);
  }
}

TEST(LinearProgram, IntegerSolutionCostsMoreThanTheRelaxation) {
  LinearProgram program(coverModel());
  MipSolution solution = program.solveMip({.start = {1, 1}});
  ASSERT_EQ(solution.status, SolveStatus::Optimal);
  EXPECT_NEAR(solution.objective, 5, 1e-9);
  EXPECT_NEAR(solution.bound, 5, 1e-6);
  // The same object still solves the continuous program.
  EXPECT_NEAR(program.solveLp().objective, 3.5, 1e-6);
}

TEST(LinearProgram, InfeasibleProgramHasARayThatProvesIt) {
  LinearProgram program(coverModel());
  EXPECT_EQ(program.solveLp().status, SolveStatus::Optimal);
  program.setBounds(1, 0, 0.25);
  LpSolution solution = program.solveLp();
  ASSERT_EQ(solution.status, SolveStatus::Infeasible);
  ASSERT_EQ(solution.dual.size(), 1u);
  // ray * 1.5 > ray * (1 + 0.25): no x within the bounds reaches the row.
  EXPECT_GT(solution.dual[0], 0);
}

TEST(LinearProgram, RowsComeAndGo) {
  LinearProgram program(coverModel());
  program.addRow({{0, 1}}, 0.75, lpInfinity);
  LpBasis basis;
  {
    LpSolution solution = program.solveLp();
    EXPECT_NEAR(solution.objective, 0.75 * 3 + 0.75 * 2, 1e-6);
    EXPECT_EQ(solution.dual.size(), 2u);
    basis = program.basis();
    EXPECT_EQ(basis.columns.size(), 2u);
  }
  program.setBasis(basis);
  EXPECT_EQ(program.solveLp().iterations, 0);
  program.removeRows(1);
  EXPECT_NEAR(program.solveLp().objective, 3.5, 1e-6);
}

} // namespace
} // namespace plimsoll::planner::test
