// The rules of one sealed plan: arenas (A9), persistent buffers (A10, A11), variables (A12) and the memory promise
// (A25); then each entry.
#include "runtime/Artifact/Verifier.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

namespace plimsoll::artifact {

/// A9 for one arena; true when it holds.
static bool checkArena(const PlanScope &scope, size_t index, Findings &findings) {
  const ArenaT &arena = *scope.plan.arenas[index];
  bool sizeSound = arena.bytes >= 1 && arena.bytes <= kMaxArenaBytes;
  bool alignmentSound =
      std::has_single_bit(arena.alignment) && arena.alignment >= kBufferAlignment && arena.alignment <= (1u << 30);
  std::string where = scope.where + " arena " + std::to_string(index);
  if (!sizeSound)
    findings.add("A9", where + " has " + groupedDigits(arena.bytes) + " bytes, expected 1 to " +
                           groupedDigits(kMaxArenaBytes));
  if (!alignmentSound)
    findings.add("A9", where + " has alignment " + groupedDigits(arena.alignment) +
                           ", expected a power of two from 64 to 2^30");
  return sizeSound && alignmentSound;
}

/// A10 for one buffer; true when its bytes lie inside its arena.
static bool checkBuffer(const PlanScope &scope, const BufferT &buffer, const std::string &where, Findings &findings) {
  if (buffer.arena >= scope.plan.arenas.size()) {
    findings.add("A10", where + " is in arena " + std::to_string(buffer.arena) + " of " +
                            std::to_string(scope.plan.arenas.size()));
    return false;
  }
  uint64_t capacity = scope.plan.arenas[buffer.arena]->bytes;
  if (buffer.offset > capacity || buffer.bytes > capacity - buffer.offset) {
    findings.add("A10", where + " at offset " + groupedDigits(buffer.offset) + " with " + groupedDigits(buffer.bytes) +
                            " bytes does not lie in arena " + std::to_string(buffer.arena) + " of " +
                            groupedDigits(capacity) + " bytes");
    return false;
  }
  if (buffer.offset % kBufferAlignment != 0) {
    findings.add("A10", where + " has offset " + groupedDigits(buffer.offset) + ", expected a multiple of 64");
    return false;
  }
  return true;
}

/// A10 for all buffers of a plan and its entries; true when all hold.
static bool checkBuffers(const PlanScope &scope, Findings &findings) {
  const auto &buffers = scope.plan.buffers;
  bool sound = true;
  for (size_t i = 0; i < buffers.size() && !findings.enough(); ++i)
    sound &= checkBuffer(scope, *buffers[i],
                         scope.where + " buffer " + std::to_string(i) + " " + inQuotes(buffers[i]->name), findings);
  for (const auto &entry : scope.plan.entries)
    for (size_t i = 0; i < entry->buffers.size() && !findings.enough(); ++i)
      sound &= checkBuffer(scope, *entry->buffers[i],
                           "entry " + inQuotes(entry->name) + " buffer " + std::to_string(buffers.size() + i) + " " +
                               inQuotes(entry->buffers[i]->name),
                           findings);
  return sound;
}

/// A11. Sorted by place, any overlap shows between a buffer and the farthest-reaching one before it.
static bool checkPersistentDisjoint(const PlanScope &scope, Findings &findings) {
  bool disjoint = true;
  const auto &buffers = scope.plan.buffers;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return buffers[i]->bytes == 0; });
  auto place = [&](size_t i) { return std::tuple(buffers[i]->arena, buffers[i]->offset, i); };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  for (size_t i = 1, farthest = 0; i < order.size() && !findings.enough(); ++i) {
    const BufferT &before = *buffers[order[farthest]], &buffer = *buffers[order[i]];
    bool shares = before.arena == buffer.arena && overlap(rangeOf(before), rangeOf(buffer));
    disjoint &= !shares;
    if (shares)
      findings.add("A11", scope.where + " persistent buffers " + std::to_string(order[farthest]) + " " +
                              inQuotes(before.name) + " " + rangeText(rangeOf(before)) + " and " +
                              std::to_string(order[i]) + " " + inQuotes(buffer.name) + " " +
                              rangeText(rangeOf(buffer)) + " share bytes");
    if (before.arena != buffer.arena || rangeOf(buffer).end > rangeOf(before).end)
      farthest = i;
  }
  return disjoint;
}

