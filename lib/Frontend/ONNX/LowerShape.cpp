// Nodes that rearrange elements: views where strides allow, copies (concat, pad, gather) elsewhere.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

static Dims iotaDims(int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d)
    dims.push_back(d);
  return dims;
}

/// Finishes with the input under another shape; a scalar loss keeps its weight.
static LogicalResult doneReshaped(Lowering &lowering, ArrayRef<int64_t> shape) {
  auto &weights = lowering.importer.lossWeights;
  if (weights.count(lowering.node.inputs[0]) && lowering.wants(0))
    weights[lowering.node.outputs[0]] = weights[lowering.node.inputs[0]];
  Value x = lowering.tensor(0);
  return x ? lowering.done(graph::reshape(lowering.b, x, shape)) : lowering.bad("expected a tensor");
}

static LogicalResult lowerIdentity(Lowering &lowering) {
  auto &weights = lowering.importer.lossWeights;
  if (weights.count(lowering.node.inputs[0]) && lowering.wants(0))
    weights[lowering.node.outputs[0]] = weights[lowering.node.inputs[0]];
  if (lowering.wants(0))
    lowering.importer.values[lowering.node.outputs[0]] = lowering.value(0);
  return success();
}

static LogicalResult lowerReshape(Lowering &lowering) {
  if (!lowering.host(1))
    return lowering.unsupported("its target shape is computed from tensor values", "export with static shapes");
  auto target = reshapeTarget(*lowering.host(1), lowering.dims(0), intAttribute(lowering.node, "allowzero", 0) != 0);
  return target ? doneReshaped(lowering, *target)
                : lowering.bad("expected a target shape with the input's element count");
}

static LogicalResult lowerFlatten(Lowering &lowering) {
  Dims dims = lowering.dims(0);
  int64_t rank = static_cast<int64_t>(dims.size()), axis = intAttribute(lowering.node, "axis", 1);
  if (axis < -rank || axis > rank)
    return lowering.bad("expected an axis of the input");
  size_t at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  return doneReshaped(
      lowering, {productOf(ArrayRef<int64_t>(dims).take_front(at)), productOf(ArrayRef<int64_t>(dims).drop_front(at))});
}

static LogicalResult lowerSqueeze(Lowering &lowering) {
  Dims dims = lowering.dims(0), kept;
  bool given = findAttribute(lowering.node, "axes") || lowering.has(1);
  auto axes = axesOf(lowering.node, lowering.hosts(), 1, static_cast<int64_t>(dims.size()));
  if (!axes)
    return lowering.bad("expected known axes of the input");
  for (auto [d, size] : llvm::enumerate(dims)) {
    bool named = llvm::is_contained(*axes, static_cast<int64_t>(d));
    if (given && named && size != 1)
      return lowering.bad("expected the squeezed dimensions to have size 1");
    if (given ? !named : size != 1)
      kept.push_back(size);
  }
  return doneReshaped(lowering, kept);
}

static LogicalResult lowerUnsqueeze(Lowering &lowering) {
  Dims dims = lowering.dims(0);
  size_t added = lowering.host(1) ? lowering.host(1)->count() : intsAttribute(lowering.node, "axes").size();
  auto axes = axesOf(lowering.node, lowering.hosts(), 1, static_cast<int64_t>(dims.size() + added));
  if (!axes)
    return lowering.bad("expected known, distinct axes");
  for (int64_t axis : *axes)
    dims.insert(dims.begin() + axis, 1);
  return doneReshaped(lowering, dims);
}

static LogicalResult lowerTranspose(Lowering &lowering) {
  Dims perm;
  int64_t rank = static_cast<int64_t>(lowering.dims(0).size());
  std::vector<int64_t> given = intsAttribute(lowering.node, "perm");
  for (int64_t d = 0; d < rank; ++d)
    perm.push_back(given.empty()                            ? rank - 1 - d
                   : d < static_cast<int64_t>(given.size()) ? given[static_cast<size_t>(d)]
                                                            : -1);
  Dims sorted = perm;
  llvm::sort(sorted);
  if (sorted != iotaDims(rank) || (!given.empty() && given.size() != perm.size()))
    return lowering.bad("expected perm to be a permutation of the dimensions");
  Value x = lowering.tensor(0);
  return x ? lowering.done(graph::transpose(lowering.b, x, perm)) : lowering.bad("expected a tensor");
}

