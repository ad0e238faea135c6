// Emits a kernel group as loops over vectors.
//
// Problem. A group is a region of element formulas over an iteration space with parallel dimensions P and reduced
// dimensions R. One kernel runs a half-open range of parallel units; results must not depend on how the range is cut.
//
// Method. The lane dimension (LoopSpace) decides the form.
//   elementwise  R is empty. A unit is a block of the lane dimension at one index of the other dimensions.
//   row          the lane dimension is in R (softmax, norms). A unit is one index of P; parallel values are scalars;
//   lanes are
//                partial results, combined by halving in a fixed order.
//   column       the lane dimension is in P (bias gradients). A unit is one vector of columns; parallel values are
//   vectors.
// A unit runs the passes of Stages in order: loops over R with accumulators as loop-carried values, then the parallel
// formulas that became computable. A vector is several registers wide when formulas are light, which gives independent
// accumulators. Ends of the lane dimension use the same formulas under a mask, so an element's bits do not depend on
// its lane.
//
// Accuracy. Sums of f32 run in `chunkSteps` steps per lane, then the partial sum is added to an f64 lane, so that the
// error does not grow with the number of elements.
#include "lib/Codegen/CPU/KernelEmitter.h"

#include "lib/Codegen/CPU/ElementAccess.h"
#include "lib/Codegen/CPU/ScalarOps.h"
#include "lib/Codegen/CPU/Stages.h"
#include "lib/Codegen/CPU/VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace plimsoll::graph;

namespace plimsoll::codegen {
namespace {

constexpr int64_t chunkSteps = 128;         // f32 additions per lane between additions in f64
constexpr int64_t singleLevelSteps = 256;   // sums no longer than this per lane stay in f32
constexpr int64_t elementBlock = 2048;      // lane elements of one unit of an elementwise kernel
constexpr int64_t elementsPerChunk = 16384; // least work worth handing to another thread

enum class Form { Elementwise, Row, Column };

/// A reduction while it runs.
struct Accumulator {
  Operation *op;
  bool isMax;
  bool wide; ///< collected in f64 between chunks
};

/// Where a loop body stands: one index per reduced loop, the first lane, and the lanes that exist (null = all).
struct Position {
  SmallVector<Value> reduced;
  Value lane;
  Value mask;
};

class KernelEmitter {
public:
  KernelEmitter(ModuleOp module, GroupOp source, const LoopSpace &loops, unsigned registerBytes)
      : b(source.getLoc(), OpBuilder::atBlockEnd(module.getBody())), group(source), space(loops),
        stages(buildStages(source)) {
    form = group.getReduced().empty() ? Form::Elementwise : (space.laneReduced() ? Form::Row : Form::Column);
    for (size_t d = 0; d < space.dims.size(); ++d)
      if (static_cast<int>(d) != space.lane)
        (space.dims[d].reduced ? reducedDims : outerDims).push_back(d);
    chooseWidth(registerBytes);
  }

  KernelInfo emit(StringRef symbol) {
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type = b.getFunctionType({pointer, b.getI64Type(), b.getI64Type()}, {});
    auto function = func::FuncOp::create(b, symbol, type);
    b.setInsertionPointToStart(function.addEntryBlock());
    loadPointers(function.getArgument(0));
    hoistConstantsOfKernel();
    forLoop(function.getArgument(1), function.getArgument(2), 1, {}, [&](Value unit, ValueRange) {
      emitUnit(unit);
      return SmallVector<Value>();
    });
    func::ReturnOp::create(b);
    return {symbol.str(), units(), grain()};
  }

private:
  // --- sizes ---------------------------------------------------------------------------------------------------------

