// Strided copies. Four forms: one contiguous block; contiguous rows; a transposition, done in square tiles so that both
// sides use whole cache lines; and everything else, element by element along the target's densest dimension.
#include "runtime/CPU/StridedCopy.h"

#include "runtime/CPU/Threads.h"

#include <cstring>

namespace plimsoll::runtime {

static constexpr int64_t TileEdge = 32;
static constexpr int64_t GrainBytes = 16384; ///< work below this stays in one thread

StridedCopy::StridedCopy(const TensorSpec &source, const TensorSpec &target) : bytes(dtypeBytes(target.dtype)) {
  for (size_t d = 0; d < target.shape.size(); ++d)
    if (target.shape[d] != 1)
      outers.push_back({target.shape[d], source.strides[d], target.strides[d]});
  order();
  merge();
  classify();
  for (const CopyDimension &outer : outers)
    outerCount *= outer.extent;
}

void StridedCopy::order() {
  std::stable_sort(outers.begin(), outers.end(),
                   [](const CopyDimension &l, const CopyDimension &r) { return l.target > r.target; });
}

void StridedCopy::merge() {
  std::vector<CopyDimension> merged;
  for (const CopyDimension &next : outers) {
    CopyDimension *last = merged.empty() ? nullptr : &merged.back();
    if (last && last->target == next.target * next.extent && last->source == next.source * next.extent)
      *last = {last->extent * next.extent, next.source, next.target};
    else
      merged.push_back(next);
  }
  outers = std::move(merged);
}

void StridedCopy::classify() {
  if (!outers.empty()) {
    inner = outers.back();
    outers.pop_back();
  }
  if (inner.source == 1 && inner.target == 1) {
    form = outers.empty() ? Form::Block : Form::Rows;
    return;
  }
  const auto contiguous =
      std::find_if(outers.begin(), outers.end(), [](const CopyDimension &d) { return d.source == 1; });
  if (inner.target != 1 || inner.source == 0 || contiguous == outers.end())
    return;
  middle = *contiguous;
  outers.erase(contiguous);
  form = Form::Transpose;
}

void StridedCopy::offsets(int64_t outer, int64_t &source, int64_t &target) const {
  source = target = 0;
  for (size_t d = outers.size(); d-- > 0;) {
    const int64_t index = outer % outers[d].extent;
    outer /= outers[d].extent;
    source += index * outers[d].source;
    target += index * outers[d].target;
  }
}

void StridedCopy::runBlock(const char *source, char *target, unsigned threads) const {
  parallelRange(threads, inner.extent * bytes, GrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
  });
}

void StridedCopy::runRows(const char *source, char *target, unsigned threads) const {
  const int64_t rowBytes = inner.extent * bytes;
  parallelRange(threads, outerCount, std::max<int64_t>(1, GrainBytes / rowBytes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t from, to;
      offsets(row, from, to);
      std::memcpy(target + to * bytes, source + from * bytes, static_cast<size_t>(rowBytes));
    }
  });
}

/// One tile: [middle][inner] elements, contiguous along middle in the source and along inner in the target.
template <typename T>
static void transposeTile(const T *source, int64_t sourceStride, T *target, int64_t targetStride, int64_t rows,
                          int64_t columns) {
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n)
      target[m * targetStride + n] = source[m + n * sourceStride];
}

template <typename T> void StridedCopy::runTiles(const T *source, T *target, unsigned threads) const {
  const int64_t rowTiles = (middle.extent + TileEdge - 1) / TileEdge;
  const int64_t columnTiles = (inner.extent + TileEdge - 1) / TileEdge;
  parallelRange(threads, outerCount * rowTiles, 2, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t from, to;
      offsets(task / rowTiles, from, to);
      const int64_t m = task % rowTiles * TileEdge, rows = std::min(TileEdge, middle.extent - m);
      for (int64_t column = 0; column < columnTiles; ++column) {
        const int64_t n = column * TileEdge, columns = std::min(TileEdge, inner.extent - n);
        transposeTile(source + from + m + n * inner.source, inner.source, target + to + m * middle.target + n,
                      middle.target, rows, columns);
      }
    }
  });
}

template <typename T> void StridedCopy::runStrided(const T *source, T *target, unsigned threads) const {
  const int64_t chunk = std::min<int64_t>(inner.extent, 4096), chunks = (inner.extent + chunk - 1) / chunk;
  const int64_t grain = std::max<int64_t>(1, GrainBytes / (chunk * int64_t(sizeof(T))));
  parallelRange(threads, outerCount * chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t from, to;
      offsets(task / chunks, from, to);
      const int64_t first = task % chunks * chunk, last = std::min(first + chunk, inner.extent);
      for (int64_t i = first; i < last; ++i)
        target[to + i * inner.target] = source[from + i * inner.source];
    }
  });
}

template <typename T> void StridedCopy::runElements(const void *source, void *target, unsigned threads) const {
  if (form == Form::Transpose)
    runTiles(static_cast<const T *>(source), static_cast<T *>(target), threads);
  else
    runStrided(static_cast<const T *>(source), static_cast<T *>(target), threads);
}

void StridedCopy::run(const void *source, void *target, unsigned threads) const {
  if (form == Form::Block)
    return runBlock(static_cast<const char *>(source), static_cast<char *>(target), threads);
  if (form == Form::Rows)
    return runRows(static_cast<const char *>(source), static_cast<char *>(target), threads);
  switch (bytes) {
  case 8:
    return runElements<uint64_t>(source, target, threads);
  case 4:
    return runElements<uint32_t>(source, target, threads);
  case 2:
    return runElements<uint16_t>(source, target, threads);
  default:
    return runElements<uint8_t>(source, target, threads);
  }
}

} // namespace plimsoll::runtime
