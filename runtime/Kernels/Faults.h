// A fault is what a kernel finds wrong in the data it reads while a step runs: an index outside its range. Kernels
// cannot return it (execute() is void), so they leave it in a cell that Backend::synchronize() empties.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <mutex>
#include <string>

namespace plimsoll::runtime {

/// Holds the first fault since the last take(): of the first faulty call, the one at the lowest position, so that the
/// message does not depend on the number of threads. Thread-safe; report() allocates nothing.
class FaultCell {
public:
  /// Records that element `position` of the call's indices held `index` where [-extent, extent) was expected. `op`
  /// must outlive the cell's next take().
  void report(const std::string &op, int64_t position, int64_t index, int64_t extent);

  /// The recorded fault as BadInput, or ok; the cell is empty afterwards.
  Status take();

private:
  std::mutex mutex;
  const std::string *faultyOp = nullptr;
  int64_t faultPosition = 0;
  int64_t faultIndex = 0;
  int64_t faultExtent = 0;
};

/// Wraps a possibly negative index into [0, extent). Returns -1 when it is outside [-extent, extent).
inline int64_t wrapIndex(int64_t index, int64_t extent) {
  if (index < -extent || index >= extent)
    return -1;
  return index < 0 ? index + extent : index;
}

} // namespace plimsoll::runtime