  // Lanes per vector: registers of the widest common type times 1, 2 or 4 by how light the formulas are.
  void chooseWidth(unsigned registerBytes) {
    bool hasDouble = llvm::any_of(space.walks, [](const Walk &walk) { return walk.full && walk.element.isF64(); });
    unsigned weight = bodyWeight(group), registers = weight <= 12 ? 4 : (weight <= 40 ? 2 : 1);
    if (form == Form::Elementwise)
      registers = weight <= 12 ? 2 : 1;
    uint64_t most = registers * registerBytes / (hasDouble ? 8 : 4);
    width = static_cast<unsigned>(std::min<uint64_t>(most, llvm::PowerOf2Ceil(std::max<int64_t>(1, space.laneSize()))));
    block = form == Form::Elementwise ? std::min<int64_t>(std::max<int64_t>(elementBlock, width),
                                                          llvm::alignTo(std::max<int64_t>(space.laneSize(), 1), width))
                                      : width;
  }
  int64_t product(ArrayRef<size_t> dims) const {
    int64_t result = 1;
    for (size_t d : dims)
      result *= space.dims[d].size;
    return result;
  }
  int64_t blocks() const {
    return form == Form::Row ? 1
                             : static_cast<int64_t>(llvm::divideCeil(static_cast<uint64_t>(space.laneSize()),
                                                                     static_cast<uint64_t>(block)));
  }
  int64_t units() const { return product(outerDims) * blocks(); }
  int64_t grain() const {
    int64_t perUnit = (form == Form::Row ? space.laneSize() : block) * product(reducedDims) *
                      static_cast<int64_t>(stages.reductions.size() + 1);
    return std::clamp<int64_t>(elementsPerChunk / std::max<int64_t>(perUnit, 1), 1, std::max<int64_t>(units(), 1));
  }
  int64_t stepsPerLane() const { return product(reducedDims) * (form == Form::Row ? space.laneSize() / width : 1); }

  // --- small builders
  // --------------------------------------------------------------------------------------------------

  Value index(int64_t value) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value times(Value x, int64_t factor) {
    return factor == 1 ? x : arith::MulIOp::create(b, x, index(factor)).getResult();
  }
  Type lanesOf(Type element) const {
    return width == 1 ? element : Type(VectorType::get({static_cast<int64_t>(width)}, element));
  }
  Value spread(Value scalar) {
    return width == 1 || isa<VectorType>(scalar.getType())
               ? scalar
               : vector::BroadcastOp::create(b, cast<VectorType>(lanesOf(scalar.getType())), scalar).getResult();
  }
  /// Lanes 0, 1, ... scaled, in an integer type.
  Value ramp(Type element, int64_t stride) {
    if (width == 1)
      return constantInt(b, element, 0);
    SmallVector<Attribute> values;
    for (unsigned lane = 0; lane < width; ++lane)
      values.push_back(b.getIntegerAttr(element, static_cast<int64_t>(lane) * stride));
    return arith::ConstantOp::create(b, DenseElementsAttr::get(cast<ShapedType>(lanesOf(element)), values));
  }
  Value maskBelow(Value count) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, ramp(b.getI32Type(), 1),
                                 spread(arith::TruncIOp::create(b, b.getI32Type(), count)));
  }

  using LoopBody = llvm::function_ref<SmallVector<Value>(Value, ValueRange)>;
  SmallVector<Value> forLoop(Value low, Value high, int64_t step, ArrayRef<Value> carried, LoopBody body) {
    auto loop = scf::ForOp::create(b, low, high, index(step), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
    if (!carried.empty())
      scf::YieldOp::create(b, next);
    return SmallVector<Value>(loop.getResults());
  }

  // --- addresses
  // -------------------------------------------------------------------------------------------------------

  void loadPointers(Value table) {
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    for (const Walk &walk : space.walks) {
      if (walk.isIota) {
        pointers.push_back(Value());
        continue;
      }
      Value slot =
          LLVM::GEPOp::create(b, pointer, pointer, table, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(walk.operand)});
      pointers.push_back(LLVM::LoadOp::create(b, pointer, slot));
    }
  }

  Value offset(ArrayRef<int64_t> strides, ArrayRef<size_t> dims, ArrayRef<Value> indices, Value sum) {
    for (auto [d, value] : llvm::zip(dims, indices))
      if (strides[d] != 0)
        sum = sum ? add(sum, times(value, strides[d])) : times(value, strides[d]);
    return sum;
  }

  // Splits a unit number into outer indices (and the block), and moves every walk there.
  void placeUnit(Value unit, Position &position) {
    if (form != Form::Row && blocks() > 1) {
      Value number = arith::RemUIOp::create(b, unit, index(blocks()));
      unit = arith::DivUIOp::create(b, unit, index(blocks()));
      position.lane = times(number, block);
    } else {
      position.lane = index(0);
    }
    SmallVector<Value> indices(outerDims.size());
    for (size_t i = outerDims.size(); i-- > 0;) {
      int64_t size = space.dims[outerDims[i]].size;
      indices[i] = i == 0 ? unit : arith::RemUIOp::create(b, unit, index(size)).getResult();
      if (i > 0)
        unit = arith::DivUIOp::create(b, unit, index(size));
    }
    bases.clear();
    for (auto [walk, pointer] : llvm::zip(space.walks, pointers)) {
      Value start = offset(walk.strides, outerDims, indices, Value());
      if (walk.isIota)
        bases.push_back(start ? start : index(0));
      else
        bases.push_back(start ? advance(b, pointer, start, walk.element) : pointer);
    }
  }

