// Chooses the reference kernel of a call: see Reference.h.
#include "runtime/Kernels/Reference.h"

#include "runtime/Kernels/Check.h"
#include "runtime/Kernels/ReferenceCalls.h"

namespace plimsoll::runtime {

Result<std::unique_ptr<PreparedCall>> prepareReference(const CallSpec &spec, FaultCell *faults) {
  if (Status status = checkCall(spec); !status)
    return status;
  ReferenceCall::Body body = referenceMovement(spec);
  if (!body)
    body = referenceIndexed(spec, faults);
  if (!body)
    body = referenceScan(spec);
  if (!body)
    body = referenceDot(spec);
  if (!body)
    body = referenceConv(spec);
  if (!body)
    body = referencePool(spec, faults);
  if (!body)
    body = referenceAttention(spec);
  if (!body)
    return internalError("library operation '" + spec.op + "' has rules but no reference kernel");
  return std::unique_ptr<PreparedCall>(std::make_unique<ReferenceCall>(std::move(body)));
}

} // namespace plimsoll::runtime