static LogicalResult lowerExpand(Lowering &lowering) {
  if (!lowering.host(1) || lowering.host(1)->dims.size() != 1)
    return lowering.unsupported("its target shape is computed from tensor values", "export with static shapes");
  std::vector<int64_t> wanted;
  for (uint64_t i = 0; i < lowering.host(1)->count() && i < 32; ++i)
    wanted.push_back(lowering.host(1)->integer(i));
  auto shape = broadcastShapes(lowering.dims(0), wanted);
  if (!shape || !elementCount(*shape))
    return lowering.bad("expected a target shape that the input broadcasts to");
  return lowering.done(lowering.broadcast(0, *shape));
}

static LogicalResult lowerShapeOf(Lowering &lowering) {
  Dims dims = lowering.dims(0);
  int64_t rank = static_cast<int64_t>(dims.size()), start = intAttribute(lowering.node, "start", 0),
          end = intAttribute(lowering.node, "end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
  return lowering.doneHost(0, hostInts({dims.begin() + start, dims.begin() + end}));
}
static LogicalResult lowerSize(Lowering &lowering) {
  return lowering.doneHost(0, hostInts({productOf(lowering.dims(0))}, true));
}

/// Elements of dimension `d` picked by known indices.
static Value gatherKnown(ImplicitLocOpBuilder &b, Importer &importer, Value x, int64_t d,
                         std::vector<int64_t> indices) {
  Dims shape(shapeOf(x));
  shape[static_cast<size_t>(d)] = static_cast<int64_t>(indices.size());
  Value list = importer.constant(hostInts(std::move(indices)));
  return graph::GatherOp::create(b, graph::tensorLike(x.getType(), shape), x, list, d);
}

static LogicalResult lowerSlice(Lowering &lowering) {
  auto slice = sliceDims(lowering.node, lowering.hosts(), lowering.dims(0));
  if (!slice)
    return lowering.bad("expected known starts, ends, axes and steps that fit the input");
  Value x = lowering.tensor(0);
  if (productOf(slice->sizes) == 0)
    return lowering.doneHost(0, hostSplat(lowering.dtype(0), slice->sizes, 0));
  for (size_t d = 0; x && d < slice->steps.size(); ++d) {
    if (slice->steps[d] > 0)
      continue;
    std::vector<int64_t> indices; // backwards: no view has a negative stride
    for (int64_t i = 0; i < slice->sizes[d]; ++i)
      indices.push_back(slice->starts[d] + i * slice->steps[d]);
    x = gatherKnown(lowering.b, lowering.importer, x, static_cast<int64_t>(d), std::move(indices));
    slice->starts[d] = 0;
    slice->steps[d] = 1;
  }
  return x ? lowering.done(sliceOf(lowering.b, x, slice->starts, slice->sizes, slice->steps))
           : lowering.bad("expected a tensor");
}

static LogicalResult lowerConcat(Lowering &lowering) {
  auto axis = normalAxis(intAttribute(lowering.node, "axis", 0), static_cast<int64_t>(lowering.dims(0).size()));
  if (!axis)
    return lowering.bad("expected an axis of the inputs");
  SmallVector<Value> operands;
  Dims shape = lowering.dims(0);
  shape[static_cast<size_t>(*axis)] = 0;
  for (size_t i = 0; i < lowering.inputs(); ++i) {
    Dims dims = lowering.dims(i), expected = shape;
    if (dims.size() != shape.size() || lowering.dtype(i) != lowering.dtype(0))
      return lowering.bad("expected inputs of one rank and element type");
    expected[static_cast<size_t>(*axis)] = dims[static_cast<size_t>(*axis)];
    if (dims != expected)
      return lowering.bad("expected inputs that agree in all dimensions but the axis");
    shape[static_cast<size_t>(*axis)] += dims[static_cast<size_t>(*axis)];
    if (productOf(dims) != 0)
      operands.push_back(lowering.tensor(i));
  }
  if (operands.size() == 1)
    return lowering.done(operands.front());
  if (operands.empty() || !elementCount(shape))
    return lowering.bad("expected at least one input with elements");
  return lowering.done(
      graph::ConcatOp::create(lowering.b, graph::tensorLike(operands.front().getType(), shape), operands, *axis));
}

static LogicalResult lowerSplit(Lowering &lowering) {
  Dims dims = lowering.dims(0);
  auto axis = normalAxis(intAttribute(lowering.node, "axis", 0), static_cast<int64_t>(dims.size()));
  bool known = !lowering.has(1) || lowering.host(1);
  auto sizes = axis && known ? splitSizes(lowering.node, lowering.host(1), dims[static_cast<size_t>(*axis)],
                                          lowering.importer.model.opset)
                             : std::nullopt;
  Value x = lowering.tensor(0);
  if (!sizes || !x || sizes->size() != lowering.node.outputs.size())
    return lowering.bad("expected known part sizes that add up to the axis, one per output");
  Dims starts(dims.size(), 0), ones(dims.size(), 1);
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    dims[static_cast<size_t>(*axis)] = size;
    if (failed(size == 0 ? lowering.doneHost(i, hostSplat(lowering.dtype(0), {dims.begin(), dims.end()}, 0))
                         : lowering.done(i, sliceOf(lowering.b, x, starts, dims, ones))))
      return failure();
    starts[static_cast<size_t>(*axis)] += size;
  }
  return success();
}

