// Fast dot. The call is first reduced to its fewest batch dimensions (a batch over which b does not move becomes rows
// of M). oneDNN's brgemm matmul takes what it has a fast kernel for; everything else (f64, strides it lacks, machines
// without AVX-512, where it would allocate packing buffers behind the promise) goes to a blocked product of our own.
#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/Dnnl.h"
#include "runtime/CPU/Threads.h"
#include "runtime/Kernels/CallTools.h"

#include "plimsoll/Support/Units.h"

#include <cstring>

namespace plimsoll::runtime {

namespace {

/// One batch dimension with the strides of a, b and c, in elements.
struct BatchDimension {
  int64_t extent, a, b, c;
};

/// c[batch..., m, n] (+)= sum over k of a[batch..., m, k] * b[batch..., k, n].
struct Product {
  std::vector<BatchDimension> batch;
  int64_t m, n, k;
  int64_t aRow, aColumn, bRow, bColumn, cRow, cColumn;
  bool accumulate;

  int64_t batches() const {
    int64_t count = 1;
    for (const BatchDimension &dimension : batch)
      count *= dimension.extent;
    return count;
  }
  void offsets(int64_t index, int64_t &a, int64_t &b, int64_t &c) const {
    a = b = c = 0;
    for (size_t d = batch.size(); d-- > 0;) {
      const int64_t at = index % batch[d].extent;
      index /= batch[d].extent;
      a += at * batch[d].a;
      b += at * batch[d].b;
      c += at * batch[d].c;
    }
  }
};

} // namespace

/// Merges neighbouring batch dimensions that all three operands step through evenly.
static void mergeBatch(Product &product) {
  std::vector<BatchDimension> merged;
  for (const BatchDimension &next : product.batch) {
    BatchDimension *last = merged.empty() ? nullptr : &merged.back();
    if (last && last->a == next.a * next.extent && last->b == next.b * next.extent && last->c == next.c * next.extent)
      *last = {last->extent * next.extent, next.a, next.b, next.c};
    else
      merged.push_back(next);
  }
  product.batch = std::move(merged);
}

/// Turns the innermost batch dimension into rows of M where b stands still and a and c step evenly.
static void foldBatchIntoRows(Product &product) {
  while (!product.batch.empty()) {
    const BatchDimension last = product.batch.back();
    const bool single = product.m == 1;
    if (last.b != 0 || (!single && (last.a != product.aRow * product.m || last.c != product.cRow * product.m)))
      return;
    if (single) {
      product.aRow = last.a;
      product.cRow = last.c;
    }
    product.m *= last.extent;
    product.batch.pop_back();
  }
}

static Product readProduct(const CallSpec &spec) {
  const TensorSpec &a = spec.operands[0], &b = spec.operands[1], &c = spec.operands[2];
  const size_t rank = a.shape.size(), row = rank - 2, column = rank - 1;
  Product product{{},
                  c.shape[row],
                  c.shape[column],
                  a.shape[column],
                  a.strides[row],
                  a.strides[column],
                  b.strides[row],
                  b.strides[column],
                  c.strides[row],
                  c.strides[column],
                  intAttribute(spec, "accumulate", 0) != 0};
  for (size_t d = 0; d + 2 < rank; ++d)
    if (a.shape[d] != 1)
      product.batch.push_back({a.shape[d], a.strides[d], b.strides[d], c.strides[d]});
  mergeBatch(product);
  foldBatchIntoRows(product);
  return product;
}

//===-- oneDNN ------------------------------------------------------------===//

namespace {

class DnnlDot final : public PreparedCall {
public:
  DnnlDot(DnnlEngine &engine, const dnnl::matmul::primitive_desc &description, unsigned threadCount)
      : step(engine, dnnl::matmul(description), description.scratchpad_desc(),
             {{DNNL_ARG_SRC, description.src_desc()},
              {DNNL_ARG_WEIGHTS, description.weights_desc()},
              {DNNL_ARG_DST, description.dst_desc()}}),
        threads(threadCount) {}

