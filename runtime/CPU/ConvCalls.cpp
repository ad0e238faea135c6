// Fast convolution and its adjoints by oneDNN, which picks the memory formats it is fastest in (channels in blocks of a
// vector). Operands are reordered into the workspace before the primitive and the result out of it after; formats, and
// with them the workspace, are known when the call is prepared.
#include "runtime/CPU/CpuCalls.h"
#include "runtime/CPU/Dnnl.h"
#include "runtime/Kernels/Geometry.h"

#include "plimsoll/Support/Units.h"

namespace plimsoll::runtime {

using dnnl::memory;

namespace {

/// An operand of the primitive: where it comes from or goes to, and whether a reordered copy lives in the workspace.
struct ConvOperand {
  size_t operand = 0; ///< index in the call
  bool reordered = false;
  uint64_t offset = 0; ///< of the copy in the workspace (bytes)
  DnnlStep reorder;    ///< into the workspace (inputs) or out of it (the result)
};

class DnnlConv final : public PreparedCall {
public:
  DnnlConv(DnnlEngine &dnnlEngine, unsigned threadCount) : engine(dnnlEngine), threads(threadCount) {}

  /// Adds operand `index` with the format of the call and the one the primitive wants.
  void addOperand(size_t index, const memory::desc &plain, const memory::desc &wanted) {
    ConvOperand &added = parts.emplace_back();
    added.operand = index;
    added.reordered = plain != wanted;
    if (!added.reordered)
      return;
    const bool result = index == 2;
    const memory::desc &from = result ? wanted : plain, &to = result ? plain : wanted;
    const dnnl::reorder::primitive_desc description(engine.cpu, from, engine.cpu, to, userScratchpad());
    added.reorder = DnnlStep(engine, dnnl::reorder(description), description.scratchpad_desc(),
                             {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
    added.offset = copyBytes;
    copyBytes += alignUp(wanted.get_size(), 64);
    scratchBytes = std::max(scratchBytes, added.reorder.scratchpadBytes());
  }

  void setPrimitive(DnnlStep step) {
    main = std::move(step);
    scratchBytes = alignUp(std::max(scratchBytes, main.scratchpadBytes()), 64);
  }

  uint64_t workspaceBytes() const override { return copyBytes + scratchBytes; }

  void execute(Operands operands, void *workspace) override {
    const DnnlThreads scope(threads);
    char *copies = static_cast<char *>(workspace), *scratch = copies + copyBytes;
    for (size_t i = 0; i < parts.size(); ++i) {
      ConvOperand &part = parts[i];
      mainAddresses[i] = part.reordered ? copies + part.offset : operands[part.operand];
      if (part.reordered && part.operand != 2)
        reorder(part, operands[part.operand], mainAddresses[i], scratch);
    }
    main.execute(mainAddresses, scratch);
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].reordered && parts[i].operand == 2)
        reorder(parts[i], mainAddresses[i], operands[2], scratch);
  }

private:
  void reorder(ConvOperand &part, void *from, void *to, void *scratch) {
    pair[0] = from;
    pair[1] = to;
    part.reorder.execute(pair, scratch);
  }