/// Repeats as broadcast into new dimensions, merged by reshape.
static LogicalResult lowerTile(Lowering &lowering) {
  Dims dims = lowering.dims(0), wide, inner, merged;
  Value x = lowering.tensor(0);
  if (!x || !lowering.host(1) || lowering.host(1)->count() != dims.size())
    return lowering.bad("expected one known repeat count per dimension");
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t repeats = lowering.host(1)->integer(d), size = 0;
    if (repeats < 1 || __builtin_mul_overflow(repeats, dims[d], &size))
      return lowering.bad("expected repeat counts >= 1");
    wide.push_back(repeats);
    wide.push_back(dims[d]);
    inner.push_back(static_cast<int64_t>(2 * d + 1));
    merged.push_back(size);
  }
  if (!elementCount(wide))
    return lowering.bad("expected a result that fits in memory");
  return lowering.done(graph::reshape(lowering.b, graph::broadcast(lowering.b, x, inner, wide), merged));
}

/// Source index of padded position `i` for the modes that copy elements.
static int64_t padSource(const std::string &mode, int64_t i, int64_t size) {
  if (mode == "edge")
    return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "wrap")
    return ((i % size) + size) % size;
  int64_t period = size == 1 ? 1 : 2 * (size - 1);
  i = ((i % period) + period) % period;
  return i < size ? i : period - i;
}