  void execute(Operands operands, void *workspace) override {
    const DnnlThreads scope(threads);
    std::copy(operands.begin(), operands.begin() + 3, addresses.begin());
    step.execute(addresses, workspace);
  }
  uint64_t workspaceBytes() const override { return alignUp(step.scratchpadBytes(), 64); }

private:
  DnnlStep step;
  unsigned threads;
  std::vector<void *> addresses = std::vector<void *>(3);
};

} // namespace

/// A matrix operand as oneDNN sees it: batch dimensions it stands still over have extent 1, dimensions of extent 1 have
/// the stride of a dense layout (any stride is right, only this one is recognised).
static dnnl::memory::desc matrixDescription(const std::vector<BatchDimension> &batch, int64_t BatchDimension::*stride,
                                            int64_t rows, int64_t columns, int64_t rowStride, int64_t columnStride) {
  dnnl::memory::dims shape, strides;
  for (const BatchDimension &dimension : batch) {
    const int64_t step = dimension.*stride;
    shape.push_back(step == 0 ? 1 : dimension.extent);
    strides.push_back(step);
  }
  if (columns == 1 && rowStride != 1)
    columnStride = 1;
  else if (columns == 1)
    columnStride = rows;
  if (rows == 1)
    rowStride = columnStride == 1 ? columns : 1;
  shape.insert(shape.end(), {rows, columns});
  strides.insert(strides.end(), {rowStride, columnStride});
  for (size_t d = batch.size(); d-- > 0;)
    if (shape[d] == 1) {
      int64_t extent = 1; // the matrix or batch below, as a whole
      for (size_t e = d + 1; e < shape.size(); ++e)
        extent = std::max(extent, shape[e] * strides[e]);
      strides[d] = extent;
    }
  return {shape, dnnl::memory::data_type::f32, strides};
}

static CallPointer makeDnnlDot(const Product &product, const CallContext &context) try {
  const DnnlThreads scope(context.threads);
  const auto a =
      matrixDescription(product.batch, &BatchDimension::a, product.m, product.k, product.aRow, product.aColumn);
  const auto b =
      matrixDescription(product.batch, &BatchDimension::b, product.k, product.n, product.bRow, product.bColumn);
  const auto c =
      matrixDescription(product.batch, &BatchDimension::c, product.m, product.n, product.cRow, product.cColumn);
  dnnl::primitive_attr attributes = userScratchpad();
  if (product.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc description({a, b, c}, attributes, context.dnnl->cpu, true);
  if (!description || std::strncmp(description.impl_info_str(), "brg", 3) != 0)
    return nullptr;
  return std::make_unique<DnnlDot>(*context.dnnl, description, context.threads);
} catch (const dnnl::error &) {
  return nullptr; // a form oneDNN does not describe; the blocked product takes any
}

//===-- our own blocked product -------------------------------------------===//

namespace {

/// Tasks are (batch, block of rows, block of columns). A task packs blocks of b into contiguous rows of one lane block,
/// sums into a tile of its own and adds that tile to c once, so sums have one order whatever the thread count.
template <typename T> class BlockedDot final : public PreparedCall {
public:
  BlockedDot(Product call, const CallContext &context)
      : product(std::move(call)), tiles(*context.tiles), threads(context.threads) {
    rowBlocks = (product.m + RowBlock - 1) / RowBlock;
    columnBlocks = (product.n + ColumnBlock - 1) / ColumnBlock;
    tasks = product.batches() * rowBlocks * columnBlocks;
  }

  uint64_t workspaceBytes() const override {
    return static_cast<uint64_t>(std::min<int64_t>(threads, tasks)) * ScratchElements * sizeof(T);
  }

  void execute(Operands operands, void *workspace) override {
    parallelTasks(threads, tasks, [&](int64_t task, int worker) {
      T *scratch = static_cast<T *>(workspace) + worker * ScratchElements;
      runTask(static_cast<const T *>(operands[0]), static_cast<const T *>(operands[1]), static_cast<T *>(operands[2]),
              scratch, task);
    });
  }

private:
  static constexpr int64_t RowBlock = 192, DepthBlock = 256, ColumnBlock = 256 / sizeof(T);
  static constexpr int64_t LaneGroup = 64 / sizeof(T);
  static constexpr int64_t ScratchElements = (DepthBlock + RowBlock) * ColumnBlock + RowBlock * DepthBlock;

  /// b[first..first+depth)[0..columns) into rows of `lanes` elements, zeros beyond `columns`.
  void packRight(const T *b, int64_t depth, int64_t columns, int64_t lanes, T *packed) const {
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t n = 0; n < columns; ++n)
        packed[k * lanes + n] = b[k * product.bRow + n * product.bColumn];
      for (int64_t n = columns; n < lanes; ++n)
        packed[k * lanes + n] = T{};
    }
  }

  /// The same for b transposed in memory, eight columns at a time: rows of b a power of two apart share a cache set,
  /// and no more than eight of them fit at once.
  void packRightTransposed(const T *b, int64_t depth, int64_t columns, int64_t lanes, T *packed) const {
    constexpr int64_t group = 8;
    for (int64_t first = 0; first < lanes; first += group)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t n = first; n < first + group; ++n)
          packed[k * lanes + n] = n < columns ? b[k * product.bRow + n * product.bColumn] : T{};
  }