static void checkVariables(const PlanScope &scope, Findings &findings) {
  const auto &variables = scope.artifact.variables;
  if (scope.plan.buffers.size() < variables.size())
    return findings.add("A12", scope.where + " has " + std::to_string(scope.plan.buffers.size()) +
                                   " persistent buffers for " + std::to_string(variables.size()) + " variables");
  for (size_t i = 0; i < variables.size() && !findings.enough(); ++i) {
    const BufferT &buffer = *scope.plan.buffers[i];
    std::optional<uint64_t> bytes = byteCount(variables[i]->dtype, variables[i]->shape);
    uint64_t alignment = scope.plan.arenas[buffer.arena]->alignment;
    if (!bytes)
      findings.add("A12", "variable " + inQuotes(variables[i]->name) + " has an impossible shape");
    else if (buffer.bytes < *bytes || buffer.bytes > alignUp(*bytes, alignment))
      findings.add("A12", scope.where + " variable " + inQuotes(variables[i]->name) + " takes " +
                              groupedDigits(*bytes) + " bytes, its buffer has " + groupedDigits(buffer.bytes));
  }
}

/// a + b, or the largest value when that does not fit.
static uint64_t saturatingAdd(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

/// End of the highest byte that a buffer of `entry` or a persistent one uses, summed over the device arenas.
static uint64_t deviceBytesUsed(const SealedPlanT &plan, const EntryT &entry) {
  std::vector<uint64_t> end(plan.arenas.size(), 0);
  auto visit = [&](const std::vector<std::unique_ptr<BufferT>> &buffers) {
    for (const auto &buffer : buffers)
      end[buffer->arena] = std::max(end[buffer->arena], rangeOf(*buffer).end);
  };
  visit(plan.buffers);
  visit(entry.buffers);
  uint64_t sum = 0;
  for (size_t i = 0; i < end.size(); ++i)
    sum += plan.arenas[i]->tier == Tier::Device ? end[i] : 0;
  return sum;
}

static void checkPeak(const PlanScope &scope, const EntryT &entry, Findings &findings) {
  std::string where = "entry " + inQuotes(entry.name);
  uint64_t used = deviceBytesUsed(scope.plan, entry);
  if (entry.peak_bytes < used)
    findings.add("A25", where + " promises a peak of " + groupedDigits(entry.peak_bytes) + " bytes but uses " +
                            groupedDigits(used));
  if (entry.live_bytes_at_peak > entry.peak_bytes)
    findings.add("A25", where + " has " + groupedDigits(entry.live_bytes_at_peak) + " live bytes in a peak of only " +
                            groupedDigits(entry.peak_bytes));
  if (entry.peak_command != 0 && entry.peak_command >= entry.commands.size())
    findings.add("A25", where + " peaks at command " + std::to_string(entry.peak_command) + " of " +
                            std::to_string(entry.commands.size()));
}

static void checkPromise(const PlanScope &scope, Findings &findings) {
  const MemoryT &memory = *scope.plan.memory;
  uint64_t arenas = 0, device = 0;
  for (const auto &arena : scope.plan.arenas) {
    uint64_t bytes = alignUp(arena->bytes, arena->alignment);
    arenas = saturatingAdd(arenas, bytes);
    device += arena->tier == Tier::Device ? bytes : 0;
  }
  if (memory.arena_bytes != arenas)
    findings.add("A25", scope.where + " promises " + groupedDigits(memory.arena_bytes) +
                            " arena bytes, its arenas take " + groupedDigits(arenas));
  uint64_t sum = saturatingAdd(saturatingAdd(memory.arena_bytes, memory.library_bytes),
                               saturatingAdd(memory.staging_bytes, memory.runtime_bytes));
  if (memory.training_bytes != sum)
    findings.add("A25", scope.where + " promises " + groupedDigits(memory.training_bytes) +
                            " bytes of training memory, its parts add up to " + groupedDigits(sum));
  if (scope.plan.budget_bytes != 0 && device > scope.plan.budget_bytes)
    findings.add("A25", scope.where + " has device arenas of " + groupedDigits(device) + " bytes over its budget of " +
                            groupedDigits(scope.plan.budget_bytes));
  for (const auto &entry : scope.plan.entries)
    checkPeak(scope, *entry, findings);
}

void verifyPlan(const PlanScope &scope, Findings &findings) {
  static constexpr size_t kMaxArenas = 64;
  if (scope.plan.dim_names.size() != scope.plan.dim_values.size())
    findings.add("A5", scope.where + " names " + std::to_string(scope.plan.dim_names.size()) +
                           " dimensions and gives " + std::to_string(scope.plan.dim_values.size()) + " values");
  if (scope.plan.arenas.size() > kMaxArenas)
    return findings.add("A9", scope.where + " has " + std::to_string(scope.plan.arenas.size()) + " arenas, at most 64");
  bool sound = true;
  for (size_t i = 0; i < scope.plan.arenas.size(); ++i)
    sound &= checkArena(scope, i, findings);
  if (!sound || !checkBuffers(scope, findings))
    return;
  if (!checkPersistentDisjoint(scope, findings))
    return;
  checkVariables(scope, findings);
  checkPromise(scope, findings);
  for (const auto &entry : scope.plan.entries)
    if (!findings.enough()) {
      verifyEntry(scope, *entry, findings);
      verifyProof(scope, *entry, findings);
    }
}

} // namespace plimsoll::artifact
