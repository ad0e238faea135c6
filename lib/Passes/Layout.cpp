// View resolution. A reshape keeps its strides when every group of merged or split dimensions is itself dense; this is
// the rule numpy calls "attempt_nocopy_reshape", restated: walk both shapes from the left, match products, and require
// that the source dimensions inside one product step each other without gaps.
#include "lib/Passes/Layout.h"

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;

SmallVector<int64_t> plimsoll::denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

bool plimsoll::isDense(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected)
      return false;
    expected *= shape[d];
  }
  return true;
}

// Strides of the dimensions `to` that together cover the dense run of source dimensions `from` (both without size-1
// dims).
static bool splitRun(ArrayRef<int64_t> from, ArrayRef<int64_t> fromStrides, ArrayRef<int64_t> to,
                     SmallVectorImpl<int64_t> &strides) {
  for (size_t d = 0; d + 1 < from.size(); ++d)
    if (fromStrides[d] != fromStrides[d + 1] * from[d + 1])
      return false;
  SmallVector<int64_t> run(to.size(), fromStrides.back());
  for (size_t d = to.size(); d-- > 1;)
    run[d - 1] = run[d] * to[d];
  strides.append(run);
  return true;
}

static std::optional<SmallVector<int64_t>> reshapedStrides(ArrayRef<int64_t> from, ArrayRef<int64_t> fromStrides,
                                                           ArrayRef<int64_t> to) {
  if (llvm::is_contained(from, 0))
    return denseStrides(to);
  SmallVector<int64_t> source, sourceStrides, target, packed;
  for (auto [size, stride] : llvm::zip_equal(from, fromStrides))
    if (size != 1) {
      source.push_back(size);
      sourceStrides.push_back(stride);
    }
  llvm::copy_if(to, std::back_inserter(target), [](int64_t size) { return size != 1; });
  for (size_t i = 0, j = 0; i < source.size() || j < target.size();) {
    size_t iEnd = i + 1, jEnd = j + 1;
    int64_t left = source[i], right = target[j];
    while (left != right) {
      if (left < right)
        left *= source[iEnd++];
      else
        right *= target[jEnd++];
    }
    if (!splitRun(ArrayRef(source).slice(i, iEnd - i), ArrayRef(sourceStrides).slice(i, iEnd - i),
                  ArrayRef(target).slice(j, jEnd - j), packed))
      return std::nullopt;
    i = iEnd;
    j = jEnd;
  }
  SmallVector<int64_t> strides(to.size(), 0);
  for (size_t d = to.size(), next = packed.size(); d-- > 0;)
    strides[d] = to[d] != 1 ? packed[--next] : (d + 1 < to.size() ? strides[d + 1] * to[d + 1] : 1);
  return strides;
}

static StorageWindow throughBroadcast(BroadcastOp op, StorageWindow window) {
  SmallVector<int64_t> strides(op.getType().getRank(), 0);
  for (auto [d, target] : llvm::enumerate(op.getDims()))
    if (op.getOperand().getType().getDimSize(d) == op.getType().getDimSize(target))
      strides[target] = window.strides[d];
  window.strides = strides;
  return window;
}

static StorageWindow throughTranspose(TransposeOp op, StorageWindow window) {
  SmallVector<int64_t> strides;
  for (int64_t source : op.getPerm())
    strides.push_back(window.strides[source]);
  window.strides = strides;
  return window;
}

static StorageWindow throughSlice(SliceOp op, StorageWindow window) {
  for (auto [d, start] : llvm::enumerate(op.getStarts())) {
    window.offset += start * window.strides[d];
    window.strides[d] *= op.getStrides()[d];
  }
  return window;
}

std::optional<StorageWindow> plimsoll::windowOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasTrait<GraphView>())
    return StorageWindow{value, 0, denseStrides(tensorType(value).getShape())};
  std::optional<StorageWindow> inner = windowOf(op->getOperand(0));
  if (!inner)
    return std::nullopt;
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return throughBroadcast(broadcast, *inner);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return throughTranspose(transpose, *inner);
  if (auto slice = dyn_cast<SliceOp>(op))
    return throughSlice(slice, *inner);
  auto reshape = cast<ReshapeOp>(op);
  ArrayRef<int64_t> from = reshape.getOperand().getType().getShape(), to = reshape.getType().getShape();
  std::optional<SmallVector<int64_t>> strides = reshapedStrides(from, inner->strides, to);
  if (!strides)
    return std::nullopt;
  inner->strides = *strides;
  return inner;
}

bool plimsoll::isWholeStorage(Value value) {
  std::optional<StorageWindow> window = windowOf(value);
  return window && window->offset == 0 &&
         tensorType(window->base).getNumElements() == tensorType(value).getNumElements() &&
         isDense(tensorType(value).getShape(), window->strides);
}

bool plimsoll::hasOwnStorage(Value value) {
  std::optional<StorageWindow> window = windowOf(value);
  Operation *owner = window ? window->base.getDefiningOp() : nullptr;
  return owner && !isa<ReadOp>(owner) && isWholeStorage(value);
}
