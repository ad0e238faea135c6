// Fast copy and fill. A fill is a copy from one element seen with stride 0 everywhere; the reference fill writes that
// element, so that the conversion from double lives in one place.
#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/StridedCopy.h"
#include "runtime/Kernels/Reference.h"

#include <array>

namespace plimsoll::runtime {

CallPointer makeCopyCall(const CallSpec &spec, const CallContext &context) {
  if (spec.op != "copy")
    return nullptr;
  return makeBodyCall([copy = StridedCopy(spec.operands[0], spec.operands[1]), threads = context.threads](Operands o) {
    copy.run(o[0], o[1], threads);
  });
}

/// The bytes of one element holding the fill value.
static std::array<char, 8> fillElement(const CallSpec &spec) {
  CallSpec single = spec;
  single.operands[0].shape = {1};
  single.operands[0].strides = {1};
  std::array<char, 8> element{};
  void *address = element.data();
  if (auto call = prepareReference(single))
    (*call)->execute({&address, 1}, nullptr);
  return element;
}

CallPointer makeFillCall(const CallSpec &spec, const CallContext &context) {
  if (spec.op != "fill")
    return nullptr;
  TensorSpec source = spec.operands[0];
  source.strides.assign(source.shape.size(), 0);
  return makeBodyCall([copy = StridedCopy(source, spec.operands[0]), alignedElement = fillElement(spec),
                       threads = context.threads](Operands o) { copy.run(alignedElement.data(), o[0], threads); });
}

} // namespace plimsoll::runtime
