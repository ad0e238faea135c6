// Gathers, scatters into known places, one-hot, running sums. Indices known at import become views wherever they can.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;
using plimsoll::graph::CompareDirection;

namespace plimsoll::onnx {

static bool isIndex(DType dtype) { return dtype == DType::I64 || dtype == DType::I32; }

/// Known indices with negatives counted from the end; nullopt when one is outside [-size, size).
static std::optional<std::vector<int64_t>> normalIndices(const HostTensor &indices, int64_t size) {
  std::vector<int64_t> list;
  for (uint64_t i = 0; i < indices.count(); ++i) {
    std::optional<int64_t> at = normalAxis(indices.integer(i), size);
    if (!at)
      return std::nullopt;
    list.push_back(*at);
  }
  return list;
}

/// The common positive step of an arithmetic sequence (1 for a single element), or nullopt.
static std::optional<int64_t> commonStep(const std::vector<int64_t> &list) {
  int64_t step = list.size() > 1 ? list[1] - list[0] : 1;
  for (size_t i = 1; i < list.size(); ++i)
    if (list[i] - list[i - 1] != step)
      return std::nullopt;
  return step > 0 ? std::optional(step) : std::nullopt;
}

/// Gather along `axis` with known indices: a slice when they are evenly spaced.
static Value gatherKnownRows(Lowering &lowering, Value x, int64_t axis, const std::vector<int64_t> &list) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims sizes(shapeOf(x)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes[static_cast<size_t>(axis)] = static_cast<int64_t>(list.size());
  if (std::optional<int64_t> step = commonStep(list)) {
    starts[static_cast<size_t>(axis)] = list.front();
    steps[static_cast<size_t>(axis)] = *step;
    return sliceOf(b, x, starts, sizes, steps);
  }
  Value indices = lowering.importer.constant(hostInts(list));
  return graph::GatherOp::create(b, graph::tensorLike(x.getType(), sizes), x, indices, axis);
}

static LogicalResult lowerGather(Lowering &lowering) {
  Value x = lowering.tensor(0);
  Dims from = lowering.dims(0), indexDims = lowering.dims(1);
  auto axis = normalAxis(intAttribute(lowering.node, "axis", 0), static_cast<int64_t>(from.size()));
  if (!x || !axis || !isIndex(lowering.dtype(1)))
    return lowering.bad("expected a tensor, i32 or i64 indices and an axis of the tensor");
  auto shapeWith = [&](ArrayRef<int64_t> middle) {
    Dims shape(from.begin(), from.begin() + *axis);
    shape.append(middle.begin(), middle.end());
    shape.append(from.begin() + *axis + 1, from.end());
    return shape;
  };
  Dims shape = shapeWith(indexDims);
  if (!elementCount(shape))
    return lowering.bad("expected a result that fits in memory");
  if (const HostTensor *known = lowering.host(1)) {
    HostTensor small = *known;
    findSplat(small);
    small = shrinkRepeats(small);
    auto list = normalIndices(small, from[static_cast<size_t>(*axis)]);
    if (!list || list->empty())
      return lowering.bad("expected indices inside the axis");
    Value picked = gatherKnownRows(lowering, x, *axis, *list);
    picked = graph::reshape(lowering.b, picked, shapeWith(small.dims));
    Dims identity;
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
      identity.push_back(d);
    return lowering.done(graph::broadcast(lowering.b, picked, identity, shape));
  }
  return lowering.done(
      graph::GatherOp::create(lowering.b, graph::tensorLike(x.getType(), shape), x, lowering.tensor(1), *axis));
}

static LogicalResult lowerGatherElements(Lowering &lowering) {
  Value x = lowering.tensor(0), indices = lowering.tensor(1);
  Dims from = lowering.dims(0), to = lowering.dims(1);
  auto axis = normalAxis(intAttribute(lowering.node, "axis", 0), static_cast<int64_t>(from.size()));
  if (!x || !indices || !axis || !isIndex(lowering.dtype(1)) || from.size() != to.size())
    return lowering.bad("expected a tensor and indices of one rank and an axis of both");
  for (size_t d = 0; d < from.size(); ++d)
    if (static_cast<int64_t>(d) != *axis && to[d] > from[d])
      return lowering.bad("expected indices that fit in the tensor outside the axis");
  return lowering.done(
      graph::GatherElementsOp::create(lowering.b, graph::tensorLike(x.getType(), to), x, indices, *axis));
}

/// Shapes of a GatherND or ScatterND: `batch` leading dims shared, `width` dims indexed.
struct TupleIndexing {
  size_t batch = 0, width = 0;
  Dims tuples; ///< indices' shape without the last dimension
  Dims rest;   ///< data's dims behind the indexed ones
};

static std::optional<TupleIndexing> tupleIndexing(const Lowering &lowering) {
  Dims data = lowering.dims(0), indices = lowering.dims(1);
  int64_t batch = intAttribute(lowering.node, "batch_dims", 0);
  if (indices.empty() || indices.back() < 1 || !isIndex(lowering.dtype(1)) || batch < 0 ||
      batch + indices.back() > static_cast<int64_t>(data.size()) || batch >= static_cast<int64_t>(indices.size()))
    return std::nullopt;
  TupleIndexing shape{static_cast<size_t>(batch),
                      static_cast<size_t>(indices.back()),
                      Dims(ArrayRef<int64_t>(indices).drop_back()),
                      {}};
  shape.rest.append(data.begin() + batch + indices.back(), data.end());
  for (size_t d = 0; d < shape.batch; ++d)
    if (data[d] != indices[d])
      return std::nullopt;
  return shape;
}

/// Flat row numbers (tuples' shape) into data reshaped to (product of batch and indexed dims, rest...), on the host.
static std::optional<std::vector<int64_t>> knownRows(const HostTensor &indices, ArrayRef<int64_t> data,
                                                     const TupleIndexing &shape) {
  std::vector<int64_t> rows;
  uint64_t tuples = static_cast<uint64_t>(productOf(shape.tuples));
  uint64_t batches = static_cast<uint64_t>(productOf(data.take_front(shape.batch)));
  for (uint64_t t = 0; t < tuples; ++t) {
    int64_t row = static_cast<int64_t>(t / (tuples / batches));
    for (size_t k = 0; k < shape.width; ++k) {
      int64_t size = data[shape.batch + k];
      std::optional<int64_t> at = normalAxis(indices.integer(t * shape.width + k), size);
      if (!at)
        return std::nullopt;
      row = row * size + *at;
    }
    rows.push_back(row);
  }
  return rows;
}

/// The same for indices that are computed at run time.
static Value computedRows(Lowering &lowering, ArrayRef<int64_t> data, const TupleIndexing &shape) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value indices = lowering.tensor(1), rows;
  for (size_t k = 0; k < shape.width; ++k) {
    Dims starts(shapeOf(indices).size(), 0), sizes(shapeOf(indices)), ones(starts.size(), 1);
    starts.back() = static_cast<int64_t>(k);
    sizes.back() = 1;
    Value at = graph::reshape(b, sliceOf(b, indices, starts, sizes, ones), shape.tuples);
    Value size = constantLike(b, at, static_cast<double>(data[shape.batch + k]));
    Value negative = graph::compare(b, CompareDirection::LT, at, constantLike(b, at, 0));
    at = selectOf(b, negative, graph::AddOp::create(b, at, size), at);
    rows = rows ? graph::AddOp::create(b, graph::MulOp::create(b, rows, size), at).getResult() : at;
  }
  int64_t block = productOf(data.slice(shape.batch, shape.width)), stride = block;
  for (size_t d = shape.batch; d-- > 0;) {
    Value step = graph::IotaOp::create(b, rows.getType(), static_cast<int64_t>(d));
    rows = graph::AddOp::create(b, rows,
                                graph::MulOp::create(b, step, constantLike(b, step, static_cast<double>(stride))));
    stride *= data[d];
  }
  return rows;
}

