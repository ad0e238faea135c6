// What the executor itself takes for a plan, so that the compiler can promise it (Memory.runtime_bytes) and the session
// can be held to it: both use the one function here.
#pragma once

#include "runtime/Artifact/Artifact_generated.h"

#include <cstdint>

namespace plimsoll::artifact {

/// Bytes of the step heap: the pool that serves the small requests libraries make inside a step.
constexpr uint64_t kStepHeapBytes = uint64_t{128} << 10;
/// Bytes of one executable record (one per command).
constexpr uint64_t kStepRecordBytes = 64;
/// Bytes of one resolved operand address.
constexpr uint64_t kOperandBytes = 8;

/// The session's tables for all entries of `plan` plus the step heap, in bytes. Tables must be present (rule A3).
uint64_t runtimeBytes(const SealedPlanT &plan);

} // namespace plimsoll::artifact
