// View resolution against brute force: the reference evaluator moves the elements of 0, 1, 2, ... through a chain of
// views, and the window must find the same ones.
#include "lib/Passes/Layout.h"
#include "test/unit/Passes/PlanMachine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

using namespace mlir;
using namespace plimsoll;
using namespace plimsoll::graph;
using namespace plimsoll::test;
using ::testing::ElementsAre;

namespace {

/// One function whose argument is sent through views.
struct Chain {
  PassContext pass;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  Value last;

  explicit Chain(ArrayRef<int64_t> shape) : module(ModuleOp::create(UnknownLoc::get(&pass.context))) {
    OpBuilder builder(module->getBodyRegion());
    Type type = RankedTensorType::get(shape, builder.getF32Type());
    function = func::FuncOp::create(builder, module->getLoc(), "f", builder.getFunctionType({type}, {}));
    last = function.addEntryBlock()->getArgument(0);
  }
  ImplicitLocOpBuilder builder() {
    ImplicitLocOpBuilder at(function.getLoc(), &pass.context);
    at.setInsertionPointToEnd(&function.getBody().front());
    return at;
  }
  SmallVector<int64_t> shape() { return llvm::to_vector(tensorType(last).getShape()); }

  void reshape(ArrayRef<int64_t> to) {
    auto at = builder();
    last = ReshapeOp::create(at, tensorLike(last.getType(), to), last);
  }
  void transpose(ArrayRef<int64_t> perm) {
    SmallVector<int64_t> to;
    for (int64_t d : perm)
      to.push_back(shape()[d]);
    auto at = builder();
    last = TransposeOp::create(at, tensorLike(last.getType(), to), last, perm);
  }
  void slice(ArrayRef<int64_t> sizes, ArrayRef<int64_t> starts, ArrayRef<int64_t> strides) {
    auto at = builder();
    last = SliceOp::create(at, tensorLike(last.getType(), sizes), last, starts, strides);
  }
  void broadcast(ArrayRef<int64_t> to, ArrayRef<int64_t> dims) {
    auto at = builder();
    last = BroadcastOp::create(at, tensorLike(last.getType(), to), last, dims);
  }

  /// For each element of the last view, in row-major order, which argument element it is.
  std::vector<int64_t> meaning() {
    func::FuncOp copy = function.clone();
    module->push_back(copy);
    copy.setName("g");
    OpBuilder builder = OpBuilder::atBlockEnd(&copy.getBody().front());
    // The chain is straight, so the clone's last op defines the last view.
    Value result =
        copy.getBody().front().empty() ? Value(copy.getArgument(0)) : copy.getBody().front().back().getResult(0);
    func::ReturnOp::create(builder, copy.getLoc(), result);
    copy.setFunctionType(builder.getFunctionType(copy.getArgumentTypes(), {result.getType()}));
    HostTensor numbers = HostTensor::zeros(copy.getArgumentTypes()[0]);
    std::iota(numbers.floats.begin(), numbers.floats.end(), 0.0);
    reference::VariableState none;
    auto results = reference::evaluate(copy, numbers, none);
    std::vector<int64_t> elements(results->front().floats.begin(), results->front().floats.end());
    copy.erase();
    return elements;
  }
  std::vector<int64_t> found(const StorageWindow &window) {
    std::vector<int64_t> elements;
    reference::forEachIndex(shape(), [&](ArrayRef<int64_t> index) {
      int64_t at = window.offset;
      for (auto [i, stride] : llvm::zip_equal(index, window.strides))
        at += i * stride;
      elements.push_back(at);
    });
    return elements;
  }
};

/// Whether any strides at all place `elements` (row-major over `shape`): they must be affine in the index.
bool isStrided(ArrayRef<int64_t> shape, const std::vector<int64_t> &elements) {
  if (elements.empty())
    return true;
  SmallVector<int64_t> dense = denseStrides(shape), strides(shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1)
      strides[d] = elements[static_cast<size_t>(dense[d])] - elements[0];
  bool fits = true;
  size_t next = 0;
  reference::forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    int64_t at = elements[0];
    for (auto [i, stride] : llvm::zip_equal(index, strides))
      at += i * stride;
    fits &= elements[next++] == at;
  });
  return fits;
}

/// All ways to write `product` as `rank` factors, sizes 1 included.
void factorings(int64_t product, size_t rank, SmallVector<int64_t> &prefix, std::vector<SmallVector<int64_t>> &all) {
  if (rank == 0) {
    if (product == 1)
      all.push_back(prefix);
    return;
  }
  for (int64_t factor = 1; factor <= product; ++factor)
    if (product % factor == 0) {
      prefix.push_back(factor);
      factorings(product / factor, rank - 1, prefix, all);
      prefix.pop_back();
    }
}

std::vector<SmallVector<int64_t>> shapesOf(int64_t product, size_t mostRank) {
  std::vector<SmallVector<int64_t>> all;
  SmallVector<int64_t> prefix;
  for (size_t rank = product == 1 ? 0 : 1; rank <= mostRank; ++rank)
    factorings(product, rank, prefix, all);
  return all;
}

} // namespace

