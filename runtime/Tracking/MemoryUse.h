// The process's own memory figures, as the kernel reports them.
#pragma once

#include <cstdint>

namespace plimsoll::runtime {

/// Highest resident set of this process so far, in bytes (VmHWM of /proc/self/status); 0 where that file is missing.
uint64_t processPeakBytes();

} // namespace plimsoll::runtime
