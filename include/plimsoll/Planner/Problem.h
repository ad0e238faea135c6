// The planner's input: one program (a training step, an evaluation step, ...) as ids, bytes and accesses, without IR.
// Passes read IR into a Problem, solvers turn it into a Solution (Solution.h), validate() (Validate.h) judges that.
#pragma once

#include "plimsoll/Support/Status.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::planner {

/// Index into Problem::storages.
using StorageId = uint32_t;
/// Index into Problem::steps.
using StepIndex = uint32_t;

inline constexpr StorageId noStorage = std::numeric_limits<StorageId>::max();
inline constexpr StepIndex noStep = std::numeric_limits<StepIndex>::max();
inline constexpr uint64_t noOffset = std::numeric_limits<uint64_t>::max();

/// What the bytes of a storage are for; the classes of every memory breakdown.
enum class StorageClass : uint8_t {
  Parameter,      ///< trainable weight; persistent
  Gradient,       ///< gradient of a parameter; persistent when accumulated over programs
  OptimizerState, ///< momentum, second moments, master copies; persistent
  ModelState,     ///< state that is not trained, such as running statistics; persistent
  StepState,      ///< counters, loss scale, random seed
  Activation,     ///< any other value of the step
  Workspace,      ///< named scratch memory; unnamed scratch is Step::workspaceBytes
  Input,          ///< staged data, such as tokens and labels
  Output,         ///< results handed back, such as the loss
  Constant,       ///< never written by the program; persistent
};

/// Number of storage classes, for tables indexed by class.
inline constexpr unsigned storageClassCount = 10;

/// "parameter", "optimizer_state", ...: the spelling of the problem text.
std::string_view storageClassName(StorageClass storageClass);
/// Inverse of storageClassName(); false when `name` is no class.
bool parseStorageClass(std::string_view name, StorageClass &storageClass);
/// True for the classes whose bytes must survive from one run of the program to the next.
bool mustPersist(StorageClass storageClass);

/// Where bytes lie. Steps compute on the device; host and disk only hold what was moved out of it.
enum class Tier : uint8_t { Device, Host, Disk };

/// Number of tiers, for tables indexed by tier.
inline constexpr unsigned tierCount = 3;

/// "device", "host", "disk": the spelling of the problem text.
std::string_view tierName(Tier tier);
/// Inverse of tierName(); false when `name` is no tier.
bool parseTier(std::string_view name, Tier &tier);

/// A run of bytes with one content at a time. Views share the storage of their base; a recomputed value is a new
/// storage.
struct Storage {
  StorageId id = noStorage; ///< equals the position in Problem::storages
  std::string name;         ///< unique, not empty
  uint64_t bytes = 0;       ///< exact, not yet aligned; zero is allowed and takes no room
  StorageClass storageClass = StorageClass::Activation;
  bool persistent = false;  ///< defined before the first step and after the last one, and owned between runs
  std::string source;       ///< where it comes from in the user's model (a node or tensor name); may be empty
  Tier tier = Tier::Device; ///< the arena it lies in; each tier has its own addresses
};

/// How a step touches a storage.
enum class AccessMode : uint8_t {
  Read,      ///< needs the whole content
  Write,     ///< defines it, or adds to what earlier steps wrote (pieces of a concatenation)
  ReadWrite, ///< needs the content and changes it (an accumulation, an optimizer update)
};

/// One storage touched by one step; a step lists a storage at most once.
struct Access {
  StorageId storage = noStorage;
  AccessMode mode = AccessMode::Read;
  bool reads() const { return mode != AccessMode::Write; }
  bool writes() const { return mode != AccessMode::Read; }
  bool operator==(const Access &) const = default;
};

/// The step can compute `result` in the bytes of `operand`: each element is read before its place is written.
/// An offer, not a demand: the planner takes it when nobody needs the operand afterwards.
struct InPlaceCandidate {
  StorageId operand = noStorage; ///< read by the step
  StorageId result = noStorage;  ///< first written by the step, same bytes as the operand
  bool operator==(const InPlaceCandidate &) const = default;
};

/// What a step does.
enum class StepKind : uint8_t {
  Compute, ///< a kernel or library call on the device
  Copy,    ///< starts moving one storage to another tier; it runs beside the steps that follow, up to its Wait
  Wait,    ///< returns when the copy `waitsFor` has finished; reads the copy's source and target to keep them alive
};

/// One command. A step has three phases: its outputs and workspace get their room, it runs, what died in it is freed.
struct Step {
  std::string name;
  std::vector<Access> accesses;
  std::vector<InPlaceCandidate> inPlace;
  uint64_t workspaceBytes = 0; ///< scratch that only this step uses; undefined before and after
  double costSeconds = 0;      ///< estimated duration (of a copy: on its own queue); 0 when unknown
  StepKind kind = StepKind::Compute;
  StepIndex waitsFor = noStep; ///< Wait: the copy; noStep otherwise
};

/// One program. Steps run in the order listed.
struct Problem {
  std::vector<Storage> storages;
  std::vector<Step> steps;
  std::vector<StorageId> inputs;  ///< written by the caller before step 0 of every run
  std::vector<StorageId> outputs; ///< read by the caller after the last step
  uint64_t alignment = 256;       ///< bytes, a power of two; offsets are multiples of it and sizes are rounded up to it

  /// Appends a storage and returns its id.
  StorageId addStorage(std::string name, uint64_t bytes, StorageClass storageClass, std::string source = {});

  /// Ok, or BadInput with *all* violations, one a line, each with its rule:
  ///   C1  storage ids are positions; names are unique and not empty
  ///   C2  the alignment is a power of two; all sizes together stay below 2^62 bytes
  ///   C3  accesses, in-place offers, inputs and outputs name storages that exist
  ///   C4  a storage is listed once in a step, once as input, once as output (no double definition)
  ///   C5  nothing is read before it is written, staged as input or persistent
  ///   C6  every output is written, staged or persistent
  ///   C7  in-place offers: operand read by the step, result first written by it, same bytes
  ///   C8  parameters, optimizer state, model state and constants are persistent
  ///   C9  constants are never written
  ///   C10 costs are finite and not negative
  ///   C11 a copy reads one storage and writes one of the same bytes on another tier, one of them on the device
  ///   C12 every copy has exactly one wait, later than it, which reads just the copy's source and target
  ///   C13 compute steps, inputs, outputs and in-place offers are on the device; copies and waits have no workspace
  /// Complexity: O(storages + accesses), with a hash of the names.
  Status check() const;
};

} // namespace plimsoll::planner
