// Fast attention, forward: a task is a tile of query rows of one head; keys pass by in tiles, the softmax is made
// online. Sums have one order whatever the thread count.
#include "runtime/CPU/AttentionTiles.h"
#include "runtime/CPU/Threads.h"

#include <cmath>

namespace plimsoll::runtime {

namespace {

class TiledAttention final : public PreparedCall {
public:
  TiledAttention(const CallSpec &spec, const CallContext &context);
  uint64_t workspaceBytes() const override;
  void execute(Operands operands, void *workspace) override;

private:
  struct Addresses {
    const void *q, *k, *v, *mask;
    void *out;
    float *lse;
  };
  /// A worker's part of the workspace, in floats.
  struct Scratch {
    float *query;                      ///< [D][lanes], scaled
    float *scores;                     ///< [keys][lanes]
    float *result;                     ///< [Dv][lanes]
    float *maximum, *sum, *correction; ///< [lanes] each
  };
  int64_t scratchFloats() const { return (geometry.depth + geometry.valueDepth + AttentionTile + 3) * AttentionTile; }
  Scratch scratchOf(void *workspace, int worker) const;
  void runTile(const Addresses &at, const Scratch &scratch, int64_t b, int64_t h, int64_t firstRow) const;
  void addKeys(const Addresses &at, const Scratch &scratch, const ScoreTile &tile) const;
  void finish(const Addresses &at, const Scratch &scratch, const ScoreTile &tile) const;

  AttentionGeometry geometry;
  HeadStrides q, k, v, out;
  AttentionMask mask;
  const TileKernels &tiles;
  unsigned threads;
  int64_t rowTiles, tasks;
};

} // namespace

TiledAttention::TiledAttention(const CallSpec &spec, const CallContext &context)
    : geometry(attentionGeometry(spec, spec.operands[0], spec.operands[1], spec.operands[2])), q(spec.operands[0]),
      k(spec.operands[1]), v(spec.operands[2]), out(spec.operands[spec.operands.size() - 2]), mask(spec, geometry, 3),
      tiles(*context.tiles), threads(context.threads) {
  rowTiles = (geometry.rows + AttentionTile - 1) / AttentionTile;
  tasks = geometry.batch * geometry.heads * rowTiles;
}

uint64_t TiledAttention::workspaceBytes() const {
  return static_cast<uint64_t>(std::min<int64_t>(threads, tasks) * scratchFloats()) * sizeof(float);
}

TiledAttention::Scratch TiledAttention::scratchOf(void *workspace, int worker) const {
  float *at = static_cast<float *>(workspace) + worker * scratchFloats();
  Scratch scratch{};
  const auto take = [&](int64_t rows) { return std::exchange(at, at + rows * AttentionTile); };
  scratch.query = take(geometry.depth);
  scratch.scores = take(AttentionTile);
  scratch.result = take(geometry.valueDepth);
  scratch.maximum = take(1);
  scratch.sum = take(1);
  scratch.correction = take(1);
  return scratch;
}

void TiledAttention::execute(Operands o, void *workspace) {
  const size_t outAt = geometry.hasMask ? 4 : 3;
  const Addresses at{o[0], o[1], o[2], geometry.hasMask ? o[3] : nullptr, o[outAt], static_cast<float *>(o[outAt + 1])};
  parallelTasks(threads, tasks, [&](int64_t task, int worker) {
    const int64_t head = task / rowTiles;
    runTile(at, scratchOf(workspace, worker), head / geometry.heads, head % geometry.heads,
            task % rowTiles * AttentionTile);
  });
}

void TiledAttention::runTile(const Addresses &at, const Scratch &scratch, int64_t b, int64_t h,
                             int64_t firstRow) const {
  const int64_t rows = std::min(AttentionTile, geometry.rows - firstRow);
  ScoreTile tile{scratch.scores, b, h, firstRow, rows, 0, 0, true};
  packTransposed(q.at(at.q, b, h, firstRow), q.row, rows, geometry.depth, static_cast<float>(geometry.scale),
                 scratch.query);
  std::fill_n(scratch.maximum, AttentionTile, -std::numeric_limits<float>::infinity());
  std::fill_n(scratch.sum, AttentionTile, 0.0f);
  const int64_t keyEnd = geometry.causal ? std::min(geometry.keys, firstRow + rows) : geometry.keys;
  for (tile.firstKey = 0; tile.firstKey < keyEnd; tile.firstKey += AttentionTile) {
    tile.keys = std::min(AttentionTile, keyEnd - tile.firstKey);
    addKeys(at, scratch, tile);
  }
  finish(at, scratch, tile);
}

void TiledAttention::addKeys(const Addresses &at, const Scratch &scratch, const ScoreTile &tile) const {
  const int64_t keyHead = tile.head / geometry.headsPerKeyHead(), lanes = tile.lanes();
  const float *keys = k.at(at.k, tile.batch, keyHead, tile.firstKey);
  const float *values = v.at(at.v, tile.batch, keyHead, tile.firstKey);
  tiles.productFloat(
      {tile.keys, lanes, geometry.depth, keys, k.row, 1, scratch.query, lanes, scratch.scores, lanes, false});
  mask.apply(tile, at.mask);
  tiles.softmax({scratch.scores, tile.keys, lanes, scratch.maximum, scratch.sum, scratch.correction});
  const bool later = tile.firstKey > 0;
  if (later)
    tiles.scaleRows(scratch.result, geometry.valueDepth, lanes, scratch.correction);
  tiles.productFloat(
      {geometry.valueDepth, lanes, tile.keys, values, 1, v.row, scratch.scores, lanes, scratch.result, lanes, later});
}

/// Divides by the sums and writes out and lse; a row that saw no key has sum 0, result 0 and lse -inf.
void TiledAttention::finish(const Addresses &at, const Scratch &scratch, const ScoreTile &tile) const {
  float *lse = at.lse + (tile.batch * geometry.heads + tile.head) * geometry.rows + tile.firstRow;
  for (int64_t row = 0; row < tile.rows; ++row) {
    const float sum = scratch.sum[row];
    lse[row] = sum == 0.0f ? -std::numeric_limits<float>::infinity() : scratch.maximum[row] + std::log(sum);
    scratch.correction[row] = sum == 0.0f ? 0.0f : 1.0f / sum;
  }
  unpackTransposed(scratch.result, tile.rows, geometry.valueDepth, scratch.correction,
                   out.at(at.out, tile.batch, tile.head, tile.firstRow), out.row);
}

CallPointer makeAttentionCall(const CallSpec &spec, const CallContext &context) {
  if (spec.op != "attention" || spec.operands[0].dtype != artifact::DType::F32)
    return nullptr;
  return std::make_unique<TiledAttention>(spec, context);
}

} // namespace plimsoll::runtime