  int64_t laneStride(const Walk &walk) const { return space.lane < 0 ? 0 : walk.strides[space.lane]; }
  Value innerOffset(const Walk &walk, const Position &position) {
    Value sum = offset(walk.strides, reducedDims, position.reduced, Value());
    if (laneStride(walk) != 0 && position.lane)
      sum = sum ? add(sum, times(position.lane, laneStride(walk))) : times(position.lane, laneStride(walk));
    return sum;
  }

  // --- reading and writing walks -------------------------------------------------------------------------------------

  Value read(unsigned number, const Position &position, bool oneElement) {
    const Walk &walk = space.walks[number];
    if (walk.isIota)
      return readIota(walk, bases[number], position, oneElement);
    Value inner = innerOffset(walk, position);
    Value pointer = inner ? advance(b, bases[number], inner, walk.element) : bases[number];
    LaneAccess access{walk.element, laneStride(walk), oneElement ? 1 : width, position.mask};
    return loadLanes(b, pointer, access);
  }
  Value readIota(const Walk &walk, Value base, const Position &position, bool oneElement) {
    Value inner = innerOffset(walk, position);
    Value start = inner ? add(base, inner) : base;
    Type element = computeType(walk.element);
    Type integer = isa<FloatType>(element) ? b.getI64Type() : element;
    if (integer != b.getI64Type())
      start = arith::TruncIOp::create(b, integer, start);
    Value value = oneElement ? start : add(spread(start), ramp(integer, laneStride(walk)));
    return isa<FloatType>(element) ? Value(arith::SIToFPOp::create(b, typeLike(value.getType(), element), value))
                                   : value;
  }
  void write(unsigned number, Value value, const Position &position) {
    const Walk &walk = space.walks[number];
    bool oneElement = form == Form::Row && !walk.full;
    Value inner = oneElement ? Value() : innerOffset(walk, position);
    Value pointer = inner ? advance(b, bases[number], inner, walk.element) : bases[number];
    LaneAccess access{walk.element, laneStride(walk), oneElement ? 1 : width, oneElement ? Value() : position.mask};
    storeLanes(b, value, pointer, access);
  }

  // Reads that no loop of the kernel moves are done once, before the first unit.
  void hoistConstantsOfKernel() {
    for (auto [value, number] : orderedReads()) {
      const Walk &walk = space.walks[number];
      if (walk.isIota || !walk.full || llvm::any_of(walk.strides, [](int64_t stride) { return stride != 0; }))
        continue;
      kernelValues[value] = spread(loadLanes(b, pointers[number], {walk.element, 0, 1, Value()}));
    }
  }
  // Reads that no loop inside a unit moves are done once per unit.
  void hoistConstantsOfUnit(const Position &position) {
    unitValues = kernelValues;
    for (auto [value, number] : orderedReads()) {
      const Walk &walk = space.walks[number];
      bool moves = llvm::any_of(reducedDims, [&](size_t d) { return walk.strides[d] != 0; }) ||
                   (form != Form::Column && laneStride(walk) != 0);
      if (walk.full && !moves && !unitValues.count(value))
        unitValues[value] = read(number, position, false);
    }
  }
  /// Reads in region order, so that emission does not depend on pointer values.
  SmallVector<std::pair<Value, unsigned>> orderedReads() const {
    SmallVector<std::pair<Value, unsigned>> ordered;
    for (auto entry : space.reads)
      ordered.push_back({entry.first, entry.second});
    llvm::sort(ordered, [](auto &l, auto &r) { return l.second < r.second; });
    return ordered;
  }

  // --- formulas
  // ----------------------------------------------------------------------------------------------------------

  using Values = llvm::DenseMap<Value, Value>;

  Value splatOf(ConstantOp constant, bool full) {
    Type element = computeType(constant.getType().getElementType());
    return emitSplat(b, constant, full || form != Form::Row ? lanesOf(element) : element);
  }