// Every reshape of every transposed tensor of 12 elements up to rank 4: a window exactly where strides can say it, and
// the right one.
TEST(Layout, everyReshapeOfATransposedTensor) {
  std::vector<SmallVector<int64_t>> shapes = shapesOf(12, 3), targets = shapesOf(12, 4);
  size_t windows = 0, refusals = 0;
  for (const SmallVector<int64_t> &shape : shapes) {
    SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(shape.size())));
    do {
      Chain chain(shape);
      chain.transpose(perm);
      Value transposed = chain.last;
      for (const SmallVector<int64_t> &target : targets) {
        chain.last = transposed;
        chain.reshape(target);
        std::vector<int64_t> expected = chain.meaning();
        std::optional<StorageWindow> window = windowOf(chain.last);
        ASSERT_EQ(window.has_value(), isStrided(target, expected));
        ++(window ? windows : refusals);
        if (window) {
          ASSERT_EQ(chain.found(*window), expected);
        }
        chain.last.getDefiningOp()->erase();
      }
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
  EXPECT_GT(windows, 1000u);
  EXPECT_GT(refusals, 1000u);
}

// Random chains of all four views. A chain whose inner reshape has no window has none; else the window is the right
// one.
TEST(Layout, randomChainsOfViews) {
  std::mt19937 random(7);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  size_t windows = 0, longer = 0;
  for (int round = 0; round < 2000; ++round) {
    SmallVector<int64_t> shape;
    for (int64_t rank = below(4); rank >= 0; --rank)
      shape.push_back(1 + below(4));
    Chain chain(shape);
    int length = 1 + static_cast<int>(below(5));
    for (int step = 0; step < length; ++step) {
      SmallVector<int64_t> now = chain.shape();
      size_t rank = now.size();
      switch (below(4)) {
      case 0: {
        auto all = shapesOf(tensorType(chain.last).getNumElements(), 4);
        if (tensorType(chain.last).getNumElements() <= 64 && !all.empty())
          chain.reshape(all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))]);
        break;
      }
      case 1: {
        SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(rank)));
        std::shuffle(perm.begin(), perm.end(), random);
        chain.transpose(perm);
        break;
      }
      case 2: {
        SmallVector<int64_t> sizes, starts, strides;
        for (int64_t size : now) {
          starts.push_back(below(size));
          strides.push_back(1 + below(3));
          sizes.push_back(1 + below((size - 1 - starts.back()) / strides.back() + 1));
        }
        chain.slice(sizes, starts, strides);
        break;
      }
      default: {
        SmallVector<int64_t> to, dims;
        for (int64_t size : now) {
          if (to.size() < 4 && below(3) == 0)
            to.push_back(1 + below(3));
          dims.push_back(static_cast<int64_t>(to.size()));
          to.push_back(size == 1 ? 1 + below(3) : size);
        }
        chain.broadcast(to, dims);
      }
      }
    }
    std::optional<StorageWindow> window = windowOf(chain.last);
    if (!window)
      continue;
    ++windows;
    longer += length > 3;
    ASSERT_EQ(window->base, Value(chain.function.getArgument(0)));
    ASSERT_EQ(chain.found(*window), chain.meaning());
    // Dense means: the elements are consecutive.
    std::vector<int64_t> consecutive(chain.found(*window).size());
    std::iota(consecutive.begin(), consecutive.end(), window->offset);
    ASSERT_EQ(isDense(chain.shape(), window->strides), chain.found(*window) == consecutive);
    bool all = consecutive.size() == static_cast<size_t>(tensorType(chain.function.getArgument(0)).getNumElements());
    ASSERT_EQ(isWholeStorage(chain.last), all && window->offset == 0 && chain.found(*window) == consecutive);
  }
  EXPECT_GT(windows, 1000u);
  EXPECT_GT(longer, 300u);
}

TEST(Layout, emptyTensorsHaveWindows) {
  Chain chain({2, 0, 3});
  chain.transpose({1, 2, 0});
  chain.reshape({3, 0});
  std::optional<StorageWindow> window = windowOf(chain.last);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->strides.size(), 2u);
}

TEST(Layout, stateWritesNeedStorageOfTheirOwn) {
  PassContext pass;
  OwningOpRef<ModuleOp> module =
      parseModule(pass.context, R"(graph.variable @v : tensor<2x2xf32> {kind = #graph.variable_kind<model_state>}
    func.func @f(%x: tensor<2x2xf32>) {
      %v = graph.read @v : tensor<2x2xf32>
      %c = graph.copy %x : tensor<2x2xf32>
      %r = graph.reshape %c : tensor<2x2xf32> -> tensor<4xf32>
      %t = graph.transpose %c [1, 0] : tensor<2x2xf32> -> tensor<2x2xf32>
      %vr = graph.reshape %v : tensor<2x2xf32> -> tensor<4xf32>
      return
    })");
  std::vector<bool> own;
  auto function = module->lookupSymbol<func::FuncOp>("f");
  for (Operation &op : function.getBody().front().without_terminator())
    own.push_back(hasOwnStorage(op.getResult(0)));
  EXPECT_THAT(
      own, ElementsAre(false, true, true, false, false)); // read, copy, its reshape, its transpose, the read's reshape
  EXPECT_FALSE(hasOwnStorage(function.getArgument(0)));
}
