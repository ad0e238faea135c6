// Prepared oneDNN primitives: see Dnnl.h.
#include "runtime/CPU/Dnnl.h"

#include <omp.h>

namespace plimsoll::runtime {

DnnlStep::DnnlStep(DnnlEngine &engine, dnnl::primitive compiled, const dnnl::memory::desc &scratchpad,
                   const std::vector<std::pair<int, dnnl::memory::desc>> &arguments)
    : dnnlEngine(&engine), primitive(std::move(compiled)), scratchBytes(scratchpad.get_size()) {
  std::vector<std::pair<int, dnnl::memory::desc>> all = arguments;
  if (scratchBytes > 0)
    all.emplace_back(DNNL_ARG_SCRATCHPAD, scratchpad);
  for (const auto &[argument, description] : all) {
    memories.push_back(dnnl::memory(description, engine.cpu, DNNL_MEMORY_NONE));
    callArguments.push_back({argument, memories.back().get()});
  }
}

void DnnlStep::execute(const std::vector<void *> &addresses, void *scratchpad) {
  for (size_t i = 0; i < memories.size(); ++i)
    dnnl_memory_set_data_handle(memories[i].get(), i < addresses.size() ? addresses[i] : scratchpad);
  dnnl_primitive_execute(primitive.get(), dnnlEngine->inOrder.get(), static_cast<int>(callArguments.size()),
                         callArguments.data());
}

DnnlThreads::DnnlThreads(unsigned threads) : before(omp_get_max_threads()) {
  omp_set_num_threads(static_cast<int>(threads));
}

DnnlThreads::~DnnlThreads() { omp_set_num_threads(before); }

} // namespace plimsoll::runtime