  DnnlEngine &engine;
  unsigned threads;
  std::vector<ConvOperand> parts;
  DnnlStep main;
  std::vector<void *> mainAddresses = std::vector<void *>(3), pair = std::vector<void *>(2);
  uint64_t copyBytes = 0, scratchBytes = 0;
};

/// The descriptions of x, w and y: as they lie in memory, and with the format left open.
struct ConvDescriptions {
  memory::desc x, w, y, anyX, anyW, anyY;
  memory::dims strides, dilations, padBegin, padEnd;
};

} // namespace

static memory::desc openFormat(const memory::dims &shape) {
  return {shape, memory::data_type::f32, memory::format_tag::any};
}

static memory::desc rowMajor(const memory::dims &shape) {
  return {shape, memory::data_type::f32, contiguousStrides(shape)};
}

static ConvDescriptions describe(const CallSpec &spec, const TensorSpec &x, const TensorSpec &w, const TensorSpec &y) {
  const size_t rank = x.shape.size() - 2;
  const int64_t groups = intAttribute(spec, "groups", 1);
  memory::dims weight = w.shape;
  if (groups > 1) {
    weight[0] /= groups;
    weight.insert(weight.begin(), groups);
  }
  ConvDescriptions conv{rowMajor(x.shape),
                        rowMajor(weight),
                        rowMajor(y.shape),
                        openFormat(x.shape),
                        openFormat(weight),
                        openFormat(y.shape),
                        intsAttribute(spec, "strides", rank, 1),
                        intsAttribute(spec, "dilations", rank, 1),
                        {},
                        {}};
  for (int64_t &dilation : conv.dilations)
    --dilation; // oneDNN counts the gap between taps
  const std::vector<int64_t> pads = intsAttribute(spec, "pads", 2 * rank, 0);
  conv.padBegin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  conv.padEnd.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  return conv;
}

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

static Forward::primitive_desc forwardDescription(const ConvDescriptions &c, const DnnlEngine &engine) {
  return Forward::primitive_desc({dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, c.anyX,
                                  c.anyW, c.anyY, c.strides, c.dilations, c.padBegin, c.padEnd},
                                 userScratchpad(), engine.cpu);
}

static CallPointer makeForward(const ConvDescriptions &c, const CallContext &context) {
  const Forward::primitive_desc description = forwardDescription(c, *context.dnnl);
  auto call = std::make_unique<DnnlConv>(*context.dnnl, context.threads);
  call->addOperand(0, c.x, description.src_desc());
  call->addOperand(1, c.w, description.weights_desc());
  call->addOperand(2, c.y, description.dst_desc());
  call->setPrimitive(DnnlStep(*context.dnnl, Forward(description), description.scratchpad_desc(),
                              {{DNNL_ARG_SRC, description.src_desc()},
                               {DNNL_ARG_WEIGHTS, description.weights_desc()},
                               {DNNL_ARG_DST, description.dst_desc()}}));
  return call;
}

static CallPointer makeInputGrad(const ConvDescriptions &c, const CallContext &context) {
  const BackwardData::primitive_desc description(
      {dnnl::algorithm::convolution_direct, c.anyX, c.anyW, c.anyY, c.strides, c.dilations, c.padBegin, c.padEnd},
      userScratchpad(), context.dnnl->cpu, forwardDescription(c, *context.dnnl));
  auto call = std::make_unique<DnnlConv>(*context.dnnl, context.threads);
  call->addOperand(0, c.y, description.diff_dst_desc());
  call->addOperand(1, c.w, description.weights_desc());
  call->addOperand(2, c.x, description.diff_src_desc());
  call->setPrimitive(DnnlStep(*context.dnnl, BackwardData(description), description.scratchpad_desc(),
                              {{DNNL_ARG_DIFF_DST, description.diff_dst_desc()},
                               {DNNL_ARG_WEIGHTS, description.weights_desc()},
                               {DNNL_ARG_DIFF_SRC, description.diff_src_desc()}}));
  return call;
}

static CallPointer makeWeightGrad(const ConvDescriptions &c, const CallContext &context) {
  const BackwardWeights::primitive_desc description(
      {dnnl::algorithm::convolution_direct, c.anyX, c.anyW, c.anyY, c.strides, c.dilations, c.padBegin, c.padEnd},
      userScratchpad(), context.dnnl->cpu, forwardDescription(c, *context.dnnl));
  auto call = std::make_unique<DnnlConv>(*context.dnnl, context.threads);
  call->addOperand(0, c.x, description.src_desc());
  call->addOperand(1, c.y, description.diff_dst_desc());
  call->addOperand(2, c.w, description.diff_weights_desc());
  call->setPrimitive(DnnlStep(*context.dnnl, BackwardWeights(description), description.scratchpad_desc(),
                              {{DNNL_ARG_SRC, description.src_desc()},
                               {DNNL_ARG_DIFF_DST, description.diff_dst_desc()},
                               {DNNL_ARG_DIFF_WEIGHTS, description.diff_weights_desc()}}));
  return call;
}

CallPointer makeDnnlConvCall(const CallSpec &spec, const CallContext &context) try {
  const bool isConv = spec.op == "conv" || spec.op == "conv_input_grad" || spec.op == "conv_weight_grad";
  if (!isConv || !context.dnnl || spec.operands[0].dtype != artifact::DType::F32)
    return nullptr;
  const DnnlThreads scope(context.threads);
  const std::vector<TensorSpec> &o = spec.operands;
  if (spec.op == "conv")
    return makeForward(describe(spec, o[0], o[1], o[2]), context);
  if (spec.op == "conv_input_grad")
    return makeInputGrad(describe(spec, o[2], o[1], o[0]), context);
  return makeWeightGrad(describe(spec, o[0], o[2], o[1]), context);
} catch (const dnnl::error &) {
  return nullptr; // no primitive for this form; the reference takes any
}

} // namespace plimsoll::runtime