  void packLeft(const T *a, int64_t rows, int64_t depth, T *packed) const {
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t m = 0; m < rows; ++m)
        packed[k * RowBlock + m] = a[m * product.aRow + k * product.aColumn];
  }

  void write(const T *sums, int64_t rows, int64_t columns, int64_t lanes, T *c) const {
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < columns; ++n) {
        T &target = c[m * product.cRow + n * product.cColumn];
        target = product.accumulate ? target + sums[m * lanes + n] : sums[m * lanes + n];
      }
  }

  void runTask(const T *a, const T *b, T *c, T *scratch, int64_t task) const {
    const int64_t column = task % columnBlocks * ColumnBlock, row = task / columnBlocks % rowBlocks * RowBlock;
    const int64_t rows = std::min(RowBlock, product.m - row), columns = std::min(ColumnBlock, product.n - column);
    const int64_t lanes = (columns + LaneGroup - 1) / LaneGroup * LaneGroup;
    int64_t aBase, bBase, cBase;
    product.offsets(task / (columnBlocks * rowBlocks), aBase, bBase, cBase);
    aBase += row * product.aRow;
    bBase += column * product.bColumn;
    T *right = scratch, *sums = right + DepthBlock * ColumnBlock, *left = sums + RowBlock * ColumnBlock;
    for (int64_t k = 0; k < product.k; k += DepthBlock) {
      const int64_t depth = std::min(DepthBlock, product.k - k);
      const T *rightBlock = b + bBase + k * product.bRow, *leftBlock = a + aBase + k * product.aColumn;
      if (product.bColumn <= product.bRow)
        packRight(rightBlock, depth, columns, lanes, right);
      else
        packRightTransposed(rightBlock, depth, columns, lanes, right);
      const bool direct = product.aColumn == 1;
      if (!direct)
        packLeft(leftBlock, rows, depth, left);
      plimsoll::runtime::product(tiles, ProductTile<T>{rows, lanes, depth, direct ? leftBlock : left,
                                                       direct ? product.aRow : 1, direct ? 1 : RowBlock, right, lanes,
                                                       sums, lanes, k > 0});
    }
    write(sums, rows, columns, lanes, c + cBase + row * product.cRow + column * product.cColumn);
  }

  Product product;
  const TileKernels &tiles;
  unsigned threads;
  int64_t rowBlocks, columnBlocks, tasks;
};

} // namespace

CallPointer makeDotCall(const CallSpec &spec, const CallContext &context) {
  if (spec.op != "dot")
    return nullptr;
  const Product product = readProduct(spec);
  if (spec.operands[2].dtype == artifact::DType::F64)
    return std::make_unique<BlockedDot<double>>(product, context);
  if (context.dnnl)
    if (CallPointer call = makeDnnlDot(product, context))
      return call;
  return std::make_unique<BlockedDot<float>>(product, context);
}

} // namespace plimsoll::runtime
