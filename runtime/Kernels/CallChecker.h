// The pen of checkCall: holds the call under test and its first violated rule. Private to this folder.
#pragma once

#include "runtime/Kernels/CallTools.h"

namespace plimsoll::runtime {

class CallChecker {
public:
  explicit CallChecker(const CallSpec &call) : spec(call) {}

  /// Records the first violation; returns `holds` so that rules chain with &&.
  bool require(bool holds, const char *rule, const std::string &text) {
    if (!holds && status.isOk())
      status = badInput(spec.op + " (rule " + rule + "): " + text);
    return holds;
  }

  const TensorSpec &operand(size_t index) const { return spec.operands[index]; }
  const std::vector<int64_t> &shape(size_t index) const { return spec.operands[index].shape; }
  size_t rank(size_t index) const { return spec.operands[index].shape.size(); }

  const CallSpec &spec;
  Status status;
};

/// Shape rules of one operation, run after the general rules K1..K9. Each returns false after recording a violation.
bool checkCopy(CallChecker &check);
bool checkDot(CallChecker &check);
bool checkConv(CallChecker &check);
bool checkPool(CallChecker &check);
bool checkPoolGrad(CallChecker &check);
bool checkGather(CallChecker &check);
bool checkScatterAdd(CallChecker &check);
bool checkGatherElements(CallChecker &check);
bool checkScatterAddElements(CallChecker &check);
bool checkCumsum(CallChecker &check);
bool checkRandomUniform(CallChecker &check);
bool checkAttention(CallChecker &check);
bool checkAttentionGrad(CallChecker &check);

} // namespace plimsoll::runtime
