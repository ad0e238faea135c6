// What the executor itself takes for a plan.
#include "runtime/Artifact/RuntimeBytes.h"

namespace plimsoll::artifact {

/// Operand addresses a command needs at run time; a library call's workspace has its place in the record instead.
static uint64_t operandAddresses(const CommandT &command) {
  if (const LaunchT *launch = command.body.AsLaunch())
    return launch->operands.size();
  if (const LibraryCallT *call = command.body.AsLibraryCall())
    return call->operands.size() - (call->workspace >= 0 && !call->operands.empty() ? 1 : 0);
  return 0;
}

uint64_t runtimeBytes(const SealedPlanT &plan) {
  uint64_t bytes = kStepHeapBytes;
  for (const auto &entry : plan.entries)
    for (const auto &command : entry->commands)
      bytes += kStepRecordBytes + kOperandBytes * operandAddresses(*command);
  return bytes;
}

} // namespace plimsoll::artifact
