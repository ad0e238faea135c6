// Fast attention, backward, in two passes that each own what they write: dq by tiles of query rows, then dk and dv by
// tiles of keys. Both recompute their score tiles from q, k and lse, so S x T never exists and no two threads add to
// one place: the bits do not depend on the thread count. Cost: seven tile products where a single pass that adds to dq
// from several threads would need five.
#include "runtime/CPU/AttentionTiles.h"
#include "runtime/CPU/Threads.h"

namespace plimsoll::runtime {

namespace {

class TiledAttentionGrad final : public PreparedCall {
public:
  TiledAttentionGrad(const CallSpec &spec, const CallContext &context);
  uint64_t workspaceBytes() const override;
  void execute(Operands operands, void *workspace) override;

private:
  struct Addresses {
    const void *dout, *q, *k, *v, *mask, *out;
    const float *lse;
    void *dq, *dk, *dv;
    float *safeLse, *delta; ///< [B * H * S] each, in the workspace
    float *scratch;         ///< workers' parts
  };
  /// A worker's part of the workspace, in floats.
  struct Scratch {
    float *depthLanes, *valueLanes; ///< lane operands: [D][lanes] scaled, [Dv][lanes]
    float *scores, *gradients;      ///< [outer][lanes]
    float *depthSums, *valueSums;   ///< results: [D][lanes], [Dv][lanes]
    float *factors;                 ///< [lanes]
  };
  int64_t scratchFloats() const {
    return (2 * geometry.depth + 2 * geometry.valueDepth + 2 * AttentionTile + 1) * AttentionTile;
  }
  int64_t statisticsFloats() const { return laneCount(geometry.batch * geometry.heads * geometry.rows); }
  Addresses addressesOf(Operands o, void *workspace) const;
  Scratch scratchOf(const Addresses &at, int worker) const;
  int64_t rowIndex(const ScoreTile &t) const {
    return (t.batch * geometry.heads + t.head) * geometry.rows + t.firstRow;
  }

  void prepareRows(const Addresses &at, const ScoreTile &tile) const;
  void runRows(const Addresses &at, const Scratch &scratch, int64_t b, int64_t h, int64_t firstRow) const;
  void addKeysToRows(const Addresses &at, const Scratch &scratch, const ScoreTile &tile) const;
  void runKeys(const Addresses &at, const Scratch &scratch, int64_t b, int64_t keyHead, int64_t firstKey) const;
  void addRowsToKeys(const Addresses &at, const Scratch &scratch, const ScoreTile &tile) const;

