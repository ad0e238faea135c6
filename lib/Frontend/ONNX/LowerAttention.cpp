// The Attention and RotaryEmbedding operators of opset 23 and later.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

namespace {
/// What a mask known at import says about scores (S, T).
enum class KnownMask { None, Causal, Other };

bool allows(const HostTensor &mask, uint64_t i) { return mask.holdsReals() ? mask.real(i) == 0 : mask.integer(i) != 0; }
bool forbids(const HostTensor &mask, uint64_t i) {
  return mask.holdsReals() ? mask.real(i) <= -1e9 : mask.integer(i) == 0;
}

/// Mask with repeats shrunk away.
KnownMask classify(const HostTensor &mask, int64_t queries, int64_t keys) {
  bool open = true, causal = mask.dims.size() >= 2 && mask.count() == static_cast<uint64_t>(queries * keys) &&
                             mask.dims.back() == keys && mask.dims[mask.dims.size() - 2] == queries;
  uint64_t stored = mask.splat ? std::min<uint64_t>(mask.count(), 1) : mask.count();
  for (uint64_t i = 0; i < stored; ++i) {
    open &= allows(mask, i);
    bool before = static_cast<int64_t>(i) % keys <= static_cast<int64_t>(i) / keys + keys - queries;
    causal = causal && (before ? allows(mask, i) : forbids(mask, i));
  }
  return open ? KnownMask::None : causal ? KnownMask::Causal : KnownMask::Other;
}

/// (B, S, H*D) to (B, H, S, D); 4-D values pass through.
Value splitHeads(ImplicitLocOpBuilder &b, Value x, int64_t heads) {
  ArrayRef<int64_t> shape = shapeOf(x);
  if (shape.size() == 4)
    return x;
  return graph::transpose(b, graph::reshape(b, x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

/// Everything the operator computes with, as 4-D values.
struct AttentionInputs {
  Value q, k, v, mask;
  double scale = 1, softcap = 0;
  bool causal = false;
};

/// Key or value heads repeated to the query's.
Value repeatHeads(ImplicitLocOpBuilder &b, Value x, int64_t heads) {
  ArrayRef<int64_t> s = shapeOf(x);
  if (s[1] == heads)
    return x;
  Value spread = graph::broadcast(b, x, {0, 1, 3, 4}, {s[0], s[1], heads / s[1], s[2], s[3]});
  return graph::reshape(b, spread, {s[0], heads, s[2], s[3]});
}

/// Lower-triangular (S, T) mask from the first key on, as 4-D booleans.
Value causalMask(Importer &importer, int64_t queries, int64_t keys) {
  HostTensor mask;
  mask.dtype = DType::Bool;
  mask.dims = {1, 1, queries, keys};
  for (int64_t i = 0; i < queries * keys; ++i)
    mask.push(static_cast<int64_t>(i % keys <= i / keys));
  return importer.constant(mask);
}

/// mask or causal: both must allow a key.
Value joinedMask(ImplicitLocOpBuilder &b, Value mask, Value causal) {
  if (!mask)
    return causal;
  Dims shape;
  for (auto [l, r] : llvm::zip(shapeOf(mask), shapeOf(causal)))
    shape.push_back(std::max(l, r));
  Value wide = numpyBroadcast(b, mask, shape), keep = numpyBroadcast(b, causal, shape);
  if (graph::isFloatTensor(wide.getType()))
    return selectOf(b, keep, wide, constantLike(b, wide, -HUGE_VAL));
  return graph::AndOp::create(b, wide, keep);
}

/// Written out, for masks that a gradient must reach (learned position biases) and capped scores.
Value writtenOut(Lowering &lowering, const AttentionInputs &in) {
  ImplicitLocOpBuilder &b = lowering.b;
  int64_t heads = shapeOf(in.q)[1];
  Value scores = dotOf(b, in.q, repeatHeads(b, in.k, heads), false, true);
  scores = graph::MulOp::create(b, scores, constantLike(b, scores, in.scale));
  if (in.softcap != 0) {
    Value capped = graph::TanhOp::create(b, graph::DivOp::create(b, scores, constantLike(b, scores, in.softcap)));
    scores = graph::MulOp::create(b, capped, constantLike(b, capped, in.softcap));
  }
  Value mask =
      in.causal ? joinedMask(b, in.mask, causalMask(lowering.importer, shapeOf(in.q)[2], shapeOf(in.k)[2])) : in.mask;
  if (mask) {
    Value wide = numpyBroadcast(b, mask, shapeOf(scores));
    scores = graph::isFloatTensor(wide.getType()) ? graph::AddOp::create(b, scores, wide).getResult()
                                                  : selectOf(b, wide, scores, constantLike(b, scores, -HUGE_VAL));
  }
  Value weights = graph::SoftmaxOp::create(b, scores.getType(), scores, 3), zero = constantLike(b, weights, 0);
  Value lost = graph::IsNanOp::create(b, RankedTensorType::get(shapeOf(weights), b.getI1Type()), weights);
  return dotOf(b, selectOf(b, lost, zero, weights), repeatHeads(b, in.v, heads));
}

Value attended(ImplicitLocOpBuilder &b, const AttentionInputs &in) {
  ArrayRef<int64_t> q = shapeOf(in.q), v = shapeOf(in.v);
  Type out = graph::tensorLike(in.q.getType(), {q[0], q[1], q[2], v[3]});
  Type element = graph::tensorType(in.q).getElementType();
  Type statistics = RankedTensorType::get(q.take_front(3), element.isF64() ? element : Type(b.getF32Type()));
  return graph::AttentionOp::create(b, out, statistics, in.q, in.k, in.v, in.mask, b.getF64FloatAttr(in.scale),
                                    b.getBoolAttr(in.causal))
      .getResult();
}

/// The mask as a 4-D value with size-1 dims where it repeats; sets `causal` when that is all it says.
LogicalResult readMask(Lowering &lowering, AttentionInputs &in) {
  ImplicitLocOpBuilder &b = lowering.b;
  int64_t queries = shapeOf(in.q)[2], keys = shapeOf(in.k)[2];
  bool asked = intAttribute(lowering.node, "is_causal", 0) != 0;
  if (asked && queries == keys)
    in.causal = true;
  if (asked && queries * keys > static_cast<int64_t>(hostElementLimit))
    return lowering.unsupported("is_causal over more than 67,108,864 scores", "shorten the sequence");
  if (asked && queries != keys) // ONNX aligns the triangle at the first key, graph.attention at the last
    in.mask = causalMask(lowering.importer, queries, keys);
  if (!lowering.has(3))
    return success();
  Dims full{shapeOf(in.q)[0], shapeOf(in.q)[1], queries, keys}, own = lowering.dims(3);
  auto fits = broadcastShapes(full, own);
  bool typed = lowering.dtype(3) == DType::Bool || lowering.dtype(3) == lowering.dtype(0);
  if (!fits || ArrayRef<int64_t>(*fits) != ArrayRef<int64_t>(full) || !typed)
    return lowering.bad("expected a boolean or float mask that broadcasts to (B, H, S, T)");
  Value mask;
  if (const HostTensor *known = lowering.host(3)) {
    HostTensor small = *known;
    findSplat(small);
    small = shrinkRepeats(small);
    KnownMask kind = classify(small, queries, keys);
    in.causal |= kind == KnownMask::Causal;
    if (kind != KnownMask::Other)
      return success();
    mask = lowering.importer.constant(small);
  } else {
    mask = lowering.tensor(3);
    if (auto spread = mask.getDefiningOp<graph::BroadcastOp>())
      if (shapeOf(spread.getOperand()).size() == own.size())
        mask = spread.getOperand();
  }
  Dims padded(shapeOf(mask));
  padded.insert(padded.begin(), 4 - padded.size(), 1);
  mask = graph::reshape(b, mask, padded);
  in.mask = in.mask ? joinedMask(b, mask, in.mask) : mask;
  return success();
}

LogicalResult readInputs(Lowering &lowering, AttentionInputs &in) {
  const Node &node = lowering.node;
  for (size_t i = 4; i < lowering.inputs(); ++i)
    if (lowering.has(i))
      return lowering.unsupported("a key-value cache", "train without a cache (use_cache=False)");
  static const std::set<std::string> known = {"is_causal", "kv_num_heads", "q_num_heads",      "qk_matmul_output_mode",
                                              "scale",     "softcap",      "softmax_precision"};
  for (const Attribute &attribute : node.attributes)
    if (!known.count(attribute.name))
      return lowering.unsupported("attribute " + attribute.name, "write the attention out");
  in.softcap = floatAttribute(node, "softcap", 0);
  size_t rank = lowering.dims(0).size();
  int64_t qHeads = intAttribute(node, "q_num_heads", 0), kvHeads = intAttribute(node, "kv_num_heads", 0);
  bool fits = (rank == 4 || rank == 3) && lowering.isFloatInput(0);
  for (size_t i = 0; fits && i < 3; ++i) {
    int64_t heads = i == 0 ? qHeads : kvHeads;
    fits = lowering.dims(i).size() == rank && lowering.dtype(i) == lowering.dtype(0) &&
           (rank == 4 || (heads > 0 && lowering.dims(i)[2] % heads == 0));
  }
  if (!fits)
    return lowering.bad(
        "expected float query, key and value of rank 4, or of rank 3 with head counts that divide their width");
  in.q = splitHeads(lowering.b, lowering.tensor(0), qHeads);
  in.k = splitHeads(lowering.b, lowering.tensor(1), kvHeads);
  in.v = splitHeads(lowering.b, lowering.tensor(2), kvHeads);
  ArrayRef<int64_t> q = shapeOf(in.q), k = shapeOf(in.k), v = shapeOf(in.v);
  if (q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || q[1] % k[1] != 0 || q[3] != k[3] || k[2] != v[2])
    return lowering.bad("expected query, key and value whose batches, heads, lengths and widths fit");
  in.scale = floatAttribute(node, "scale", 1 / std::sqrt(static_cast<double>(q[3])));
  return readMask(lowering, in);
}
} // namespace

static LogicalResult lowerAttention(Lowering &lowering) {
  AttentionInputs in;
  if (failed(readInputs(lowering, in)))
    return failure();
  ImplicitLocOpBuilder &b = lowering.b;
  bool learned = in.mask && lowering.importer.dependsOnParameter(in.mask);
  Value y = learned || in.softcap != 0 ? writtenOut(lowering, in) : attended(b, in);
  if (lowering.dims(0).size() == 3) {
    Dims shape(shapeOf(y));
    y = graph::reshape(b, graph::transpose(b, y, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
  }
  return lowering.done(y);
}

/// cos or sin as (B or 1, 1, S, R/2), looked up by position ids where given.
static Value rotaryTable(Lowering &lowering, size_t i, int64_t batch, int64_t length, int64_t half) {
  ImplicitLocOpBuilder &b = lowering.b;
  Value table = lowering.tensor(i);
  ArrayRef<int64_t> shape = shapeOf(table);
  if (lowering.has(3)) {
    Dims ids = lowering.dims(3);
    bool integer = lowering.dtype(3) == DType::I64 || lowering.dtype(3) == DType::I32;
    if (shape.size() != 2 || shape[1] < half || ids != Dims{batch, length} || !integer)
      return {};
    Dims out{batch, length, shape[1]};
    table = graph::GatherOp::create(b, graph::tensorLike(table.getType(), out), table, lowering.tensor(3), 0);
  } else if (shape.size() != 3 || (shape[0] != batch && shape[0] != 1) || shape[1] != length || shape[2] < half) {
    return {};
  }
  int64_t rows = shapeOf(table)[0];
  table = sliceOf(b, table, {0, 0, 0}, {rows, length, half}, {1, 1, 1});
  return graph::reshape(b, table, {rows, 1, length, half});
}

static LogicalResult lowerRotary(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims given = lowering.dims(0);
  int64_t heads = intAttribute(lowering.node, "num_heads", 0);
  if (!lowering.isFloatInput(0) || (given.size() != 4 && (given.size() != 3 || heads < 1 || given[2] % heads != 0)) ||
      lowering.inputs() < 3)
    return lowering.bad("expected a float input (B, H, S, D), or (B, S, H*D) with num_heads");
  Value x = splitHeads(b, lowering.tensor(0), heads);
  Dims s(shapeOf(x));
  int64_t rotated = intAttribute(lowering.node, "rotary_embedding_dim", 0);
  rotated = rotated == 0 ? s[3] : rotated;
  bool interleaved = intAttribute(lowering.node, "interleaved", 0) != 0;
  Value cos, sin;
  if (rotated >= 2 && rotated <= s[3] && rotated % 2 == 0 && lowering.dtype(1) == lowering.dtype(0) &&
      lowering.dtype(2) == lowering.dtype(0)) {
    cos = rotaryTable(lowering, 1, s[0], s[2], rotated / 2);
    sin = rotaryTable(lowering, 2, s[0], s[2], rotated / 2);
  }
  if (!cos || !sin)
    return lowering.bad(
        "expected cos and sin tables of half the rotated width, and position ids (B, S) where the tables need them");
  Dims part{s[0], s[1], s[2], rotated / 2};
  int64_t step = interleaved ? 2 : 1, second = interleaved ? 1 : rotated / 2;
  Value a = sliceOf(b, x, {0, 0, 0, 0}, part, {1, 1, 1, step}),
        c = sliceOf(b, x, {0, 0, 0, second}, part, {1, 1, 1, step});
  cos = numpyBroadcast(b, cos, part);
  sin = numpyBroadcast(b, sin, part);
  auto times = [&](Value l, Value r) { return graph::MulOp::create(b, l, r).getResult(); };
  Value real = graph::SubOp::create(b, times(cos, a), times(sin, c)),
        imaginary = graph::AddOp::create(b, times(sin, a), times(cos, c));
  Dims joined{s[0], s[1], s[2], rotated};
  Value y;
  if (interleaved) {
    Dims column{s[0], s[1], s[2], rotated / 2, 1}, pair{s[0], s[1], s[2], rotated / 2, 2};
    SmallVector<Value> parts{graph::reshape(b, real, column), graph::reshape(b, imaginary, column)};
    y = graph::reshape(b, graph::ConcatOp::create(b, graph::tensorLike(x.getType(), pair), parts, 4), joined);
  } else {
    y = graph::ConcatOp::create(b, graph::tensorLike(x.getType(), joined), SmallVector<Value>{real, imaginary}, 3);
  }
  if (rotated < s[3]) {
    Value rest = sliceOf(b, x, {0, 0, 0, rotated}, {s[0], s[1], s[2], s[3] - rotated}, {1, 1, 1, 1});
    y = graph::ConcatOp::create(b, x.getType(), SmallVector<Value>{y, rest}, 3);
  }
  if (given.size() == 3)
    y = graph::reshape(b, graph::transpose(b, y, {0, 2, 1, 3}), given);
  return lowering.done(y);
}

void addAttention(LowerTable &table) {
  table["Attention"] = lowerAttention;
  table["RotaryEmbedding"] = lowerRotary;
}

} // namespace plimsoll::onnx
