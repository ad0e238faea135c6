// Linear and mixed-integer programs, and a thin hold on the HiGHS solver through its C API. Nothing else of the planner
// sees the solver. Everything is single-threaded and limited by counted work, so results are equal on every machine.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace plimsoll::planner {

inline constexpr double lpInfinity = std::numeric_limits<double>::infinity();

/// One coefficient of a row.
struct LinearTerm {
  int32_t column = 0;
  double value = 0;
};

/// minimize cost . x  subject to  rowLower <= A x <= rowUpper,  lower <= x <= upper,  some x integer.
struct LinearModel {
  std::vector<double> cost, lower, upper; ///< per column
  std::vector<uint8_t> integer;           ///< per column; only solveMip() looks at it
  std::vector<double> rowLower, rowUpper; ///< per row
  std::vector<int32_t> rowStart{0};       ///< positions in `index` and `value`, one more than rows
  std::vector<int32_t> index;             ///< columns, row by row
  std::vector<double> value;

  int32_t addColumn(double columnCost, double columnLower = 0, double columnUpper = 1, bool isInteger = false);
  /// Appends a row and returns its index. Terms name each column at most once.
  int32_t addRow(const std::vector<LinearTerm> &terms, double atLeast, double atMost);
  int32_t columns() const { return static_cast<int32_t>(cost.size()); }
  int32_t rows() const { return static_cast<int32_t>(rowLower.size()); }
};

enum class SolveStatus : uint8_t {
  Optimal,    ///< within the solver's tolerances
  Infeasible, ///< no solution; an LP has a dual ray in `dual` when the solver has one
  Limit,      ///< the work limit was reached; primal may hold the best solution so far
  Failed      ///< the solver gave up
};

struct LpSolution {
  SolveStatus status = SolveStatus::Failed;
  double objective = 0;
  std::vector<double> primal;      ///< per column; empty when there is none
  std::vector<double> dual;        ///< per row; of an infeasible program: a ray that proves it, or empty
  std::vector<double> reducedCost; ///< per column
  int64_t iterations = 0;          ///< of the simplex method
};

struct MipSolution {
  SolveStatus status = SolveStatus::Failed;
  double objective = 0;
  double bound = -lpInfinity; ///< what the solver claims; never a proof
  std::vector<double> primal; ///< per column; empty when no solution was found
};

/// Work limits; counted, so that results do not depend on the machine.
struct LpOptions {
  bool interiorPoint = false; ///< with crossover; for big programs
  int64_t iterationLimit = std::numeric_limits<int32_t>::max();
};
struct MipOptions {
  int64_t nodeLimit = std::numeric_limits<int32_t>::max();
  double relativeGap = 1e-6;
  std::vector<double> start; ///< a solution to begin with; may be empty
};

/// Which columns and rows are basic; as the solver numbers it.
struct LpBasis {
  std::vector<int32_t> columns, rows;
};

/// A program loaded into the solver. Not thread-safe; movable.
class LinearProgram {
public:
  explicit LinearProgram(const LinearModel &model);
  ~LinearProgram();
  LinearProgram(LinearProgram &&) noexcept;
  LinearProgram &operator=(LinearProgram &&) noexcept;

  void setBounds(int32_t column, double atLeast, double atMost);
  void setCost(int32_t column, double cost);
  /// Appends a row; later solutions have one more dual.
  void addRow(const std::vector<LinearTerm> &terms, double atLeast, double atMost);
  /// Removes the rows from `first` on.
  void removeRows(int32_t first);

  /// Solves the continuous program; a later call starts from the last basis.
  LpSolution solveLp(const LpOptions &options = {});
  /// Solves with the integer columns of the model; the continuous program's state is lost.
  MipSolution solveMip(const MipOptions &options);

  /// The basis of the last solveLp(); empty when there is none.
  LpBasis basis() const;
  void setBasis(const LpBasis &basis);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace plimsoll::planner