  /// Value of a full-space formula at `position`; `values` holds what this body has computed already.
  Value full(Value value, const Position &position, Values &values) {
    if (Value known = unitValues.lookup(value))
      return known;
    if (Value known = values.lookup(value))
      return known;
    Value result = computeFull(value, position, values);
    values[value] = result;
    return result;
  }
  Value computeFull(Value value, const Position &position, Values &values) {
    auto read_ = space.reads.find(value);
    if (read_ != space.reads.end())
      return read(read_->second, position, false);
    Operation *op = value.getDefiningOp();
    if (auto constant = dyn_cast<ConstantOp>(op))
      return splatOf(constant, true);
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      if (auto constant = broadcast.getOperand().getDefiningOp<ConstantOp>())
        return splatOf(constant, true);
      bool isFull = extentOf(group, broadcast.getOperand()) == Extent::Full;
      return isFull ? full(broadcast.getOperand(), position, values)
                    : spread(parallelValues.lookup(broadcast.getOperand()));
    }
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(full(operand, position, values));
    return emitScalarOp(b, op, operands);
  }

  Value parallel(Value value) {
    if (auto constant = value.getDefiningOp<ConstantOp>())
      return splatOf(constant, false);
    return parallelValues.lookup(value);
  }
  /// Computes the parallel values that are complete before pass `level`.
  void emitParallel(unsigned level, const Position &position) {
    bool oneElement = form == Form::Row;
    if (level == 0)
      for (auto [value, number] : orderedReads())
        if (!space.walks[number].full)
          parallelValues[value] = read(number, position, oneElement);
    for (Operation &op : group.getBody().front().without_terminator()) {
      Value result = op.getResult(0);
      bool isReduce = isa<ReduceSumOp, ReduceMaxOp>(op);
      if (isReduce || isa<ConstantOp>(op) || stages.level.lookup(result) != level ||
          extentOf(group, result) != Extent::Parallel || parallelValues.count(result))
        continue;
      parallelValues[result] = computeParallel(op);
    }
  }
  Value computeParallel(Operation &op) {
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      return parallel(broadcast.getOperand());
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(parallel(operand));
    return emitScalarOp(b, &op, operands);
  }

  // --- reductions
  // --------------------------------------------------------------------------------------------------------

  SmallVector<Accumulator> accumulatorsOf(unsigned pass) const {
    SmallVector<Accumulator> accumulators;
    for (Operation *op : stages.reductions[pass]) {
      bool isMax = isa<ReduceMaxOp>(op);
      bool wide = !isMax && computeType(tensorType(op->getOperand(0)).getElementType()).isF32() &&
                  stepsPerLane() > singleLevelSteps;
      accumulators.push_back({op, isMax, wide});
    }
    return accumulators;
  }
  static Type elementOf(const Accumulator &accumulator) {
    return computeType(tensorType(accumulator.op->getOperand(0)).getElementType());
  }
  static bool isUnsigned(const Accumulator &accumulator) {
    Type element = tensorType(accumulator.op->getOperand(0)).getElementType();
    return element.isUnsignedInteger() || element.isInteger(1);
  }
  Value identity(const Accumulator &accumulator, bool outer) {
    Type element = outer && accumulator.wide ? Type(b.getF64Type()) : elementOf(accumulator);
    if (isa<FloatType>(element))
      return constantLike(b, lanesOf(element), accumulator.isMax ? -INFINITY : 0);
    if (!accumulator.isMax || isUnsigned(accumulator))
      return constantInt(b, lanesOf(element), 0);
    return constantInt(b, lanesOf(element), APInt::getSignedMinValue(element.getIntOrFloatBitWidth()).getSExtValue());
  }
  Value combine(const Accumulator &accumulator, Value x, Value y) {
    return accumulator.isMax ? emitMaximum(b, x, y, isUnsigned(accumulator)) : emitAdd(b, x, y);
  }
  Value widen(Value x) { return arith::ExtFOp::create(b, typeLike(x.getType(), b.getF64Type()), x); }

  /// One element of every reduction of a pass and, in the last pass, every full-space result.
  SmallVector<Value> emitBody(unsigned pass, const Position &position, ArrayRef<Accumulator> accumulators,
                              ValueRange running) {
    Values values;
    SmallVector<Value> next;
    for (auto [accumulator, sum] : llvm::zip(accumulators, running)) {
      Value term = full(accumulator.op->getOperand(0), position, values);
      if (form == Form::Row && position.mask)
        term = arith::SelectOp::create(b, position.mask, term, identity(accumulator, false));
      next.push_back(combine(accumulator, sum, term));
    }
    if (pass + 1 == stages.reductions.size())
      writeFull(position, values);
    return next;
  }
  void writeFull(const Position &position, Values &values) {
    Operation *yield = group.getBody().front().getTerminator();
    SmallVector<std::pair<unsigned, Value>> results;
    for (auto [number, value] : llvm::enumerate(yield->getOperands()))
      if (extentOf(group, value) == Extent::Full)
        results.push_back({space.writes[number], full(value, position, values)});
    for (auto [walk, value] : results) // every read of this element precedes every write
      write(walk, value, position);
  }

  /// Runs `run` on f32 partial sums that start at 0 and then join their f64 lanes, where accumulators are wide.
  SmallVector<Value> flushed(ArrayRef<Accumulator> accumulators, ArrayRef<Value> outer,
                             llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> run) {
    SmallVector<Value> running;
    for (auto [accumulator, value] : llvm::zip(accumulators, outer))
      running.push_back(accumulator.wide ? identity(accumulator, false) : value);
    running = run(running);
    SmallVector<Value> next;
    for (auto [accumulator, value, partial] : llvm::zip(accumulators, outer, running))
      next.push_back(accumulator.wide ? emitAdd(b, value, widen(partial)) : partial);
    return next;
  }

  /// The innermost static loop [0, end) in steps of `step`.
  SmallVector<Value> innerLoop(int64_t end, int64_t step, ArrayRef<Accumulator> accumulators, ArrayRef<Value> outer,
                               LoopBody body) {
    bool anyWide = llvm::any_of(accumulators, [](const Accumulator &a) { return a.wide; });
    auto run = [&](Value from, Value to, ArrayRef<Value> start) {
      return flushed(accumulators, start,
                     [&](ArrayRef<Value> running) { return forLoop(from, to, step, running, body); });
    };
    if (end == 0)
      return SmallVector<Value>(outer);
    if (!anyWide || end / step <= chunkSteps)
      return run(index(0), index(end), outer);
    int64_t chunk = chunkSteps * step;
    return forLoop(index(0), index(end), chunk, outer, [&](Value from, ValueRange carried) {
      Value to = add(from, index(chunk));
      if (end % chunk != 0)
        to = arith::MinSIOp::create(b, to, index(end));
      return run(from, to, SmallVector<Value>(carried));
    });
  }

  // --- loops over R --------------------------------------------------------------------------------------------------

  SmallVector<Value> emitPass(unsigned pass, size_t depth, Position position, ArrayRef<Accumulator> accumulators,
                              ArrayRef<Value> outer) {
    size_t nested = form == Form::Column && !reducedDims.empty() ? reducedDims.size() - 1 : reducedDims.size();
    if (depth < nested)
      return forLoop(index(0), index(space.dims[reducedDims[depth]].size), 1, outer, [&](Value i, ValueRange carried) {
        Position inside = position;
        inside.reduced.push_back(i);
        return emitPass(pass, depth + 1, inside, accumulators, SmallVector<Value>(carried));
      });
    switch (form) {
    case Form::Row:
      return emitLanes(pass, position, accumulators, outer);
    case Form::Column:
      return emitColumn(pass, position, accumulators, outer);
    case Form::Elementwise:
      emitBlock(pass, position);
      return {};
    }
    return {};
  }

  SmallVector<Value> emitLanes(unsigned pass, Position position, ArrayRef<Accumulator> accumulators,
                               ArrayRef<Value> outer) {
    int64_t size = space.laneSize(), whole = size / width * width;
    SmallVector<Value> sums = innerLoop(whole, width, accumulators, outer, [&](Value lane, ValueRange running) {
      Position at = position;
      at.lane = lane;
      return emitBody(pass, at, accumulators, running);
    });
    if (size == whole)
      return sums;
    position.lane = index(whole);
    position.mask = maskBelow(index(size - whole));
    return flushed(accumulators, sums,
                   [&](ArrayRef<Value> running) { return emitBody(pass, position, accumulators, running); });
  }

  SmallVector<Value> emitColumn(unsigned pass, Position position, ArrayRef<Accumulator> accumulators,
                                ArrayRef<Value> outer) {
    if (reducedDims.empty())
      return flushed(accumulators, outer,
                     [&](ArrayRef<Value> running) { return emitBody(pass, position, accumulators, running); });
    return innerLoop(space.dims[reducedDims.back()].size, 1, accumulators, outer, [&](Value i, ValueRange running) {
      Position at = position;
      at.reduced.push_back(i);
      return emitBody(pass, at, accumulators, running);
    });
  }

  void emitBlock(unsigned pass, Position position) {
    int64_t size = space.laneSize();
    if (blocks() == 1 && size <= width) { // one vector covers the dimension
      if (size < width)
        position.mask = maskBelow(index(size));
      emitBody(pass, position, {}, {});
      return;
    }
    Value low = position.lane, high = add(low, index(block));
    if (size % block != 0)
      high = arith::MinSIOp::create(b, high, index(size));
    Value whole = high;
    if (size % width != 0)
      whole = add(low, times(arith::DivUIOp::create(b, arith::SubIOp::create(b, high, low), index(width)), width));
    forLoop(low, whole, width, {}, [&](Value lane, ValueRange) {
      Position at = position;
      at.lane = lane;
      return emitBody(pass, at, {}, {});
    });
    if (size % width == 0)
      return;
    auto rest = scf::IfOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, whole, high),
                                  /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(rest.thenBlock());
    position.lane = whole;
    position.mask = maskBelow(arith::SubIOp::create(b, high, whole));
    emitBody(pass, position, {}, {});
  }

  // --- one unit
  // ----------------------------------------------------------------------------------------------------------

  // Halves the vector until one lane is left: a fixed order.
  Value acrossLanes(const Accumulator &accumulator, Value lanes) {
    for (int64_t half = width / 2; half >= 1; half /= 2) {
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < half; ++lane) {
        low.push_back(lane);
        high.push_back(lane + half);
      }
      Value lower = vector::ShuffleOp::create(b, lanes, lanes, low);
      lanes = combine(accumulator, lower, vector::ShuffleOp::create(b, lanes, lanes, high));
    }
    return width == 1 ? lanes : vector::ExtractOp::create(b, lanes, ArrayRef<int64_t>{0}).getResult();
  }

  void emitUnit(Value unit) {
    Position position;
    parallelValues.clear();
    placeUnit(unit, position);
    if (form == Form::Column && space.laneSize() % width != 0)
      position.mask = maskBelow(arith::SubIOp::create(b, index(space.laneSize()), position.lane));
    hoistConstantsOfUnit(position);
    emitParallel(0, position);
    if (form == Form::Row)
      position.lane = Value();
    for (unsigned pass = 0; pass < stages.reductions.size(); ++pass) {
      SmallVector<Accumulator> accumulators = accumulatorsOf(pass);
      SmallVector<Value> start;
      for (const Accumulator &accumulator : accumulators)
        start.push_back(identity(accumulator, true));
      SmallVector<Value> sums = emitPass(pass, 0, position, accumulators, start);
      for (auto [accumulator, sum] : llvm::zip(accumulators, sums))
        finish(accumulator, sum);
      emitParallel(pass + 1, position);
    }
    writeParallel(position);
  }
  void finish(const Accumulator &accumulator, Value sum) {
    if (form == Form::Row)
      sum = acrossLanes(accumulator, sum);
    if (accumulator.wide)
      sum = arith::TruncFOp::create(b, typeLike(sum.getType(), b.getF32Type()), sum);
    parallelValues[accumulator.op->getResult(0)] = sum;
  }
  void writeParallel(const Position &position) {
    Operation *yield = group.getBody().front().getTerminator();
    for (auto [number, value] : llvm::enumerate(yield->getOperands()))
      if (extentOf(group, value) == Extent::Parallel)
        write(space.writes[number], parallel(value), position);
  }

  ImplicitLocOpBuilder b;
  GroupOp group;
  const LoopSpace &space;
  Stages stages;
  Form form = Form::Elementwise;
  SmallVector<size_t> outerDims, reducedDims; ///< parallel and reduced loops besides the lane dimension
  unsigned width = 1;                         ///< lanes of a vector
  int64_t block = 1;                          ///< lane elements of one unit (elementwise and column forms)
  SmallVector<Value> pointers, bases;         ///< per walk: the operand's address, and the unit's place in it
  Values kernelValues, unitValues;            ///< reads done before the loops
  Values parallelValues;                      ///< finished parallel values of the unit
};

} // namespace

KernelInfo emitKernel(ModuleOp module, StringRef symbol, GroupOp group, const LoopSpace &space,
                      unsigned registerBytes) {
  return KernelEmitter(module, group, space, registerBytes).emit(symbol);
}

} // namespace plimsoll::codegen
