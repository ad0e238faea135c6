// Shared by the Verify*.cpp files: the list of findings and the places they name. Not for use outside this folder.
#pragma once

#include "plimsoll/Support/Status.h"
#include "plimsoll/Support/Units.h"
#include "runtime/Artifact/Files.h"
#include "runtime/Artifact/Types.h"

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::artifact {

/// Violations found so far, in the order of discovery.
class Findings {
public:
  /// Records that `rule` ("A8") is broken, as "A8: text".
  void add(std::string_view rule, const std::string &text) {
    ++total;
    if (messages.size() < kListed)
      messages.push_back(std::string(rule) + ": " + text);
  }
  /// As add, for a file that a later version would accept.
  void addVersion(std::string_view rule, const std::string &text) {
    version = true;
    add(rule, text);
  }
  bool empty() const { return total == 0; }
  /// True when more findings would only be counted; loops over hostile input stop here.
  bool enough() const { return total >= kCounted; }
  Status status() const;

private:
  static constexpr size_t kListed = 8, kCounted = 1000;
  std::vector<std::string> messages;
  size_t total = 0;
  bool version = false;
};

/// One plan being checked.
struct PlanScope {
  const ArtifactT &artifact;
  const SealedPlanT &plan;
  std::string where; ///< "plan 'small'"
};

/// One entry being checked. Buffers are numbered as views number them: persistent first.
struct EntryScope {
  const PlanScope &scope;
  const EntryT &entry;
  std::string where; ///< "entry 'train_step'"

  size_t persistentCount() const { return scope.plan.buffers.size(); }
  size_t bufferCount() const { return persistentCount() + entry.buffers.size(); }
  bool isPersistent(size_t index) const { return index < persistentCount(); }
  const BufferT &buffer(size_t index) const {
    return isPersistent(index) ? *scope.plan.buffers[index] : *entry.buffers[index - persistentCount()];
  }
  /// "entry 'train_step' command 3 'matmul'"
  std::string commandText(size_t index) const {
    return where + " command " + std::to_string(index) + " " + inQuotes(entry.commands[index]->label);
  }
  /// "buffer 7 'h0.attn'"
  std::string bufferText(size_t index) const {
    return "buffer " + std::to_string(index) + " " + inQuotes(buffer(index).name);
  }
};

inline ByteRange rangeOf(const BufferT &buffer) { return {buffer.offset, buffer.offset + buffer.bytes}; }
inline bool overlap(const ByteRange &a, const ByteRange &b) { return a.begin < b.end && b.begin < a.end; }

/// "[64, 128)"
inline std::string rangeText(const ByteRange &range) {
  return "[" + groupedDigits(range.begin) + ", " + groupedDigits(range.end) + ")";
}

/// "f32[4,8] of buffer 7 'h0.attn'"
std::string useText(const EntryScope &entry, const TensorViewT &view);
/// The bytes of its arena that a view (A16 holds) can touch.
inline ByteRange arenaRange(const EntryScope &entry, const TensorViewT &view) {
  ByteRange range = *reach(view);
  uint64_t offset = entry.buffer(view.buffer).offset;
  return {offset + range.begin, offset + range.end};
}

// The steps, each in the file of its concern. A step runs only when the rules it builds on hold for this plan or entry;
// the bool ones return false when they do not.
void verifyTables(const ArtifactT &artifact, Findings &findings);                  // A3, A4: Verify.cpp
void verifyPlan(const PlanScope &scope, Findings &findings);                       // A9…A12, A25: VerifyPlan.cpp
void verifyEntry(const PlanScope &scope, const EntryT &entry, Findings &findings); // A13…A15: VerifyEntry.cpp
bool verifyCommands(const EntryScope &entry, Findings &findings);          // A16…A18, A20…A23: VerifyCommand.cpp
void verifyWrittenBeforeRead(const EntryScope &entry, Findings &findings); // A19: VerifyAccess.cpp
void verifyProofTables(const EntryT &entry, const std::string &where, Findings &findings); // A3: VerifyProof.cpp
void verifyProof(const PlanScope &scope, const EntryT &entry, Findings &findings);         // A26, A27: VerifyProof.cpp
void verifyStreamOrder(const EntryScope &entry, Findings &findings);                       // A24: VerifyStreams.cpp

} // namespace plimsoll::artifact