  AttentionGeometry geometry;
  HeadStrides dout, q, k, v, out, dq, dk, dv;
  AttentionMask mask;
  const TileKernels &tiles;
  unsigned threads;
  int64_t rowTiles, keyTiles, rowTasks, keyTasks;
};

} // namespace

TiledAttentionGrad::TiledAttentionGrad(const CallSpec &spec, const CallContext &context)
    : geometry(attentionGeometry(spec, spec.operands[1], spec.operands[2], spec.operands[3])), dout(spec.operands[0]),
      q(spec.operands[1]), k(spec.operands[2]), v(spec.operands[3]), mask(spec, geometry, 4), tiles(*context.tiles),
      threads(context.threads) {
  const size_t outAt = geometry.hasMask ? 5 : 4;
  out = HeadStrides(spec.operands[outAt]);
  dq = HeadStrides(spec.operands[outAt + 2]);
  dk = HeadStrides(spec.operands[outAt + 3]);
  dv = HeadStrides(spec.operands[outAt + 4]);
  rowTiles = (geometry.rows + AttentionTile - 1) / AttentionTile;
  keyTiles = (geometry.keys + AttentionTile - 1) / AttentionTile;
  rowTasks = geometry.batch * geometry.heads * rowTiles;
  keyTasks = geometry.batch * geometry.keyHeads * keyTiles;
}

uint64_t TiledAttentionGrad::workspaceBytes() const {
  const int64_t workers = std::min<int64_t>(threads, std::max(rowTasks, keyTasks));
  return static_cast<uint64_t>(2 * statisticsFloats() + workers * scratchFloats()) * sizeof(float);
}

TiledAttentionGrad::Addresses TiledAttentionGrad::addressesOf(Operands o, void *workspace) const {
  const size_t outAt = geometry.hasMask ? 5 : 4;
  float *statistics = static_cast<float *>(workspace);
  return {o[0],
          o[1],
          o[2],
          o[3],
          geometry.hasMask ? o[4] : nullptr,
          o[outAt],
          static_cast<const float *>(o[outAt + 1]),
          o[outAt + 2],
          o[outAt + 3],
          o[outAt + 4],
          statistics,
          statistics + statisticsFloats(),
          statistics + 2 * statisticsFloats()};
}

TiledAttentionGrad::Scratch TiledAttentionGrad::scratchOf(const Addresses &at, int worker) const {
  float *next = at.scratch + worker * scratchFloats();
  const auto take = [&](int64_t rows) { return std::exchange(next, next + rows * AttentionTile); };
  Scratch scratch{};
  scratch.depthLanes = take(geometry.depth);
  scratch.valueLanes = take(geometry.valueDepth);
  scratch.scores = take(AttentionTile);
  scratch.gradients = take(AttentionTile);
  scratch.depthSums = take(geometry.depth);
  scratch.valueSums = take(geometry.valueDepth);
  scratch.factors = take(1);
  return scratch;
}

void TiledAttentionGrad::execute(Operands o, void *workspace) {
  const Addresses at = addressesOf(o, workspace);
  parallelTasks(threads, rowTasks, [&](int64_t task, int worker) {
    const int64_t head = task / rowTiles;
    runRows(at, scratchOf(at, worker), head / geometry.heads, head % geometry.heads, task % rowTiles * AttentionTile);
  });
  parallelTasks(threads, keyTasks, [&](int64_t task, int worker) {
    const int64_t head = task / keyTiles;
    runKeys(at, scratchOf(at, worker), head / geometry.keyHeads, head % geometry.keyHeads,
            task % keyTiles * AttentionTile);
  });
}

/// delta = dout . out per row, and lse with -inf (a row that saw no key) turned to +inf, so that its weights are 0.
void TiledAttentionGrad::prepareRows(const Addresses &at, const ScoreTile &tile) const {
  const int64_t first = rowIndex(tile);
  for (int64_t row = 0; row < tile.rows; ++row) {
    const float *gradient = dout.at(at.dout, tile.batch, tile.head, tile.firstRow + row);
    const float *result = out.at(at.out, tile.batch, tile.head, tile.firstRow + row);
    float sum = 0.0f;
    for (int64_t d = 0; d < geometry.valueDepth; ++d)
      sum += gradient[d] * result[d];
    const float lse = at.lse[first + row];
    at.delta[first + row] = sum;
    at.safeLse[first + row] = lse == -std::numeric_limits<float>::infinity() ? -lse : lse;
  }
}

void TiledAttentionGrad::runRows(const Addresses &at, const Scratch &scratch, int64_t b, int64_t h,
                                 int64_t firstRow) const {
  const int64_t rows = std::min(AttentionTile, geometry.rows - firstRow);
  ScoreTile tile{scratch.scores, b, h, firstRow, rows, 0, 0, true};
  prepareRows(at, tile);
  packTransposed(q.at(at.q, b, h, firstRow), q.row, rows, geometry.depth, static_cast<float>(geometry.scale),
                 scratch.depthLanes);
  packTransposed(dout.at(at.dout, b, h, firstRow), dout.row, rows, geometry.valueDepth, 1.0f, scratch.valueLanes);
  const int64_t keyEnd = geometry.causal ? std::min(geometry.keys, firstRow + rows) : geometry.keys;
  for (tile.firstKey = 0; tile.firstKey < keyEnd; tile.firstKey += AttentionTile) {
    tile.keys = std::min(AttentionTile, keyEnd - tile.firstKey);
    addKeysToRows(at, scratch, tile);
  }
  std::fill_n(scratch.factors, AttentionTile, static_cast<float>(geometry.scale));
  unpackTransposed(scratch.depthSums, rows, geometry.depth, scratch.factors, dq.at(at.dq, b, h, firstRow), dq.row);
}

void TiledAttentionGrad::addKeysToRows(const Addresses &at, const Scratch &scratch, const ScoreTile &tile) const {
  const int64_t keyHead = tile.head / geometry.headsPerKeyHead(), lanes = tile.lanes(), first = rowIndex(tile);
  const float *keys = k.at(at.k, tile.batch, keyHead, tile.firstKey);
  const float *values = v.at(at.v, tile.batch, keyHead, tile.firstKey);
  tiles.productFloat(
      {tile.keys, lanes, geometry.depth, keys, k.row, 1, scratch.depthLanes, lanes, scratch.scores, lanes, false});
  mask.apply(tile, at.mask);
  tiles.productFloat({tile.keys, lanes, geometry.valueDepth, values, v.row, 1, scratch.valueLanes, lanes,
                      scratch.gradients, lanes, false});
  // Lanes beyond the tile's rows read statistics of padding: they are copied so that no read leaves the arrays.
  float lse[AttentionTile] = {}, delta[AttentionTile] = {};
  std::copy_n(at.safeLse + first, tile.rows, lse);
  std::copy_n(at.delta + first, tile.rows, delta);
  tiles.softmaxGradRowLanes({scratch.scores, scratch.gradients, tile.keys, lanes, lse, delta});
  tiles.productFloat({geometry.depth, lanes, tile.keys, keys, 1, k.row, scratch.gradients, lanes, scratch.depthSums,
                      lanes, tile.firstKey > 0});
}

void TiledAttentionGrad::runKeys(const Addresses &at, const Scratch &scratch, int64_t b, int64_t keyHead,
                                 int64_t firstKey) const {
  const int64_t keys = std::min(AttentionTile, geometry.keys - firstKey), lanes = laneCount(keys);
  packTransposed(k.at(at.k, b, keyHead, firstKey), k.row, keys, geometry.depth, static_cast<float>(geometry.scale),
                 scratch.depthLanes);
  packTransposed(v.at(at.v, b, keyHead, firstKey), v.row, keys, geometry.valueDepth, 1.0f, scratch.valueLanes);
  std::fill_n(scratch.depthSums, geometry.depth * lanes, 0.0f);
  std::fill_n(scratch.valueSums, geometry.valueDepth * lanes, 0.0f);
  const int64_t group = geometry.headsPerKeyHead();
  for (int64_t h = keyHead * group; h < (keyHead + 1) * group; ++h)
    for (int64_t row = geometry.causal ? firstKey : 0; row < geometry.rows; row += AttentionTile)
      addRowsToKeys(at, scratch,
                    {scratch.scores, b, h, row, std::min(AttentionTile, geometry.rows - row), firstKey, keys, false});
  std::fill_n(scratch.factors, AttentionTile, static_cast<float>(geometry.scale));
  unpackTransposed(scratch.depthSums, keys, geometry.depth, scratch.factors, dk.at(at.dk, b, keyHead, firstKey),
                   dk.row);
  std::fill_n(scratch.factors, AttentionTile, 1.0f);
  unpackTransposed(scratch.valueSums, keys, geometry.valueDepth, scratch.factors, dv.at(at.dv, b, keyHead, firstKey),
                   dv.row);
}

void TiledAttentionGrad::addRowsToKeys(const Addresses &at, const Scratch &scratch, const ScoreTile &tile) const {
  const int64_t lanes = tile.lanes(), first = rowIndex(tile);
  const float *queries = q.at(at.q, tile.batch, tile.head, tile.firstRow);
  const float *gradients = dout.at(at.dout, tile.batch, tile.head, tile.firstRow);
  tiles.productFloat(
      {tile.rows, lanes, geometry.depth, queries, q.row, 1, scratch.depthLanes, lanes, scratch.scores, lanes, false});
  mask.apply(tile, at.mask);
  tiles.productFloat({tile.rows, lanes, geometry.valueDepth, gradients, dout.row, 1, scratch.valueLanes, lanes,
                      scratch.gradients, lanes, false});
  tiles.softmaxGradKeyLanes(
      {scratch.scores, scratch.gradients, tile.rows, lanes, at.safeLse + first, at.delta + first});
  tiles.productFloat({geometry.valueDepth, lanes, tile.rows, gradients, 1, dout.row, scratch.scores, lanes,
                      scratch.valueSums, lanes, true});
  tiles.productFloat(
      {geometry.depth, lanes, tile.rows, queries, 1, q.row, scratch.gradients, lanes, scratch.depthSums, lanes, true});
}

CallPointer makeAttentionGradCall(const CallSpec &spec, const CallContext &context) {
  if (spec.op != "attention_grad" || spec.operands[0].dtype != artifact::DType::F32)
    return nullptr;
  return std::make_unique<TiledAttentionGrad>(spec, context);
}

} // namespace plimsoll::runtime
