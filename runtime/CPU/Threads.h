// Parallel loops over OpenMP threads, shared with oneDNN (libgomp). Which thread runs which piece is fixed by the
// numbers alone. Every parallel region asks for the same number of threads: libgomp then keeps its team and allocates
// nothing.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace plimsoll::runtime {

/// Runs body(task, worker) for every task in [0, tasks); worker in [0, threads) names the scratch slot. Task t goes to
/// worker t % threads, in rising order. One task or one thread runs in the caller.
template <typename Body> void parallelTasks(unsigned threads, int64_t tasks, const Body &body) {
  if (threads <= 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task)
      body(task, 0);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int worker = omp_get_thread_num();
    for (int64_t task = worker; task < tasks; task += omp_get_num_threads())
      body(task, worker);
  }
}

/// Runs body(begin, end) over disjoint pieces of [0, extent), one per thread, each a multiple of `grain` but the last.
template <typename Body> void parallelRange(unsigned threads, int64_t extent, int64_t grain, const Body &body) {
  const int64_t grains = (extent + grain - 1) / grain;
  const int64_t pieces = std::min<int64_t>(threads, grains);
  if (pieces <= 1)
    return body(int64_t{0}, extent);
  parallelTasks(threads, pieces, [&](int64_t piece, int) {
    const int64_t begin = grains * piece / pieces * grain, end = grains * (piece + 1) / pieces * grain;
    body(begin, std::min(end, extent));
  });
}

} // namespace plimsoll::runtime
