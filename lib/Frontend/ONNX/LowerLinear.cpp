// Matrix products: MatMul with numpy batching, Gemm, Einsum. Transposes become flags of graph.dot.
#include "lib/Frontend/ONNX/Importer.h"

using namespace mlir;

namespace plimsoll::onnx {

static Value broadcastBatch(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> batch) {
  Dims shape(batch);
  shape.append(shapeOf(value).end() - 2, shapeOf(value).end());
  return numpyBroadcast(b, value, shape);
}

/// Product of two values of rank >= 2 whose inner sizes agree.
static Value matmul(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  ArrayRef<int64_t> l = shapeOf(lhs), r = shapeOf(rhs);
  if (r.size() == 2) { // one big product instead of a batch of small ones
    Dims out(l.drop_back());
    out.push_back(r.back());
    Value flat = graph::reshape(b, lhs, {productOf(l.drop_back()), l.back()});
    return graph::reshape(b, dotOf(b, flat, rhs), out);
  }
  auto batch = broadcastShapes(l.drop_back(2), r.drop_back(2));
  if (!batch)
    return {};
  return dotOf(b, broadcastBatch(b, lhs, *batch), broadcastBatch(b, rhs, *batch));
}

static LogicalResult lowerMatMul(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims l = lowering.dims(0), r = lowering.dims(1);
  if (!lowering.isFloatInput(0) || lowering.dtype(0) != lowering.dtype(1) || l.empty() || r.empty())
    return lowering.bad("expected two float tensors of rank >= 1");
  bool vectorLeft = l.size() == 1, vectorRight = r.size() == 1;
  Value lhs = lowering.tensor(0), rhs = lowering.tensor(1);
  if (vectorLeft)
    lhs = graph::reshape(b, lhs, {1, l[0]});
  if (vectorRight)
    rhs = graph::reshape(b, rhs, {r[0], 1});
  Value product = shapeOf(lhs).back() == shapeOf(rhs)[shapeOf(rhs).size() - 2] ? matmul(b, lhs, rhs) : Value();
  if (!product)
    return lowering.bad("expected inner sizes that agree and batches that broadcast");
  Dims shape(shapeOf(product));
  if (vectorLeft)
    shape.erase(shape.end() - 2);
  if (vectorRight)
    shape.pop_back();
  return lowering.done(graph::reshape(b, product, shape));
}

static Value timesScalar(ImplicitLocOpBuilder &b, Value x, double factor) {
  return factor == 1 ? x : graph::MulOp::create(b, x, constantLike(b, x, factor)).getResult();
}

static LogicalResult lowerGemm(Lowering &lowering) {
  ImplicitLocOpBuilder &b = lowering.b;
  Dims l = lowering.dims(0), r = lowering.dims(1);
  bool transA = intAttribute(lowering.node, "transA", 0) != 0, transB = intAttribute(lowering.node, "transB", 0) != 0;
  if (!lowering.isFloatInput(0) || lowering.dtype(0) != lowering.dtype(1) || l.size() != 2 || r.size() != 2 ||
      l[transA ? 0 : 1] != r[transB ? 1 : 0])
    return lowering.bad("expected two float matrices whose inner sizes agree");
  Value product = timesScalar(b, dotOf(b, lowering.tensor(0), lowering.tensor(1), transA, transB),
                              floatAttribute(lowering.node, "alpha", 1));
  double beta = floatAttribute(lowering.node, "beta", 1);
  if (!lowering.has(2) || beta == 0)
    return lowering.done(product);
  auto shape = broadcastShapes(shapeOf(product), lowering.dims(2));
  if (!shape || ArrayRef<int64_t>(*shape) != shapeOf(product) || lowering.dtype(2) != lowering.dtype(0))
    return lowering.bad("expected a bias that broadcasts to the product");
  return lowering.done(graph::AddOp::create(b, product, timesScalar(b, lowering.broadcast(2, *shape), beta)));
}

/// A value whose dimensions are named by letters.
struct Labelled {
  Value value;
  std::string labels;
};

static Labelled sumAway(ImplicitLocOpBuilder &b, Labelled term, const std::string &needed) {
  Dims dims;
  std::string kept;
  for (auto [d, label] : llvm::enumerate(term.labels))
    if (needed.find(label) == std::string::npos)
      dims.push_back(static_cast<int64_t>(d));
    else
      kept += label;
  return {graph::reduceSum(b, term.value, dims), kept};
}

static Value arranged(ImplicitLocOpBuilder &b, const Labelled &term, const std::string &order) {
  Dims perm;
  for (char label : order)
    perm.push_back(static_cast<int64_t>(term.labels.find(label)));
  return graph::transpose(b, term.value, perm);
}

/// Contracts two terms, keeping the labels in `needed`: (batch, left, sum) x (batch, right, sum).
static Labelled contract(ImplicitLocOpBuilder &b, Labelled x, Labelled y, const std::string &needed,
                         const std::map<char, int64_t> &sizes) {
  x = sumAway(b, x, needed + y.labels);
  y = sumAway(b, y, needed + x.labels);
  std::string batch, left, right, sum;
  for (char label : x.labels) {
    bool both = y.labels.find(label) != std::string::npos, kept = needed.find(label) != std::string::npos;
    (both ? (kept ? batch : sum) : left) += label;
  }
  for (char label : y.labels)
    if (x.labels.find(label) == std::string::npos)
      right += label;
  auto size = [&](const std::string &labels) {
    int64_t product = 1;
    for (char label : labels)
      product *= sizes.at(label);
    return product;
  };
  Value a = graph::reshape(b, arranged(b, x, batch + left + sum), {size(batch), size(left), size(sum)});
  Value c = graph::reshape(b, arranged(b, y, batch + right + sum), {size(batch), size(right), size(sum)});
  Dims shape;
  for (char label : batch + left + right)
    shape.push_back(sizes.at(label));
  return {graph::reshape(b, dotOf(b, a, c, false, true), shape), batch + left + right};
}

/// Splits "ab,bc->ac" into terms and result; "..." becomes capital letters from 'A' on, aligned at the right.
static bool parseEinsum(std::string equation, const std::vector<size_t> &ranks, std::vector<std::string> &terms,
                        std::string &out) {
  llvm::erase(equation, ' ');
  size_t arrow = equation.find("->");
  SmallVector<StringRef> parts;
  StringRef(equation).take_front(arrow == std::string::npos ? equation.size() : arrow).split(parts, ',');
  if (parts.size() != ranks.size())
    return false;
  size_t widest = 0;
  for (auto [part, rank] : llvm::zip(parts, ranks))
    if (size_t dots = part.find("..."); dots != StringRef::npos) {
      if (rank + 3 < part.size())
        return false;
      widest = std::max(widest, rank + 3 - part.size());
    }
  auto expand = [&](StringRef text, size_t count) {
    std::string letters, result = text.str();
    for (size_t i = widest - count; i < widest; ++i)
      letters += static_cast<char>('A' + i);
    if (size_t dots = result.find("..."); dots != std::string::npos)
      result.replace(dots, 3, letters);
    return result;
  };
  for (auto [part, rank] : llvm::zip(parts, ranks)) {
    bool dots = part.contains("...");
    if (widest > 26 ||
        llvm::any_of(part, [](char c) { return c != '.' && !std::islower(static_cast<unsigned char>(c)); }))
      return false;
    terms.push_back(expand(part, dots ? rank + 3 - part.size() : 0));
  }
  if (arrow != std::string::npos) {
    out = expand(StringRef(equation).drop_front(arrow + 2), widest);
  } else {
    std::map<char, int> uses;
    for (const std::string &term : terms)
      for (char label : term)
        ++uses[label];
    for (auto [label, count] : uses)
      if (count == 1 || std::isupper(static_cast<unsigned char>(label)))
        out += label;
  }
  return true;
}

static LogicalResult lowerEinsum(Lowering &lowering) {
  std::vector<std::string> terms;
  std::vector<size_t> ranks;
  std::string out;
  for (size_t i = 0; i < lowering.inputs(); ++i)
    ranks.push_back(lowering.dims(i).size());
  std::map<char, int64_t> sizes;
  bool ok = !ranks.empty() && parseEinsum(textAttribute(lowering.node, "equation", ""), ranks, terms, out);
  for (size_t i = 0; ok && i < terms.size(); ++i) {
    std::set<char> distinct(terms[i].begin(), terms[i].end());
    ok = terms[i].size() == ranks[i] && distinct.size() == ranks[i] && lowering.isFloatInput(i) &&
         lowering.dtype(i) == lowering.dtype(0);
    for (size_t d = 0; ok && d < ranks[i]; ++d)
      ok = sizes.emplace(terms[i][d], lowering.dims(i)[d]).first->second == lowering.dims(i)[d];
  }
  std::set<char> distinct(out.begin(), out.end());
  ok = ok && distinct.size() == out.size() && llvm::all_of(out, [&](char label) { return sizes.count(label) != 0; });
  if (!ok)
    return lowering.unsupported("einsum '" + textAttribute(lowering.node, "equation", "") + "' with these inputs",
                                "write it with matmul and transpose");
  Labelled result{lowering.tensor(0), terms[0]};
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string needed = out;
    for (size_t j = i + 1; j < terms.size(); ++j)
      needed += terms[j];
    result = contract(lowering.b, result, {lowering.tensor(i), terms[i]}, needed, sizes);
  }
  result = sumAway(lowering.b, result, out);
  return lowering.done(arranged(lowering.b, result, out));
}

void addLinear(LowerTable &table) {
  table["MatMul"] = lowerMatMul;
  table["Gemm"] = lowerGemm;
  table["Einsum"] = lowerEinsum;
}

} // namespace plimsoll::onnx
