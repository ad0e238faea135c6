// The forward command.
#include "tools/plimsoll-run/Forward.h"

#include "tools/plimsoll-run/EntryPorts.h"
#include "tools/plimsoll-run/RunState.h"
#include "tools/plimsoll-run/TensorFiles.h"

#include <fmt/format.h>

namespace plimsoll::runtime {
namespace {

/// Copies the chosen outputs of the entry that has just run.
Status collect(Session &session, const ForwardOptions &options, const std::string &suffix,
               std::vector<OwnedTensor> &tensors) {
  for (const auto &port : session.entry(options.entry)->outputs) {
    if (!options.port.empty() && port->name != options.port)
      continue;
    auto bytes = session.output(options.entry, port->name);
    if (!bytes)
      return bytes.status();
    tensors.push_back({port->name + suffix, port->view->dtype, port->view->shape, {bytes->begin(), bytes->end()}});
  }
  return Status::ok();
}

Status checkPort(const artifact::EntryT &entry, const ForwardOptions &options) {
  std::string known;
  for (const auto &port : entry.outputs) {
    if (options.port.empty() || port->name == options.port)
      return Status::ok();
    known += (known.empty() ? "" : ", ") + port->name;
  }
  return {ExitCode::Usage, fmt::format("entry {} has no output {}; its outputs are: {}", options.entry,
                                       options.port.empty() ? "at all" : options.port, known.empty() ? "none" : known)};
}

} // namespace

Status forward(Session &session, const ForwardOptions &options, std::vector<std::string> &written) {
  Result<EntryPorts> entry = EntryPorts::bind(session, options.entry);
  if (!entry)
    return entry.status();
  if (Status status = checkPort(*session.entry(options.entry), options); !status)
    return status;
  auto feed = openFeed(session, options.data, entry->dataPorts(), 0, false);
  if (!feed)
    return feed.status();
  std::vector<OwnedTensor> tensors;
  for (uint64_t batch = 0; batch < options.batches; ++batch) {
    if (Status status = feed->next(entry->dataTargets()); !status)
      return status;
    if (Status status = session.run(options.entry); !status)
      return status;
    std::string suffix = options.batches > 1 ? fmt::format(".batch{}", batch) : std::string();
    if (Status status = collect(session, options, suffix, tensors); !status)
      return status;
  }
  for (const OwnedTensor &tensor : tensors)
    written.push_back(tensor.name);
  return writeTensors(options.output, tensors);
}

} // namespace plimsoll::runtime