static LogicalResult lowerGatherNd(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  std::optional<TupleIndexing> shape = tupleIndexing(lowering);
  Value x = lowering.tensor(0);
  if (!shape || !x)
    return lowering.bad("expected integer index tuples that fit the data");
  Dims data = lowering.dims(0), flat = shape->rest, out = shape->tuples;
  flat.insert(flat.begin(), productOf(ArrayRef<int64_t>(data).take_front(shape->batch + shape->width)));
  out.append(shape->rest);
  if (!elementCount(out))
    return lowering.bad("expected a result that fits in memory");
  Value rowsOf = graph::reshape(b, x, flat);
  if (const HostTensor *known = lowering.host(1)) {
    auto rows = knownRows(*known, data, *shape);
    if (!rows || rows->empty())
      return lowering.bad("expected indices inside the data");
    return lowering.done(graph::reshape(b, gatherKnownRows(lowering, rowsOf, 0, *rows), out));
  }
  Value rows = computedRows(lowering, data, *shape);
  return lowering.done(graph::GatherOp::create(b, graph::tensorLike(x.getType(), out), rowsOf, rows, 0));
}

/// Writes updates to known rows: every row is taken from the data or from its last update.
static LogicalResult lowerScatterNd(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  std::string reduction = textAttribute(lowering.node, "reduction", "none");
  bool adds = reduction == "add" && lowering.isFloatInput(0);
  std::optional<TupleIndexing> shape = tupleIndexing(lowering);
  if (!lowering.host(1) || (reduction != "none" && !adds))
    return lowering.unsupported("scatters at run-time indices or with reduction '" + reduction + "'",
                                "write them with Where or Concat");
  Value x = lowering.tensor(0), updates = lowering.tensor(2);
  if (!shape || shape->batch != 0 || !x || !updates || lowering.dtype(2) != lowering.dtype(0))
    return lowering.bad("expected integer index tuples that fit the data, and updates of its type");
  Dims data = lowering.dims(0), flat = shape->rest, rowDims = shape->rest;
  int64_t total = productOf(ArrayRef<int64_t>(data).take_front(shape->width));
  auto rows = knownRows(*lowering.host(1), data, *shape);
  int64_t count = rows ? static_cast<int64_t>(rows->size()) : 0;
  if (count == 0 || productOf(lowering.dims(2)) != count * productOf(shape->rest) ||
      total > static_cast<int64_t>(hostElementLimit))
    return lowering.bad("expected indices inside the data and one update per index");
  flat.insert(flat.begin(), total);
  rowDims.insert(rowDims.begin(), count);
  updates = graph::reshape(b, updates, rowDims);
  if (adds) {
    Value list = lowering.importer.constant(hostInts(*rows));
    Value scattered = graph::ScatterAddOp::create(b, graph::tensorLike(x.getType(), flat), list, updates, 0);
    return lowering.done(graph::AddOp::create(b, x, graph::reshape(b, scattered, data)));
  }
  std::vector<int64_t> sources;
  for (int64_t row = 0; row < total; ++row)
    sources.push_back(row);
  for (int64_t i = 0; i < count; ++i)
    sources[static_cast<size_t>((*rows)[static_cast<size_t>(i)])] = total + i;
  Dims joined = flat;
  joined[0] += count;
  Value both = graph::ConcatOp::create(b, graph::tensorLike(x.getType(), joined),
                                       SmallVector<Value>{graph::reshape(b, x, flat), updates}, 0);
  return lowering.done(graph::reshape(b, gatherKnownRows(lowering, both, 0, sources), data));
}