static LogicalResult lowerPad(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims dims = lowering.dims(0), low(dims.size(), 0), high(dims.size(), 0), cut(dims.size(), 0);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < (lowering.host(3) ? lowering.host(3)->count() : dims.size()) && i < 32; ++i)
    axes.push_back(normalAxis(lowering.host(3) ? lowering.host(3)->integer(i) : static_cast<int64_t>(i),
                              static_cast<int64_t>(dims.size()))
                       .value_or(-1));
  std::string mode = textAttribute(lowering.node, "mode", "constant");
  Value x = lowering.tensor(0);
  bool valueKnown = !lowering.has(2) || (lowering.host(2) && lowering.host(2)->count() == 1);
  if (!x || !lowering.host(1) || lowering.host(1)->count() != 2 * axes.size() || llvm::is_contained(axes, -1) ||
      !valueKnown || (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap"))
    return lowering.bad(
        "expected known pads (begin and end per axis), a known value and mode constant, edge, reflect or wrap");
  Dims sizes = dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t d = static_cast<size_t>(axes[i]);
    int64_t before = lowering.host(1)->integer(i), after = lowering.host(1)->integer(i + axes.size());
    constexpr int64_t most = int64_t(1) << 40;
    if (before < -most || after < -most || before > most || after > most ||
        dims[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < 1)
      return lowering.bad("expected pads that leave at least one element");
    low[d] = std::max<int64_t>(before, 0);
    high[d] = std::max<int64_t>(after, 0);
    cut[d] = std::max<int64_t>(-before, 0);
    sizes[d] = dims[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
  }
  x = sliceOf(b, x, cut, sizes, Dims(dims.size(), 1));
  Dims padded = sizes;
  for (size_t d = 0; d < sizes.size(); ++d)
    padded[d] += low[d] + high[d];
  if (!elementCount(padded))
    return lowering.bad("expected a result that fits in memory");
  if (padded == sizes)
    return lowering.done(x);
  if (mode == "constant") {
    double value = lowering.host(2) ? lowering.host(2)->real(0) : 0;
    return lowering.done(graph::PadOp::create(b, graph::tensorLike(x.getType(), padded), x, low, high,
                                              Dims(dims.size(), 0), APFloat(value)));
  }
  if (llvm::any_of(padded, [](int64_t size) { return size > (int64_t(1) << 24); }))
    return lowering.bad("expected a result that fits in memory");
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> indices;
    for (int64_t i = -low[d]; low[d] + high[d] > 0 && i < sizes[d] + high[d]; ++i)
      indices.push_back(padSource(mode, i, sizes[d]));
    if (!indices.empty())
      x = gatherKnown(b, lowering.importer, x, static_cast<int64_t>(d), std::move(indices));
  }
  return lowering.done(x);
}

static LogicalResult lowerDepthToSpace(Lowering &lowering) {
  Dims d = lowering.dims(0);
  int64_t block = intAttribute(lowering.node, "blocksize", 0);
  bool columnRow = textAttribute(lowering.node, "mode", "DCR") == "CRD";
  if (d.size() != 4 || block < 1 || block > 4096 || d[1] % (block * block) != 0)
    return lowering.bad("expected (N, C, H, W) with C divisible by blocksize squared");
  int64_t c = d[1] / (block * block);
  Dims split = columnRow ? Dims{d[0], c, block, block, d[2], d[3]} : Dims{d[0], block, block, c, d[2], d[3]};
  Dims perm = columnRow ? Dims{0, 1, 4, 2, 5, 3} : Dims{0, 3, 4, 1, 5, 2};
  Value x = graph::transpose(lowering.b, graph::reshape(lowering.b, lowering.tensor(0), split), perm);
  return lowering.done(graph::reshape(lowering.b, x, {d[0], c, d[2] * block, d[3] * block}));
}

static LogicalResult lowerSpaceToDepth(Lowering &lowering) {
  Dims d = lowering.dims(0);
  int64_t block = intAttribute(lowering.node, "blocksize", 0);
  if (d.size() != 4 || block < 1 || d[2] % block != 0 || d[3] % block != 0)
    return lowering.bad("expected (N, C, H, W) with H and W divisible by blocksize");
  Value x = graph::reshape(lowering.b, lowering.tensor(0), {d[0], d[1], d[2] / block, block, d[3] / block, block});
  bool columnRow = textAttribute(lowering.node, "mode", "DCR") == "CRD";
  x = graph::transpose(lowering.b, x, columnRow ? Dims{0, 1, 3, 5, 2, 4} : Dims{0, 3, 5, 1, 2, 4});
  return lowering.done(graph::reshape(lowering.b, x, {d[0], d[1] * block * block, d[2] / block, d[3] / block}));
}

/// The kept triangle as a known mask.
static LogicalResult lowerTrilu(Lowering &lowering) {
  Dims dims = lowering.dims(0);
  Value x = lowering.tensor(0);
  if (!x || dims.size() < 2 || (lowering.has(1) && !lowering.host(1)))
    return lowering.bad("expected a matrix and a known diagonal");
  Node mask;
  mask.opType = "Trilu";
  mask.attributes = lowering.node.attributes;
  HostTensor ones = hostSplat(DType::Bool, {dims[dims.size() - 2], dims.back()}, 1);
  auto triangle = foldMovement(mask, {&ones, lowering.host(1)}, lowering.importer.model.opset);
  if (!triangle)
    return lowering.bad("expected a matrix of moderate size");
  Value keep = lowering.importer.constantBroadcast(triangle->front(), dims);
  return lowering.done(selectOf(lowering.b, keep, x, constantLike(lowering.b, x, 0)));
}

void addShapeOps(LowerTable &table) {
  table["Identity"] = lowerIdentity;
  table["Reshape"] = lowerReshape;
  table["Flatten"] = lowerFlatten;
  table["Squeeze"] = lowerSqueeze;
  table["Unsqueeze"] = lowerUnsqueeze;
  table["Transpose"] = lowerTranspose;
  table["Expand"] = lowerExpand;
  table["Shape"] = lowerShapeOf;
  table["Size"] = lowerSize;
  table["Slice"] = lowerSlice;
  table["Concat"] = lowerConcat;
  table["Split"] = lowerSplit;
  table["Tile"] = lowerTile;
  table["Pad"] = lowerPad;
  table["DepthToSpace"] = lowerDepthToSpace;
  table["SpaceToDepth"] = lowerSpaceToDepth;
  table["Trilu"] = lowerTrilu;
}

} // namespace plimsoll::onnx
