// The fast library calls of the CPU backend by family; private to this folder and to the conformance suite.
#pragma once

#include "runtime/CPU/TileKernels.h"
#include "runtime/Core/Backend.h"
#include "runtime/Kernels/Faults.h"

namespace plimsoll::runtime {

class DnnlEngine;

/// What a call is prepared for.
struct CallContext {
  unsigned threads = 1;
  FaultCell *faults = nullptr;        ///< may be null; outlives the call
  DnnlEngine *dnnl = nullptr;         ///< null = do without oneDNN
  const TileKernels *tiles = nullptr; ///< never null in a context that prepares calls
};

using CallPointer = std::unique_ptr<PreparedCall>;
using Operands = std::span<void *const>;

/// Checks `spec` and prepares the fastest call there is, the reference kernel where nothing is faster.
Result<CallPointer> prepareCpuCall(const CallSpec &spec, const CallContext &context);

/// Each takes a checked call and returns null when it has no fast path for it.
CallPointer makeCopyCall(const CallSpec &spec, const CallContext &context);
CallPointer makeFillCall(const CallSpec &spec, const CallContext &context);
CallPointer makeIndexedCall(const CallSpec &spec, const CallContext &context);
CallPointer makeScanCall(const CallSpec &spec, const CallContext &context);
CallPointer makePoolCall(const CallSpec &spec, const CallContext &context);
CallPointer makeDotCall(const CallSpec &spec, const CallContext &context);
CallPointer makeDnnlConvCall(const CallSpec &spec, const CallContext &context);
CallPointer makeAttentionCall(const CallSpec &spec, const CallContext &context);
CallPointer makeAttentionGradCall(const CallSpec &spec, const CallContext &context);

/// A call without workspace made of a callable `body(Operands)`; allocates only when made.
template <typename Body> class BodyCall final : public PreparedCall {
public:
  explicit BodyCall(Body work) : body(std::move(work)) {}
  void execute(Operands operands, void *) override { body(operands); }

private:
  Body body;
};

template <typename Body> CallPointer makeBodyCall(Body body) {
  return std::make_unique<BodyCall<Body>>(std::move(body));
}

} // namespace plimsoll::runtime
