// Chooses the kernel of a library call: see CpuCalls.h and README.md.
#include "runtime/CPU/CpuCalls.h"

#include "runtime/Kernels/Check.h"
#include "runtime/Kernels/Reference.h"

namespace plimsoll::runtime {

Result<CallPointer> prepareCpuCall(const CallSpec &spec, const CallContext &context) {
  if (Status status = checkCall(spec); !status)
    return status;
  static constexpr auto makers = {makeDotCall,  makeCopyCall, makeFillCall,      makeDnnlConvCall,     makeIndexedCall,
                                  makeScanCall, makePoolCall, makeAttentionCall, makeAttentionGradCall};
  for (const auto &make : makers)
    if (CallPointer call = make(spec, context))
      return call;
  return prepareReference(spec, context.faults);
}

} // namespace plimsoll::runtime
