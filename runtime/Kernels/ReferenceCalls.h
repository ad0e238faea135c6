// The reference kernels by family; private to this folder. Each maker takes a checked call and returns null when the
// operation belongs to another family.
#pragma once

#include "runtime/Kernels/CallTools.h"
#include "runtime/Kernels/Faults.h"

#include <functional>

namespace plimsoll::runtime {

using Operands = std::span<void *const>;

/// A reference call: the checked spec and the loops as a function of the operand addresses.
class ReferenceCall final : public PreparedCall {
public:
  using Body = std::function<void(Operands)>;
  explicit ReferenceCall(Body loops) : body(std::move(loops)) {}
  void execute(Operands operands, void *) override { body(operands); }

private:
  Body body;
};

/// Each returns the loops of `spec`, or an empty function when the operation is not of the family.
ReferenceCall::Body referenceMovement(const CallSpec &spec);
ReferenceCall::Body referenceIndexed(const CallSpec &spec, FaultCell *faults);
ReferenceCall::Body referenceScan(const CallSpec &spec);
ReferenceCall::Body referenceDot(const CallSpec &spec);
ReferenceCall::Body referenceConv(const CallSpec &spec);
ReferenceCall::Body referencePool(const CallSpec &spec, FaultCell *faults);
ReferenceCall::Body referenceAttention(const CallSpec &spec);

/// Calls `make` with a value of the C++ type of a float dtype: makeForFloat(dtype, [&](auto zero) { ... }).
template <typename Make> auto makeForFloat(artifact::DType dtype, Make make) {
  return dtype == artifact::DType::F64 ? make(double{}) : make(float{});
}

/// The element `index` of `tensor` at address `base`.
template <typename T> T &at(void *base, const TensorSpec &tensor, const int64_t *index) {
  return static_cast<T *>(base)[elementOffset(tensor, index)];
}

/// Reads element `position` of contiguous I32 or I64 indices.
inline int64_t readIndex(const void *indices, artifact::DType dtype, int64_t position) {
  return dtype == artifact::DType::I64 ? static_cast<const int64_t *>(indices)[position]
                                       : static_cast<const int32_t *>(indices)[position];
}

} // namespace plimsoll::runtime