static LogicalResult lowerOneHot(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims dims = lowering.dims(0), identity;
  int64_t rank = static_cast<int64_t>(dims.size()) + 1;
  auto axis = normalAxis(intAttribute(lowering.node, "axis", -1), rank);
  const HostTensor *depth = lowering.host(1), *offOn = lowering.host(2);
  if (!axis || lowering.dtype(0) == DType::Bool || !depth || depth->count() != 1 || depth->integer(0) < 1 || !offOn ||
      offOn->count() != 2)
    return lowering.bad("expected integer indices, a known depth and known off and on values");
  dims.insert(dims.begin() + *axis, depth->integer(0));
  if (!elementCount(dims))
    return lowering.bad("expected a result that fits in memory");
  for (int64_t d = 0; d < rank; ++d)
    if (d != *axis)
      identity.push_back(d);
  Value classes = graph::convert(b, lowering.tensor(0), b.getI64Type());
  Value size = constantLike(b, classes, static_cast<double>(depth->integer(0)));
  Value negative = graph::compare(b, CompareDirection::LT, classes, constantLike(b, classes, 0));
  classes = selectOf(b, negative, graph::AddOp::create(b, classes, size), classes);
  Value spread = graph::broadcast(b, classes, identity, dims);
  Value position = graph::IotaOp::create(b, spread.getType(), *axis);
  auto type = RankedTensorType::get(dims, elementType(*b.getContext(), offOn->dtype));
  return lowering.done(selectOf(b, graph::compare(b, CompareDirection::EQ, spread, position),
                                graph::splat(b, type, offOn->real(1)), graph::splat(b, type, offOn->real(0))));
}

static LogicalResult lowerCumSum(Lowering &lowering) {
  const HostTensor *position = lowering.host(1);
  auto axis = position && position->count() == 1
                  ? normalAxis(position->integer(0), static_cast<int64_t>(lowering.dims(0).size()))
                  : std::nullopt;
  Value x = lowering.tensor(0);
  if (!axis || !x)
    return lowering.bad("expected a known axis of the input");
  return lowering.done(graph::CumsumOp::create(lowering.b, x.getType(), x, *axis,
                                               intAttribute(lowering.node, "exclusive", 0) != 0,
                                               intAttribute(lowering.node, "reverse", 0) != 0));
}

void addIndexing(LowerTable &table) {
  table["Gather"] = lowerGather;
  table["GatherElements"] = lowerGatherElements;
  table["GatherND"] = lowerGatherNd;
  table["ScatterND"] = lowerScatterNd;
  table["OneHot"] = lowerOneHot;
  table["CumSum"] = lowerCumSum;
}

} // namespace plimsoll::onnx
