// Problems as text: any compile's problem can be written, read by people, replayed in a test and solved by others.
//
//   plimsoll-problem 1
//   alignment 256
//   storage "wte" bytes 4096 class parameter persistent source "transformer.wte"
//   storage "x" bytes 64 class input
//   storage "loss" bytes 4 class output
//   step "forward" read %0 read %1 write %2 workspace 512 cost 1.5e-06
//   input %1
//   output %2
//
// A problem with transfers, made by a schedule, also has:
//   storage "x.host" bytes 64 class input tier host
//   step "x.out" copy read %1 write %3 cost 1e-05
//   step "x.out.wait" wait 1 read %1 read %3
//
// %n is the n-th storage line, counted from 0. A step's clauses: read, write, readwrite (in any order),
// `inplace %operand %result`, workspace, cost, copy, `wait N` (for the copy that is the N-th step line). Strings are
// quoted, with \" \\ \n \t \r and \xHH. '#' starts a comment.
#pragma once

#include "plimsoll/Planner/Packing.h"
#include "plimsoll/Planner/Problem.h"

#include <string>
#include <string_view>

namespace plimsoll::planner {

/// The canonical text of a problem: same problem, same bytes. parseProblem() of it gives the same problem back.
std::string writeProblem(const Problem &problem);

/// Reads a problem. Fails with BadInput and "line N: ..." on the first malformed line. Does not run Problem::check():
/// a well-spelled but meaningless problem is still readable.
Result<Problem> parseProblem(std::string_view text);

/// `id,lower,upper,size` (and `offset` when a solution is given), a header and one line an item.
std::string writePackingCsv(const PackingProblem &problem, const PackingSolution *solution = nullptr);

/// Reads minimalloc's CSV. The header names the columns in any order (id, lower, upper, size; offset is ignored);
/// without one the order is id, lower, upper, size. Lifetimes are half-open. Fails with BadInput and the line number.
Result<PackingProblem> parsePackingCsv(std::string_view text);

} // namespace plimsoll::planner
