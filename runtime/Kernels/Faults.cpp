// The fault cell: see Faults.h.
#include "runtime/Kernels/Faults.h"

namespace plimsoll::runtime {

void FaultCell::report(const std::string &op, int64_t position, int64_t index, int64_t extent) {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool laterCall = faultyOp && faultyOp != &op;
  const bool laterPosition = faultyOp == &op && position >= faultPosition;
  if (laterCall || laterPosition)
    return;
  faultyOp = &op;
  faultPosition = position;
  faultIndex = index;
  faultExtent = extent;
}

Status FaultCell::take() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!faultyOp)
    return Status::ok();
  const std::string range = "[-" + std::to_string(faultExtent) + ", " + std::to_string(faultExtent) + ")";
  const std::string text = "index " + std::to_string(faultIndex) + " out of range " + range + " in " + *faultyOp;
  faultyOp = nullptr;
  return badInput(text);
}

} // namespace plimsoll::runtime
