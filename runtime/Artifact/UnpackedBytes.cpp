// Sums the payload of a verified artifact along every path from the root. One small function per table of the schema:
// a field added there that holds text or a vector must be added here.
#include "runtime/Artifact/UnpackedBytes.h"

namespace plimsoll::artifact {

namespace {

class PayloadCounter {
public:
  explicit PayloadCounter(uint64_t limit) : remaining(limit) {}
  bool within() const { return !exceeded; }
  Payload result() const { return exceeded ? Payload::TooLarge : misaligned ? Payload::Misaligned : Payload::Sound; }

  void add(const flatbuffers::String *text) { take(text ? text->size() : 0); }
  template <typename T> void add(const flatbuffers::Vector<T> *values) {
    misaligned |= values && reinterpret_cast<uintptr_t>(values->Data()) % sizeof(T) != 0;
    take(values ? values->size() * sizeof(T) : 0);
  }
  void addTexts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *texts) {
    each(texts, [&](const flatbuffers::String &text) { add(&text); });
  }
  template <typename T, typename Visit>
  void each(const flatbuffers::Vector<flatbuffers::Offset<T>> *tables, Visit visit) {
    take(tables ? tables->size() * sizeof(uint32_t) : 0);
    for (uint32_t i = 0; tables && i < tables->size() && within(); ++i)
      visit(*tables->Get(i));
  }

private:
  void take(uint64_t bytes) {
    exceeded = exceeded || bytes > remaining;
    remaining -= exceeded ? 0 : bytes;
  }
  uint64_t remaining;
  bool exceeded = false;
  bool misaligned = false;
};

} // namespace

static void count(PayloadCounter &sum, const TensorView *view) {
  if (!view)
    return;
  sum.add(view->shape());
  sum.add(view->strides());
}

using Operands = flatbuffers::Vector<flatbuffers::Offset<Operand>>;
static void count(PayloadCounter &sum, const Operands *operands) {
  sum.each(operands, [&](const Operand &operand) { count(sum, operand.view()); });
}

static void count(PayloadCounter &sum, const LibraryCall &call) {
  sum.add(call.op());
  count(sum, call.operands());
  sum.each(call.attributes(), [&](const Attribute &attribute) {
    sum.add(attribute.key());
    sum.add(attribute.ints());
    sum.add(attribute.floats());
    sum.add(attribute.text());
  });
}

static void count(PayloadCounter &sum, const Command &command) {
  sum.add(command.label());
  if (const Launch *launch = command.body_as_Launch())
    count(sum, launch->operands());
  if (const LibraryCall *call = command.body_as_LibraryCall())
    count(sum, *call);
  if (const Copy *copy = command.body_as_Copy()) {
    count(sum, copy->source());
    count(sum, copy->target());
  }
  if (const Collective *collective = command.body_as_Collective()) {
    sum.add(collective->kind());
    sum.add(collective->group());
    count(sum, collective->operands());
  }
}

static void count(PayloadCounter &sum, const Buffer &buffer) {
  sum.add(buffer.name());
  sum.add(buffer.source());
}

static void count(PayloadCounter &sum, const Port &port) {
  sum.add(port.name());
  sum.addTexts(port.dim_names());
  count(sum, port.view());
}

static void count(PayloadCounter &sum, const CompressedText *text) {
  if (text)
    sum.add(text->bytes());
}

static void count(PayloadCounter &sum, const ExtraTimeBound *bound) {
  if (bound)
    count(sum, bound->certificate());
}

static void count(PayloadCounter &sum, const Explanation &explanation) {
  for (const auto *text :
       {explanation.storage(), explanation.source(), explanation.last_reader_label(), explanation.reason()})
    sum.add(text);
}

static void count(PayloadCounter &sum, const PlanProof *proof) {
  if (!proof)
    return;
  count(sum, proof->problem());
  sum.add(proof->steps());
  count(sum, proof->bound());
  sum.each(proof->explanations(), [&](const Explanation &explanation) { count(sum, explanation); });
  sum.each(proof->curve(), [&](const CurvePoint &point) { count(sum, point.bound()); });
}

static void count(PayloadCounter &sum, const Entry &entry) {
  sum.add(entry.name());
  sum.each(entry.inputs(), [&](const Port &port) { count(sum, port); });
  sum.each(entry.outputs(), [&](const Port &port) { count(sum, port); });
  sum.each(entry.buffers(), [&](const Buffer &buffer) { count(sum, buffer); });
  sum.each(entry.commands(), [&](const Command &command) { count(sum, command); });
  count(sum, entry.proof());
}

static void count(PayloadCounter &sum, const SealedPlan &plan) {
  sum.add(plan.name());
  sum.addTexts(plan.dim_names());
  sum.add(plan.dim_values());
  sum.each(plan.arenas(), [](const Arena &) {});
  sum.each(plan.buffers(), [&](const Buffer &buffer) { count(sum, buffer); });
  sum.each(plan.entries(), [&](const Entry &entry) { count(sum, entry); });
}

static void count(PayloadCounter &sum, const Variable &variable) {
  sum.add(variable.name());
  sum.add(variable.shape());
  sum.addTexts(variable.aliases());
  sum.add(variable.init_key());
  sum.add(variable.owner());
}

static void count(PayloadCounter &sum, const Target &target) {
  for (const auto *text : {target.kind(), target.cpu(), target.features(), target.triple(), target.libraries()})
    sum.add(text);
}

static void count(PayloadCounter &sum, const Provenance &provenance) {
  for (const auto *text :
       {provenance.compiler(), provenance.model_name(), provenance.model_hash(), provenance.recipe_hash(),
        provenance.weights_hash(), provenance.flags(), provenance.recipe_json()})
    sum.add(text);
}

Payload checkPayload(const Artifact &root, uint64_t limit) {
  PayloadCounter sum(limit);
  if (root.target())
    count(sum, *root.target());
  if (root.provenance())
    count(sum, *root.provenance());
  sum.add(root.weights_file());
  sum.each(root.variables(), [&](const Variable &variable) { count(sum, variable); });
  sum.each(root.modules(), [&](const KernelModule &module) {
    sum.add(module.format());
    sum.add(module.target());
    sum.add(module.data());
  });
  sum.each(root.kernels(), [&](const Kernel &kernel) {
    sum.add(kernel.symbol());
    sum.add(kernel.name());
  });
  sum.each(root.plans(), [&](const SealedPlan &plan) { count(sum, plan); });
  return sum.result();
}

} // namespace plimsoll::artifact
