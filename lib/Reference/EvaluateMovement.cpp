// Gather, scatter, running sums and random numbers.
#include "lib/Reference/Rules.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::reference {

// Every index into [0, size), negative ones counted from the end.
static FailureOr<std::vector<int64_t>> resolveIndices(Operation *op, const HostTensor &indices, int64_t size) {
  std::vector<int64_t> resolved = indices.ints;
  for (int64_t &index : resolved) {
    if (index < -size || index >= size)
      return op->emitOpError("index ") << index << " out of range [" << -size << ", " << size << ")";
    index += index < 0 ? size : 0;
  }
  return resolved;
}

/// Pairs the elements of (A..., I..., B...) with those of (A..., D, B...): the one rule behind gather and scatter_add.
static void forEachGathered(ArrayRef<int64_t> data, ArrayRef<int64_t> resolved, int64_t axis,
                            function_ref<void(int64_t, int64_t)> pair) {
  int64_t outer = 1, inner = 1, position = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(data.size()); ++d)
    (d < axis ? outer : inner) *= d == axis ? 1 : data[d];
  for (int64_t a = 0; a < outer; ++a)
    for (int64_t index : resolved)
      for (int64_t b = 0; b < inner; ++b)
        pair(position++, (a * data[axis] + index) * inner + b);
}

/// Pairs the elements of `indices` with those of the data they name along `axis`.
static void forEachElement(ArrayRef<int64_t> data, ArrayRef<int64_t> indices, ArrayRef<int64_t> resolved, int64_t axis,
                           function_ref<void(int64_t, int64_t)> pair) {
  int64_t position = 0;
  forEachIndex(indices, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> source(index);
    source[axis] = resolved[position];
    pair(position, linearIndex(source, data));
    ++position;
  });
}

static auto copyInto(Frame &frame) {
  return [&frame](int64_t to, int64_t from) {
    if (frame.in[0]->isFloat())
      frame.out[0].floats[to] = frame.in[0]->floats[from];
    else
      frame.out[0].ints[to] = frame.in[0]->ints[from];
  };
}
static auto addInto(Frame &frame) {
  return [&frame](int64_t from, int64_t to) { frame.out[0].floats[to] += frame.in[1]->floats[from]; };
}

static FailureOr<bool> evaluateGatherLike(Frame &frame) {
  bool scatters = isa<ScatterAddOp, ScatterAddElementsOp>(frame.op);
  auto axis = frame.op->getAttrOfType<IntegerAttr>("axis").getInt();
  const HostTensor &indices = *frame.in[scatters ? 0 : 1];
  ArrayRef<int64_t> data = scatters ? frame.out[0].shape() : frame.in[0]->shape();
  FailureOr<std::vector<int64_t>> resolved = resolveIndices(frame.op, indices, data[axis]);
  if (failed(resolved))
    return failure();
  bool byElement = isa<GatherElementsOp, ScatterAddElementsOp>(frame.op);
  auto walk = [&](auto pair) {
    byElement ? forEachElement(data, indices.shape(), *resolved, axis, pair)
              : forEachGathered(data, *resolved, axis, pair);
  };
  if (scatters)
    walk(addInto(frame));
  else
    walk(copyInto(frame));
  return true;
}

template <typename T>
static void runningSum(CumsumOp op, ArrayRef<int64_t> positions, const std::vector<T> &from, std::vector<T> &to) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  T sum = 0;
  size_t count = positions.size();
  for (size_t i = 0; i < count; ++i) {
    int64_t at = positions[op.getReverse() ? count - 1 - i : i];
    T before = sum;
    sum = static_cast<T>(static_cast<Sum>(sum) + static_cast<Sum>(from[at])); // integers wrap
    to[at] = op.getExclusive() ? before : sum;
  }
}

static void evaluateCumsum(CumsumOp op, Frame &frame) {
  int64_t axis = op.getAxis();
  forEachRow(frame.in[0]->shape(), axis, [&](int64_t, ArrayRef<int64_t> positions) {
    if (frame.in[0]->isFloat())
      runningSum(op, positions, frame.in[0]->floats, frame.out[0].floats);
    else
      runningSum(op, positions, frame.in[0]->ints, frame.out[0].ints);
  });
}

// Ten rounds; multipliers and key increments are those of the paper (Salmon et al., SC'11, section 3).
double philoxUniform(uint64_t seed, uint64_t step, uint64_t opId, uint64_t element) {
  uint32_t counter[4] = {static_cast<uint32_t>(element / 4), static_cast<uint32_t>(opId), static_cast<uint32_t>(step),
                         static_cast<uint32_t>(step >> 32)};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t{0xD2511F53} * counter[0], second = uint64_t{0xCD9E8D57} * counter[2];
    uint32_t next[4] = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
                        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    std::copy(next, next + 4, counter);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return static_cast<double>(counter[element % 4] >> 8) / 16777216.0;
}

static void evaluateRandomUniform(RandomUniformOp op, Frame &frame) {
  auto seed = static_cast<uint64_t>(frame.in[0]->ints[0]), step = static_cast<uint64_t>(frame.in[0]->ints[1]);
  for (int64_t i = 0; i < frame.out[0].size(); ++i)
    frame.out[0].floats[i] = philoxUniform(seed, step, op.getOpId(), static_cast<uint64_t>(i));
}

FailureOr<bool> evaluateMovement(Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(frame.op)
      .Case<GatherOp, ScatterAddOp, GatherElementsOp, ScatterAddElementsOp>(
          [&](auto) { return evaluateGatherLike(frame); })
      .Case<CumsumOp>([&](auto op) { return evaluateCumsum(op, frame), true; })
      .Case<RandomUniformOp>([&](auto op) { return evaluateRandomUniform(op, frame), true; })
      .Default([](Operation *) { return false; });
}

} // namespace plimsoll::reference
