// What the folder needs of oneDNN: an engine with its stream, and primitives whose memory objects and argument arrays
// are made at load, so that execution only sets addresses. Scratch is always the caller's (scratchpad_mode::user).
// oneDNN itself still makes a handful of heap allocations of up to 120 bytes per execution; README.md gives the
// numbers.
#pragma once

#include <dnnl.hpp>

#include <cstdint>
#include <vector>

namespace plimsoll::runtime {

/// The CPU engine and an in-order stream. Shared by all calls of a backend.
class DnnlEngine {
public:
  DnnlEngine() : cpu(dnnl::engine::kind::cpu, 0), inOrder(cpu) {}
  dnnl::engine cpu;
  dnnl::stream inOrder;
};

/// Primitive attributes every primitive here has.
inline dnnl::primitive_attr userScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

/// One primitive with its arguments. Not copyable: the argument array points at memory objects held here.
class DnnlStep {
public:
  DnnlStep() = default;
  /// Arguments in the order execute() takes their addresses; the scratchpad is added as the last one.
  DnnlStep(DnnlEngine &engine, dnnl::primitive compiled, const dnnl::memory::desc &scratchpad,
           const std::vector<std::pair<int, dnnl::memory::desc>> &arguments);

  /// Runs the primitive on the calling thread's OpenMP team. `addresses` has one entry per argument.
  void execute(const std::vector<void *> &addresses, void *scratchpad);
  uint64_t scratchpadBytes() const { return scratchBytes; }

private:
  DnnlEngine *dnnlEngine = nullptr;
  dnnl::primitive primitive;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> callArguments;
  uint64_t scratchBytes = 0;
};

/// Sets the calling thread's OpenMP thread count for a scope: oneDNN sizes primitives and scratch by it.
class DnnlThreads {
public:
  explicit DnnlThreads(unsigned threads);
  ~DnnlThreads();
  DnnlThreads(const DnnlThreads &) = delete;
  DnnlThreads &operator=(const DnnlThreads &) = delete;

private:
  int before;
};

} // namespace plimsoll::runtime
